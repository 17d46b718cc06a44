# Every target sets itself up: a virtual environment in .venv with marey installed in it.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
PAGE := src/marey/viewer/page
PAGE_SOURCES := $(shell find $(PAGE) -type f -not -path '*/node_modules/*' -not -path '*/dist/*')

.PHONY: demo kernels all-kernels wheel test check bench bench-smoke coverage docs interop clean

demo: kernels
	$(BIN)/marey demo

# Compiled once, in parallel, and again where sources have changed.
kernels: $(STAMP)
	$(BIN)/marey compile

# Those of every method, as tests and wheels need them.
all-kernels: $(STAMP)
	$(BIN)/marey compile --all

# A wheel for this platform and this Python, with compiled kernels in it.
wheel: all-kernels
	MAREY_WHEEL_KERNELS=1 $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# A worker that has nothing to do takes tests from the other, so that files stay together
# and their fixtures are made once. Bytecode is kept even where the environment forbids
# it: every program that a test starts would compile the package again. Kernels are
# compiled before, because workers would each compile the same.
test: all-kernels interop/node_modules
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --dist worksteal

check: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/node $(PAGE)/node_modules/typescript/bin/tsc -p $(PAGE)

# Every task, for hours; BENCH: names of some, --quick for a look. Records docs/benchmarks.md.
bench: kernels
	$(BIN)/python -m benchmarks --record $(BENCH)

# Ratios of times within one run, which a busy machine hardly changes.
# One thread each: threads of BLAS that wait would count as work.
bench-smoke: kernels
	MAREY_COMPILED_KERNELS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m benchmarks --smoke $(SMOKE_FLAGS)

# Compiled kernels show their lines only with the compiler off, so the tests that reach
# them run a second time; fuzzing adds time and no lines.
FUZZ := damage or damaged or truncation or cut_is
KERNELS := numbers bvh amc htr csv trc text_edges
SLOW := bounded or ten_thousand or left_out_rests
COVER := --cov=marey.io --cov-branch --cov-report=

coverage: $(STAMP)
	COVERAGE_FILE=.coverage.jit $(BIN)/python -m pytest -q -n auto $(COVER) -k "not ($(FUZZ))"
	JAXTYPING_DISABLE=1 NUMBA_DISABLE_JIT=1 COVERAGE_FILE=.coverage.nojit $(BIN)/python -m pytest -q -n auto -W "ignore:overflow encountered" $(COVER) $(KERNELS:%=tests/test_%.py) -k "not ($(FUZZ) or $(SLOW))"
	$(BIN)/python -m coverage combine .coverage.jit .coverage.nojit
	$(BIN)/python -m coverage report --include='src/marey/io/*' --fail-under=95

# What marey writes, opened by programs with environments of their own. Blender needs Python
# 3.11 and an old NumPy. INTEROP_FLAGS: a motion file, --pictures folder.
BLENDER_PYTHON ?= python3.11
BLENDER := interop/blender

interop: $(STAMP) interop/node_modules $(BLENDER)/installed
	$(BIN)/python interop/check.py $(BLENDER)/bin/python $(INTEROP_FLAGS)
	$(BIN)/python interop/opensim_check.py

interop/node_modules: $(STAMP) interop/package.json
	cd interop && PATH="$(CURDIR)/$(BIN):$$PATH" npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

$(BLENDER)/installed:
	$(BLENDER_PYTHON) -m venv $(BLENDER)
	$(BLENDER)/bin/python -m pip install --quiet --disable-pip-version-check bpy==5.0.1 'numpy<2'
	touch $@

docs: $(STAMP)
	$(BIN)/sphinx-build -W -q docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf .venv demo interop/node_modules interop/.opensim $(BLENDER) docs/_build docs/api docs/gallery dist build src/marey/compiled $(PAGE)/node_modules $(PAGE)/dist $(PAGE).html .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml hatch_build.py $(PAGE_SOURCES)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "marey needs Python 3.11 or newer")'
	test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)
