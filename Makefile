# Two commands do everything from a fresh clone, the set-up included:
#   make demo   the main job on data the project ships (no download, no account)
#   make test   lint, type check and the whole test suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

export TF_CPP_MIN_LOG_LEVEL ?= 3
# Byte code is kept even where the environment says not to: compiling is a quarter of every start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-lowest test-newest test-browser docs bench lint types pytest clean help

help:
	@grep -E '^#   make' Makefile | sed 's/^# *//'

# Installed once; again only when the pins change.
$(READY): requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, $$($(PYTHON) --version) found: run make PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@# Compiles on all cores what every process imports; the rest is compiled when it is first imported.
	@for name in tensorflow keras numpy; do $(BIN)/python -m compileall -q -j 0 $(VENV)/lib/python3*/site-packages/$$name; done >/dev/null 2>&1 || true
	@touch $@

demo: $(READY)
	$(BIN)/dsa-keras demo

test: lint types pytest

lint: $(READY)
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

pytest: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --ignore tests/browser -m "not slow"

# With the tests that take long and repeat in another form what a quicker one shows.
test-all: lint types
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --ignore tests/browser

# The tests with the lowest versions that pyproject.toml allows, and with the newest: each in an environment of its own.
BOUNDS_TESTS ?= -m "not slow" --ignore tests/browser --ignore tests/test_docs.py --ignore tests/test_contributing.py
build/%/.installed: pyproject.toml
	rm -rf build/$*
	$(PYTHON) -m venv build/$*
	build/$*/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/$*/bin/uv pip install --quiet --python build/$*/bin/python --resolution $* --editable '.[datasets,tuning,export,dev]'
	@touch $@

test-lowest: build/lowest-direct/.installed
	build/lowest-direct/bin/python -m pytest -n 2 --dist loadfile $(BOUNDS_TESTS)

test-newest: build/highest/.installed
	build/highest/bin/python -m pytest -n 2 --dist loadfile $(BOUNDS_TESTS)

# Needs Debian's chromium, which it does not install; without it the tests are skipped and say so.
test-browser: $(READY)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  echo "No Chromium found: install it with apt-get install chromium"
	$(BIN)/python -m pytest tests/browser

# The pages of README.md, docs/ and results/ and the reference of the classes, into build/site. A broken
# link fails, and so does a page that would load something from elsewhere when it is looked at. (--quiet
# would hide the warnings from --strict too.)
DOCS := build/docs-venv
$(DOCS)/.installed: docs/requirements.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	@touch $@

docs: $(DOCS)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --clean
	@if grep -rnoE '<(script|link|img|iframe|source)[^>]* (src|href)="?(https?:)?//[^> ]*' --include='*.html' build/site; then \
	  echo "These pages load something from elsewhere"; exit 1; fi

# A short look at the speed, on generated sentences, against PyTorch (installed for it) and a bare matrix product.
bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(BIN)/python -m benchmarks.speed --short

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build
