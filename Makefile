# Needs Debian's python3 (3.11 or newer) with venv and headers, g++ and make; the rest comes from PyPI.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check -qq
INSTALLED := $(VENV)/.installed
DOCUMENTED := $(VENV)/.documented
CPP := $(wildcard src/omkl/engine/*.[ch]pp src/omkl/engine/*/*.[ch]pp lab/peaks/*.[ch]pp \
  tests/engine/self_test/*.cpp)
CMAKE := CMakeLists.txt lab/CMakeLists.txt cmake/engine.cmake
BUILD_TOOLS := scikit-build-core nanobind cmake ninja
APT := apt-get install python3-venv python3-dev g++ make
ARGS ?=
# pytest exits with 5 if a marker selects no test, which is not a failure
SOME := || [ $$? -eq 5 ]

# An editable installation finds only the modules that were there when it was made; a new one makes it out of date.
MODULES := find src/omkl lab/omkl_lab -name '*.py' | sort
$(shell if [ -f $(VENV)/.modules ] && [ "$$($(MODULES))" != "$$(cat $(VENV)/.modules)" ]; then rm -f $(INSTALLED); fi)

.DEFAULT_GOAL := help
.PHONY: help demo reproduce compare test lint test-slow smoke warnings test-clang self-test self-test-aarch64 \
  sanitize sanitize-threads soak mutants bench format equations readme docs wheel lock clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## set up and compare learners on a generated stream (ARGS="--seed 1")
	@mkdir -p build
	@$(BIN)/omkl demo --out build/demo $(ARGS)

reproduce: $(INSTALLED) ## reproduce the paper's tables and figures (ARGS="--theory --sweeps")
	@mkdir -p build
	@$(BIN)/omkl-lab reproduce --out build/reproduction $(ARGS)

compare: $(INSTALLED) ## measure GraphMKL beside refitted boosting and streaming learners (ARGS="real --learners all")
	$(BIN)/python -m omkl_lab.comparison --docs docs/peers.md $(ARGS)

test: lint ## set up, then lint, types, import contract, tests and doctests
	$(BIN)/pytest -n 2 -m "not slow and not soak"

lint: $(INSTALLED) ## everything in make test that runs no code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/lint-imports --no-logo

test-slow: $(DOCUMENTED) smoke ## the slow tests, the site, and the wheel in an empty environment
	$(BIN)/pytest -m slow $(SOME)

# The wheel must run without the source tree and the development tools, and hold no experiments.
smoke: $(INSTALLED)
	rm -rf build/smoke
	$(BIN)/python $(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/smoke .
	$(PYTHON) -m venv build/smoke/venv
	build/smoke/venv/bin/python $(PIP) install --constraint constraints.txt build/smoke/*.whl
	! $(PYTHON) -m zipfile -l build/smoke/*.whl | grep -E 'omkl_lab|experiments|[.][ch]pp '
	cd build/smoke && venv/bin/omkl --version && venv/bin/omkl --help >/dev/null && venv/bin/omkl demo --out demo
	cd build/smoke && for api in scikit_learn river; do venv/bin/python ../../examples/$${api}_api.py || exit 1; done

# Repaired, a wheel names the oldest glibc that it runs on, and so installs on most distributions. Where auditwheel finds
# no such name, as for a compiler that is too new, the wheel is kept as it is: for this machine's distribution.
wheel: $(INSTALLED) ## build dist/: a wheel, repaired by auditwheel on Linux, and a source distribution
	rm -rf dist build/wheel
	$(BIN)/python $(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[release]'
	$(BIN)/python -m build --no-isolation --sdist --outdir dist .
	$(BIN)/python $(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/wheel dist/*.tar.gz
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl || cp build/wheel/*.whl dist/
	@ls dist

# Other builds of the engine, each in a folder of build/, beside the one that is installed.
PYTHON_MODULE = -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)
build/g++/.built: OPTIONS = $(PYTHON_MODULE) -DCMAKE_CXX_COMPILER=g++ -DOMKL_WERROR=ON
build/clang++/.built: OPTIONS = $(PYTHON_MODULE) -DCMAKE_CXX_COMPILER=clang++ -DOMKL_WERROR=ON
build/address/.built: OPTIONS = $(PYTHON_MODULE) -DCMAKE_BUILD_TYPE=Debug -DOMKL_SANITIZE=address,undefined
build/thread/.built: OPTIONS = $(PYTHON_MODULE) -DCMAKE_BUILD_TYPE=Debug -DOMKL_SANITIZE=thread
build/native/.built: OPTIONS = -DOMKL_SELF_TEST=ON -DCMAKE_BUILD_TYPE=Debug -DOMKL_SANITIZE=address,undefined
build/aarch64/.built: OPTIONS = -DOMKL_SELF_TEST=ON -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_EXE_LINKER_FLAGS=-static
build/%/.built: $(INSTALLED) $(CPP) $(CMAKE)
	$(BIN)/cmake -G Ninja -S . -B build/$* -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python $(OPTIONS)
	$(BIN)/cmake --build build/$*
	@touch $@

COMPILERS ?= $(foreach compiler,g++ clang++,$(if $(shell command -v $(compiler)),$(compiler)))
warnings: $(COMPILERS:%=build/%/.built) ## compile the engine by g++ and by clang++; a warning is an error

# NumPy computes, and the engine alone must come to the same: here with sanitizers, and for ARM on an emulator.
build/cases: tests/engine/self_test/cases.py tests/streams.py $(INSTALLED) \
  $(wildcard src/omkl/*.py src/omkl/algorithms/*.py src/omkl/algorithms/*/*.py)
	@mkdir -p build
	PYTHONPATH=tests $(BIN)/python $< $@

self-test: build/native/.built build/cases ## the engine's rounds without Python against NumPy's, with sanitizers
	build/native/self_test build/cases

self-test-aarch64: build/aarch64/.built build/cases ## the same on ARM (g++-aarch64-linux-gnu, qemu-user)
	qemu-aarch64 build/aarch64/self_test build/cases

# Tests with the engine of another build. Its sanitizer must be loaded before Python, and what it reports not be captured.
OTHER_BUILD := $(CURDIR)/tests/other_build
# The sanitizers of older compilers do not start where newer kernels put libraries.
FIXED_ADDRESSES = $(shell setarch -R true 2>/dev/null && echo setarch -R)
with = $(FIXED_ADDRESSES) env OMKL_BUILD=$(CURDIR)/build/$(1) PYTHONPATH=$(OTHER_BUILD) $(2) \
  $(BIN)/pytest -p no:cacheprovider --capture=sys -m "not slow and not soak"
preload = LD_PRELOAD="$$($(CXX) -print-file-name=lib$(1).so) $$($(CXX) -print-file-name=libstdc++.so)"

test-clang: build/clang++/.built ## the tests of the engine as clang++ compiles it
	$(call with,clang++) tests/engine $(ARGS)

sanitize: build/address/.built ## the tests of the engine and of broken files with AddressSanitizer (slow)
	$(call with,address,$(call preload,asan) ASAN_OPTIONS=detect_leaks=0) tests/engine tests/persist/test_fuzz.py $(ARGS)

# Python is not instrumented, but its locks are known to the sanitizer, which checks what the engine does. The sanitizer
# cannot be loaded together with polars, nor followed into forked processes: tests of both are not here.
THREADED := $(wildcard tests/test_threads.py) tests/test_online.py tests/fleet/test_fleet_threads.py \
  tests/estimators/test_robustness.py
sanitize-threads: build/thread/.built ## the tests with threads with ThreadSanitizer (slow)
	$(call with,thread,$(call preload,tsan) TSAN_OPTIONS=suppressions=$(OTHER_BUILD)/thread_sanitizer.supp) -k thread $(THREADED) $(ARGS)

soak: $(INSTALLED) ## the tests that take very long
	$(BIN)/pytest -m soak $(SOME)

mutants: $(INSTALLED) ## plant faults one by one; the tests must notice (ARGS="graph --size 30"; pip install -e 'lab[mutants]' first)
	$(BIN)/python -m omkl_lab.mutants $(ARGS)

bench: $(INSTALLED) ## benchmark: results and page in build/ (ARGS="--quick"; pip install -e 'lab[peers]' for other libraries)
	@mkdir -p build
	@$(BIN)/omkl-lab bench --json build/bench.json --html build/bench.html $(ARGS)

format: $(INSTALLED) ## format Python and C++
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

equations: $(INSTALLED) ## write docs/equations.md from the equation numbers in the source
	$(BIN)/python -m omkl_lab.equations

readme: $(INSTALLED) ## write generated pages, parts of pages and pictures from results/
	$(BIN)/python -m omkl_lab.readme

docs: $(DOCUMENTED) ## build the site in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: ## write constraints.txt from the newest versions
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python $(PIP) install $(BUILD_TOOLS)
	build/lock/bin/python $(PIP) install --no-build-isolation --config-settings build-dir=build/lock/cmake '.[dev,docs,spark]'
	build/lock/bin/python $(PIP) install --no-build-isolation --config-settings build-dir=build/lock/cmake-lab ./lab
	sed -n '/^#/p' constraints.txt > build/lock/constraints.txt
	build/lock/bin/python -m pip freeze --exclude omkl --exclude omkl-lab | sort -f >> build/lock/constraints.txt
	mv build/lock/constraints.txt constraints.txt

clean: ## remove what was built and cached, but not .venv
	rm -rf build lab/build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache $(INSTALLED)
	find src lab tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## remove .venv too: as after git clone
	rm -rf $(VENV)

# Set-up. An incomplete .venv would look complete to the next make, so it is removed again.
$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "omkl needs Python 3.11 or newer; try make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "on Debian: $(APT)" >&2; exit 1; }

$(INSTALLED): $(VENV)/pyvenv.cfg pyproject.toml lab/pyproject.toml $(CMAKE) constraints.txt $(CPP)
	@command -v $(CXX) >/dev/null && \
	  $(BIN)/python -c 'import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' || \
	  { echo "omkl's engine needs a C++ compiler and Python's headers; on Debian: $(APT)" >&2; exit 1; }
	@echo "Setting up .venv and building omkl (a few minutes the first time)"
	@$(BIN)/python $(PIP) install --constraint constraints.txt $(BUILD_TOOLS)
	@$(BIN)/python $(PIP) install --no-build-isolation --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python $(PIP) install --no-build-isolation --constraint constraints.txt --editable lab
	@$(MODULES) > $(VENV)/.modules
	@touch $@

# The tools for the site are only installed when it is built.
$(DOCUMENTED): $(INSTALLED)
	@echo "Installing the tools for the site"
	@$(BIN)/python $(PIP) install --no-build-isolation --constraint constraints.txt --editable '.[docs]'
	@touch $@
