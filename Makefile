# Needs the environment of the README's second command; PYTHON names another one.
PYTHON ?= .venv/bin/python
BIN := $(dir $(PYTHON))

.PHONY: bench cases crossed docs export format freeze heavy kill kill-backups kill-secrets lag lint load million nodejs odd overload picture power-cuts schemathesis slow soak storm teeth test upgrades

test:
	$(PYTHON) -m pytest

# The same with a table of the folders and files that cost most processor time; PLACE names a part.
slow:
	$(PYTHON) -m pytest --cost $(PLACE)

# A node is killed under load, again and again; the ordinary run does it thirty times.
kill:
	KILL_ROUNDS=$(or $(ROUNDS),100) $(PYTHON) -m pytest tests/faults/test_kill.py

# The power goes at any moment, and what was synced is left; the ordinary run tries a hundred and fifty moments.
power-cuts:
	POWER_CUTS=$(or $(COUNT),20000) $(PYTHON) -m pytest -n 0 -s -o timeout=3600 tests/faults/test_power_cut.py

# An hour of steady load; the ordinary run has six seconds of it.
soak:
	SOAK_MINUTES=$(or $(MINUTES),60) $(PYTHON) -m pytest -n 0 -s -o timeout=7200 tests/faults/test_soak.py

# Sixty-four of the worst bodies and a thousand slow clients; the ordinary run sends a few.
heavy:
	HEAVY=1 $(PYTHON) -m pytest -n 0 -s -o timeout=900 tests/faults/test_heavy.py

# Two hundred clients at once with the requests of a release; the ordinary run sends five thousand.
load:
	LOAD_REQUESTS=$(or $(COUNT),20000) $(PYTHON) -m pytest -n 0 -s -o timeout=1200 tests/limits/test_load.py

# A gateway without each of its guards is found by the proof that rests on it; the ordinary run tries four.
teeth:
	TEETH=100 $(PYTHON) -m pytest -n 0 -o timeout=900 tests/faults/test_teeth.py

# Nodes of earlier versions come up to date, each killed on the way at many points; the ordinary run kills it four times.
upgrades:
	UPGRADE_KILLS=$(or $(KILLS),50) $(PYTHON) -m pytest -n 0 -o timeout=900 tests/flows/test_upgrade.py

# One more of them, made by the present version; NAME as in 18-raises.
freeze:
	$(PYTHON) -m tools.freeze $(NAME)

# A rotation of the key ring is killed, or loses its power, at each of its writes; the ordinary run tries one of nineteen.
kill-secrets:
	SECRETS_EVERY=$(or $(EVERY),1) $(PYTHON) -m pytest -n 0 -o timeout=1200 tests/faults/test_kill_secrets.py

# A copy by the clock is killed at each line of its code; the ordinary run tries one of twenty-nine.
kill-backups:
	BACKUP_EVERY=$(or $(EVERY),1) $(PYTHON) -m pytest -n 0 -o timeout=1800 tests/faults/test_kill_backups.py

# Odd answers of a vendor, made by a generator; the ordinary run asks for three hundred. SEED repeats a run.
odd:
	ODD_ANSWERS=$(or $(COUNT),10000) ODD_SEED=$(or $(SEED),0) $(PYTHON) -m pytest tests/faults/test_odd_answers.py

# Streams over endpoints that do everything wrong now and then, while their node is stopped and killed; the ordinary run
# plays 240. SEED repeats a run.
storm:
	STORM_STREAMS=$(or $(COUNT),1000) STORM_SEED=$(or $(SEED),0) $(PYTHON) -m pytest -n 0 -s -o timeout=1200 \
	  tests/faults/test_storm.py

# A daemon is asked for far more streams at once than it may have under way; the ordinary run asks for 60.
overload:
	OVERLOAD_STREAMS=$(or $(COUNT),2000) $(PYTHON) -m pytest -n 0 -s tests/flows/test_overload_daemon.py

# Every route of the written API with made-up requests; the ordinary run sends three to each. SEED repeats a run.
schemathesis:
	SCHEMA_EXAMPLES=$(or $(COUNT),200) SCHEMA_SEED=$(or $(SEED),0) $(PYTHON) -m pytest -n 0 -s -o timeout=3600 \
	  tests/api/test_schemathesis.py

# The worst input of each kind beside a paced stream, with what each row took.
lag:
	LAG_ONLY="$(or $(ROW), )" $(PYTHON) -m pytest -n 0 -s tests/lag

# Exports while 200 requests a second are served; the ordinary run does it for three seconds.
export:
	EXPORT_SECONDS=$(or $(SECONDS),180) $(PYTHON) -m pytest tests/limits/test_export.py

# The case files alone, with every failing assertion.
cases:
	$(PYTHON) tests/cases/run_cases.py --jobs 2 -v

# Google's clients that run in Node, fetched into /tmp/gwd-node; the ordinary run skips them.
nodejs:
	mkdir -p /tmp/gwd-node && cd /tmp/gwd-node && \
	  npm install --no-audit --no-fund --ignore-scripts @google/genai@3.3.0 @google/gemini-cli@0.61.0
	GWD_NODE_MODULES=/tmp/gwd-node/node_modules $(PYTHON) -m pytest -n 0 tests/clients/test_gemini_node.py

# One conversation through every dialect at every vendor format; writes the table of docs/dialects.md.
crossed:
	WRITE_CROSSED=1 $(PYTHON) -m pytest -n 0 tests/flows/test_crossed.py

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

# A node with a million requests behind it beside one with a thousand; made once, in /tmp/million.
million:
	$(PYTHON) -m tests.bench.million --count $(or $(COUNT),1000000)

# What is made from the code: pages of docs/ (API, settings, errors, metrics, commands, man), gwctl/schema.json.
docs:
	$(PYTHON) -m tools.pages

# The session of the README, played against a demo node and drawn.
picture:
	$(PYTHON) -m tools.picture $(or $(PORT),8080)
