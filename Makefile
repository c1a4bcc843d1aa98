# Needs the environment of the README's second command; PYTHON names another one.
PYTHON ?= .venv/bin/python
BIN := $(dir $(PYTHON))

.PHONY: test lint format kill cases export

test:
	$(PYTHON) -m pytest

# A node is killed under load, again and again; the ordinary run does it thirty times.
kill:
	KILL_ROUNDS=$(or $(ROUNDS),100) $(PYTHON) -m pytest tests/faults/test_kill.py

# Exports while 200 requests a second are served; the ordinary run does it for three seconds.
export:
	EXPORT_SECONDS=$(or $(SECONDS),180) $(PYTHON) -m pytest tests/limits/test_export.py

# The case files alone, with every failing assertion.
cases:
	$(PYTHON) tests/cases/run_cases.py --jobs 2 -v

lint:
	$(BIN)ruff format --check .
	$(BIN)ruff check .
	$(BIN)mypy
	$(BIN)lint-imports

format:
	$(BIN)ruff format .
	$(BIN)ruff check --fix .

bench:
	$(PYTHON) tests/bench/peers.py --quick
