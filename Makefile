# Thin on purpose: the work is done by nexus_site/run and by management commands.

PYTHON ?= python3
VENV := .venv/bin/python
# One more than two cores: tests often wait, for a program, a browser or a moment.
TEST_WORKERS ?= 3
# A test that hangs for so many seconds ends its process, which says where each of its threads waits,
# and with it the run. No other process takes its place: it would begin with the same test.
HANGS_AFTER := 1200
HANGS = -o faulthandler_timeout=$(HANGS_AFTER) -o faulthandler_exit_on_timeout=true --max-worker-restart 0
PYTEST = $(VENV) -m pytest -q -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder $(HANGS)
SIEGE := $(VENV) -m pytest -q -s proofs/siege
RUNNING := var/up.pid

# Many processes start here. Each module is compiled for the first of them, not for each, also where
# the surroundings say that no bytecode may lie next to the sources.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/var/cache/bytecode

.DEFAULT_GOAL := help
.PHONY: help env up test demo check bench bench-compare proofs faults siege lock format audit
.NOTPARALLEL:

help: ## This list
	@sed -nE "s,^([a-z-]+):.*\#\# (.*),\1\t\2,p" $(MAKEFILE_LIST) | expand -t 16

env: ## The Python environment .venv, as requirements.txt says
	@$(PYTHON) nexus_site/run/env.py

# A file, not a phony target: when make alone is interrupted it deletes the file, and `up` stops.
up: $(RUNNING) ## The company at http://127.0.0.1:8000 (PORT=… for another); Ctrl-C ends it all
$(RUNNING): env
	@exec $(VENV) -m nexus_site.run up --pid-file $@

test: env ## The whole test suite, on a real PostgreSQL
	@$(PYTEST)

demo: env ## One day of the company, against a running `make up`
	@$(VENV) manage.py demo

check: env ## Style, words, types, layers, migrations, production settings
	@$(VENV) -m nexus_site.run.check

bench: env ## Compared with views written by hand, in turn; kept in docs/bench.json
	@$(VENV) manage.py bench

bench-compare: env ## What changed since the figures kept at FROM=commit
	@$(VENV) -m lab.bench.compare $(or $(FROM),HEAD) $(TO)

# The siege comes last and alone: it compares how fast a neighbour is answered.
proofs: HANGS_AFTER := 3600
proofs: env ## The long proofs: large state machines, kills, broken twins, the siege
	@$(PYTEST) proofs --ignore proofs/siege; ended=$$?; $(SIEGE) && exit $$ended

faults: env ## The kills of `make proofs`, 300 of them
	@NEXUS_KILLS=300 $(VENV) -m pytest -q -s proofs/faults

siege: env ## Hostile connections, bodies and addresses against a running company
	@$(SIEGE)

lock: env ## Compile each requirements.in into its requirements.txt
	@for in in requirements.in tests/clients/python/requirements.in; do \
		UV_PYTHON_DOWNLOADS=never $(VENV) -m uv pip compile -q --universal --python-version 3.11 \
			--generate-hashes "$$in" -o "$${in%.in}.txt" || exit 1; done

format: env ## Rewrite the code in the house style
	@$(VENV) -m ruff check --fix-only -q . ; $(VENV) -m ruff format -q .

audit: env ## Known vulnerabilities among the locked packages; fails if any cannot be looked up
	@$(VENV) -m pip_audit --strict --require-hashes --disable-pip -r requirements.txt || { \
		echo 'audit: FAILED. A package has a known vulnerability, or could not be looked up: nothing is proved' >&2; exit 1; }
