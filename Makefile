# Two commands for a newcomer: `make demo` and `make test`. Both make what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo dev test lint types browser install-browser lock clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.pipeline
	$(BIN)/memory-pipeline demo

dev: $(VENV)/.pipeline
	$(BIN)/memory-pipeline dev $(ARGS)

test: lint types browser
	$(BIN)/pytest -q -n auto

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# Pages are looked at in a real browser: the one that MEMORY_TEST_BROWSER names, or one that is installed already.
browser:
	@[ -n "$$MEMORY_TEST_BROWSER" ] || for name in chromium chromium-browser google-chrome; do \
	  command -v $$name > /dev/null && exit 0; done || $(MAKE) -s install-browser

install-browser:
	@[ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null || { \
	  echo "error: no browser for the tests of pages: install Chromium (Debian: apt-get install chromium), or name one with MEMORY_TEST_BROWSER"; exit 1; }
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium

# What is installed is what the constraints file names; `make lock` writes it.
INSTALL := $(BIN)/python -m pip install -q -c constraints.txt
$(VENV)/.pipeline: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[pipeline,web]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.pipeline

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Resolve every bound anew, and keep what was resolved.
lock:
	rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install -q 'torch==2.13.0' && $(VENV)/lock/bin/python -m pip install -q -e '.[dev]'
	{ echo "# Every version that 'make demo' and 'make test' install; written by 'make lock'."; \
	  $(VENV)/lock/bin/python -m pip freeze --exclude-editable | sed 's/ @ .*//; s/+cpu//'; } > constraints.txt
	rm -rf $(VENV)/lock

clean:
	rm -rf $(VENV) .memory-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
