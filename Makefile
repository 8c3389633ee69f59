# The two commands: `make demo` and `make test`. Both install what is missing (Debian packages), build into build/.
# `make install PREFIX=/opt/farfault` (DESTDIR= too) installs, `make package` makes a Debian package in build/.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: all demo test bench gpu-check deps install package clean
all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

deps:
	@scripts/install-deps.sh

$(BUILD)/build.ninja: | deps
	cmake -S . -B $(BUILD) -G Ninja

demo: all
	@scripts/demo.sh $(BUILD)

test: all
	@scripts/test.sh $(BUILD)

install: all
	cmake --install $(BUILD) --prefix $(PREFIX)

package: all
	cmake --build $(BUILD) --target package

bench: all
	@scripts/bench.sh $(BUILD)

# On a machine with an NVIDIA GPU: docs/results/gpu-DATE-NAME.csv. Elsewhere it says that there is none: exit status 77.
gpu-check: all
	@scripts/gpu-check.sh $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-check
