# The two commands: `make run` shows Sash on real data, `make test` proves it. Each sets up what it needs.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check -q

SOURCES := $(shell find src -name __pycache__ -prune -o -type f -print) CMakeLists.txt pyproject.toml
NATIVE  ?=
BUILD_FLAGS = $(if $(NATIVE),-Ccmake.define.SASH_NATIVE=ON)
INSTALL = $(PIP) install --no-build-isolation --no-deps --force-reinstall $(BUILD_FLAGS)

# Everything that any extra asks for, read from pyproject.toml.
DEPS = $(PY) -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb')); \
	print('\n'.join(sorted({*p['build-system']['requires'], *p['project']['dependencies'], *(d for e in p['project']['optional-dependencies'].values() for d in e)})))"

.PHONY: run test test-spark40 lint format stress wheel sanitize tsan clean env bench-env

run: env
	rm -rf out/demo
	$(VENV)/bin/sash demo --chart out/demo.png --out out/demo

test: bench-env lint
	$(PY) -m pytest -m "not stress"

stress: env
	$(PY) -m pytest -m stress

lint: env
	$(PY) -m ruff check src tests
	$(PY) -m ruff format --check src tests
	$(PY) -m mypy -p sash
	$(VENV)/bin/clang-format --dry-run --Werror $$(find src/core -name '*.hpp' -o -name '*.cpp')

format: env
	$(PY) -m ruff check --fix src tests
	$(PY) -m ruff format src tests
	$(VENV)/bin/clang-format -i $$(find src/core -name '*.hpp' -o -name '*.cpp')

wheel: env
	$(PIP) wheel --no-build-isolation --no-deps $(BUILD_FLAGS) -w dist .

# The tests of the pipeline on the oldest Spark it runs on, in an environment of its own.
test-spark40: wheel
	test -x .venv-spark40/bin/python || $(PYTHON) -m venv .venv-spark40
	.venv-spark40/bin/python -m pip --disable-pip-version-check -q install "pyspark==4.0.*" -r $(VENV)/requirements.txt
	.venv-spark40/bin/python -m pip --disable-pip-version-check -q install --no-deps --force-reinstall dist/sash-*.whl
	.venv-spark40/bin/python -m pytest -m "spark and not stress" tests/spark

# The state machines of the core under ASan and UBSan, in a build of their own.
sanitize: env
	tests/asan.sh
	tests/sanitize.sh

# One writer and three readers of a wheel under TSan.
tsan:
	tests/tsan.sh

env: $(VENV)/.package

$(VENV)/.deps: pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(DEPS) > $(VENV)/requirements.txt
	$(PIP) install -r $(VENV)/requirements.txt
	touch $@

$(VENV)/.package: $(VENV)/.deps $(SOURCES)
	$(INSTALL) .
	touch $@

# The loops of `sash bench` are a third of the compiling: only benchmarks and tests need them.
bench-env: $(VENV)/.bench
$(VENV)/.bench: $(VENV)/.package
	$(INSTALL) -Ccmake.define.SASH_BENCH=ON .
	touch $@

clean:
	rm -rf build dist out $(VENV) .venv-spark40
