# The two commands: `make demo` and `make test`. Both install what is missing (Debian packages), build into build/.
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: all demo test bench deps clean
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

bench: all
	@scripts/bench.sh $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-check
