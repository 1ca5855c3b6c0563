# make run    the service, set up from nothing        make test   every test, on both engines
# make check  lint, types, floors, contracts          make bench  the measured comparison
.PHONY: run test check bench env lock contract clean
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin

help:
	@sed -n '1,2s/^# //p' Makefile

run: .venv/run
	@$(BIN)/tradepost serve --welcome

# Up to four workers share the tests, each with its own PostgreSQL. Compiled tests are kept: rewriting them takes seconds.
test: .venv/dev
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses logical --maxprocesses 4 --dist worksteal

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/tradepost openapi --check contract

bench: .venv/dev
	$(BIN)/python -m benchmarks

env: .venv/dev

# The committed contracts, written anew; their diff is the review.
contract: .venv/dev
	$(BIN)/tradepost openapi --write contract

# The locked dependencies, resolved anew for every supported Python and platform.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade

lock: .venv/dev
	$(LOCK) --output-file requirements/build.lock requirements/build.in
	$(LOCK) --output-file requirements/run.lock pyproject.toml
	$(LOCK) --output-file requirements/dev.lock --extra dev --constraint requirements/run.lock pyproject.toml

clean:
	rm -rf .venv var .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tradepost needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	@touch $@

PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.venv/run: .venv/made requirements/build.lock requirements/run.lock pyproject.toml
	$(PIP) --require-hashes --requirement requirements/build.lock --requirement requirements/run.lock
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

.venv/dev: .venv/run requirements/dev.lock
	$(PIP) --require-hashes --requirement requirements/dev.lock
	@touch $@
