# `make` builds the product into build/ and installs nothing; the README's two commands, `make demo` and `make test`, install what is missing first.
#
#   make            the program, the virtual GPU's libraries, the workloads: what `make install` installs
#   make all        also tests, fuzz targets, benches
#   make deps       installs what is missing (Debian packages)
#   make demo       deps, the product, a bundled program under four memory managers
#   make quick      before each commit: all, and the tests that take no longer than two seconds
#   make test       deps, and what must hold: what CI runs; it builds what it tests
#   make frameworks-check  CuPy, Numba, PyTorch, JAX, TensorFlow, llama.cpp, NCCL, NVIDIA's libraries: needs PyPI and npm
#   make check-all  the rest: every test in every build, more fuzzing, the coverage figure
#   make install PREFIX=/opt/farfault (DESTDIR= too); make package: a Debian package in build/
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
WERROR ?= OFF
ISAS ?= all

# A build folder that `make demo` or `make test` has made holds the interpreter for this machine only: it becomes one for all.
all-isas = [ "$(ISAS)" != all ] || ! grep -qs FARFAULT_ISAS:STRING=native $(BUILD)/CMakeCache.txt || cmake -DFARFAULT_ISAS=all $(BUILD) >/dev/null

.PHONY: product all demo quick test check-all bench frameworks-check gpu-check deps install package clean
product: $(BUILD)/build.ninja
	@$(all-isas)
	@cmake --build $(BUILD) -j $(JOBS) --target product

all: $(BUILD)/build.ninja
	@$(all-isas)
	@cmake --build $(BUILD) -j $(JOBS)

# What has been installed is looked for anew.
deps:
	@[ -z "$$(scripts/install-deps.sh --missing)" ] || { scripts/install-deps.sh && rm -f $(BUILD)/build.ninja; }

$(BUILD)/build.ninja:
	@cmake -S . -B $(BUILD) -G Ninja -DFARFAULT_WERROR=$(WERROR) -DFARFAULT_ISAS=$(ISAS) || { scripts/install-deps.sh --hint; exit 1; }

demo: deps
	@$(MAKE) --no-print-directory product ISAS=native
	@scripts/demo.sh $(BUILD)

# In a build folder that they make themselves, a warning is an error; with another compiler than CI has, WERROR=OFF turns that off.
test: ISAS = native
test check-all: deps
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja ISAS=$(ISAS) WERROR=$(if $(filter command line environment,$(origin WERROR)),$(WERROR),ON)
	@$(all-isas)
	@scripts/test.sh $(BUILD) $@

quick: all
	@scripts/test.sh $(BUILD) quick

install: product
	cmake --install $(BUILD) --prefix $(PREFIX)

package: product
	cmake --build $(BUILD) --target package

bench: all
	@bench/performance.py $(BUILD)

# CuPy, Numba, PyTorch, JAX, TensorFlow, llama.cpp, NVIDIA's libraries as PyPI and npm have them (some 20 GB, into build/frameworks): do they run, and right? PARTS="cupy llm" chooses.
frameworks-check: all
	@scripts/frameworks-check.sh $(BUILD) $(PARTS)

# On a machine with an NVIDIA GPU: docs/results/gpu-DATE-NAME.csv. Elsewhere it says that there is none: exit status 77.
gpu-check: all
	@scripts/gpu-check.sh $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-check $(BUILD)-check-all $(BUILD)-threads $(BUILD)-races

# The documentation site, $(BUILD)/site/index.html: MkDocs from PyPI, in a virtual environment of the build folder.
.PHONY: site
site:
	@mkdir -p $(BUILD)
	@scripts/site.sh $(BUILD)
