# Needs the environment of the README's second command; PYTHON names another one.
PYTHON ?= .venv/bin/python
BIN := $(dir $(PYTHON))

.PHONY: test lint format

test:
	$(PYTHON) -m pytest

lint:
	$(BIN)ruff format --check .
	$(BIN)ruff check .
	$(BIN)mypy
	$(BIN)lint-imports

format:
	$(BIN)ruff format .
	$(BIN)ruff check --fix .
