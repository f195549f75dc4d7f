# The two commands: `make run` shows Sash on real data, `make test` proves it. Each sets up what it needs.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python

SOURCES := $(shell find src -name __pycache__ -prune -o -type f -print) CMakeLists.txt pyproject.toml tools/setup_env.py
NATIVE  ?=
SETUP   := $(PYTHON) tools/setup_env.py $(if $(NATIVE),--native)
TESTED  := src tests tools examples

.PHONY: run test soak docs pictures test-spark test-kafka test-frames lint format stubs stress wheel wheels sanitize tsan clean

run: $(VENV)/.run
	rm -rf out/demo
	$(VENV)/bin/sash demo --chart out/demo.png --out out/demo

# One process has all that needs Spark, the others share the rest (tests/conftest.py).
test: lint
	$(PY) -m pytest -m "not stress and not kafka and not lake" -n auto --maxprocesses 8 --dist loadgroup

# All nets for a time, in two processes: SOAK_MINUTES=60. Ends at the first wrong answer, with the seed that gives it again.
SOAK_MINUTES ?= 60

soak: $(VENV)/.test
	$(PY) -m tests.truth.soak --minutes $(SOAK_MINUTES)
	$(PY) -m pytest -m "stress and spark" tests/spark/test_restart.py tests/spark/test_damage.py --timeout 7200

stress: $(VENV)/.test
	$(PY) -m pytest -m stress

lint: $(VENV)/.test
	$(PY) -m ruff check $(TESTED)
	$(PY) -m ruff format --check $(TESTED)
	$(PY) -m mypy -p sash
	$(PY) -m mypy tools/*.py
	$(PY) tools/stubs.py --check
	$(VENV)/bin/clang-format --dry-run --Werror $$(find src/core -name '*.hpp' -o -name '*.cpp')

format: $(VENV)/.test
	$(PY) -m ruff check --fix $(TESTED)
	$(PY) -m ruff format $(TESTED)
	$(VENV)/bin/clang-format -i $$(find src/core -name '*.hpp' -o -name '*.cpp')

# The types of the core, as its bindings tell them.
stubs: $(VENV)/.test
	$(PY) tools/stubs.py

wheel: $(VENV)/.run
	mkdir -p dist && cp build/wheels/sash-*.whl dist/

# The docs as a site in out/site that works from the file system, with search and without a network.
docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "open out/site/index.html"

# The pictures of docs/algorithms.md.
pictures: $(VENV)/.test
	$(PY) tools/pictures.py

# The files of a release: an sdist and a wheel for every CPython that is installed, tested.
wheels:
	$(PYTHON) tools/wheels.py

# The tests of the pipeline on another Spark, in an environment of its own: make test-spark VERSION=4.1 (or 4.0, 4.2), all of them or
# ONLY="tests/spark/test_batch.py". Formats that have no connector for the newest Spark are tested here too.
VERSION ?= 4.0
ONLY    ?= tests/spark

test-spark: $(VENV)/.test wheel
	test -x .venv-spark$(VERSION)/bin/python || $(PYTHON) -m venv .venv-spark$(VERSION)
	.venv-spark$(VERSION)/bin/python -m pip --disable-pip-version-check -q install "pyspark==$(VERSION).*" -r $(VENV)/.packages
	.venv-spark$(VERSION)/bin/python -m pip --disable-pip-version-check -q install --no-deps --force-reinstall dist/sash-*.whl
	.venv-spark$(VERSION)/bin/python -m pytest -m "(spark or lake) and not stress" $(ONLY)

# A real broker on loopback, its jars from Maven: JSON in, features out, killed and started again in mid-stream.
test-kafka: $(VENV)/.test
	$(PY) -m pytest -m kafka tests/kafka

# The tests of frames on the oldest and the newest pandas, Polars, PyArrow and DuckDB they run on, in environments of their own.
OLDEST := pandas==2.2.0 polars==1.10.0 pyarrow==19.0.0 duckdb==1.1.0 numpy==1.26.0
NEWEST := pandas polars pyarrow duckdb numpy

test-frames: wheel
	for end in oldest newest; do \
		test -x .venv-$$end/bin/python || $(PYTHON) -m venv .venv-$$end; \
		case $$end in oldest) what="$(OLDEST)";; *) what="-U $(NEWEST)";; esac; \
		.venv-$$end/bin/python -m pip --disable-pip-version-check -q install $$what pytest pytest-timeout hypothesis tzdata || exit 1; \
		.venv-$$end/bin/python -m pip --disable-pip-version-check -q install --no-deps --force-reinstall dist/sash-*.whl || exit 1; \
		.venv-$$end/bin/python -m pytest tests/frames || exit 1; \
	done

# The core under all three sanitizers, by one command: the tests of Python on a build of their own with ASan and UBSan, state machines of
# windows, exact sums and the live engine under both, threads under TSan.
sanitize: $(VENV)/.test tsan
	tests/asan.sh
	tests/live.sh
	tests/sanitize.sh

# Threads alone: one writer and three readers of a wheel, windows and keyed wheels in four threads.
tsan:
	tests/tsan.sh

# `make run` needs the packages of the demo, `make test` all of them and the loops of `sash bench`.
$(VENV)/.run: $(SOURCES)
	$(SETUP) demo
	@touch $@

$(VENV)/.test: $(SOURCES)
	$(SETUP) --bench all
	@touch $(VENV)/.run $@

clean:
	rm -rf build dist out $(VENV) .venv-spark* .venv-oldest .venv-newest
