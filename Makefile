# `make` alone prints this list.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
CODE := src tests bench scripts

.DEFAULT_GOAL := help
.PHONY: help run test check fix bench docs clean

help:  ## print this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

run: $(VENV)/server  ## start everything on this machine and print the dashboard's address
	@exec $(BIN)/jobsight up

test: $(VENV)/test  ## everything: format, lint, types, all tests with real servers
	@./scripts/servers
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest --numprocesses 2 --dist loadfile

check: $(VENV)/test lint  ## format, lint, types and the quick tests
	$(BIN)/pytest --numprocesses 2 --dist loadfile -m "not slow and not browser"

.PHONY: lint
lint: $(VENV)/test
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

fix: $(VENV)/test  ## format and mend what can be mended
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(VENV)/test  ## what the agent costs, as ratios against ps and psutil; whether findings are right
	$(BIN)/python bench/agent_cost.py
	$(BIN)/python -m bench.findings_truth

docs: $(VENV)/test  ## write the reference pages from the code
	$(BIN)/python scripts/reference.py

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "jobsight needs Python 3.11 or newer; say which: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/server: $(VENV)/bin/pip pyproject.toml constraints.txt
	@echo "installing jobsight and what its server needs …"
	@$(INSTALL) --editable '.[server]'
	@touch $@

$(VENV)/test: $(VENV)/bin/pip pyproject.toml constraints.txt
	@echo "installing jobsight and what its tests need …"
	@$(INSTALL) --editable '.[test]'
	@touch $(VENV)/server $@
