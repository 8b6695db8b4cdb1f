# Everything a contributor types. `make` alone lists the targets.
# All paths are relative, so that a checkout below a folder with a space in its name works too.

.DEFAULT_GOAL := help
SHELL := /bin/sh

# Tests start hundreds of Pythons, and each would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

# The newest Python that Spark 4.1 supports and that can make a virtual environment.
ifndef PYTHON
PYTHON := $(shell for python in python3.13 python3.12 python3.11 python3.14 python3; do \
	"$$python" -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' \
	2>/dev/null && echo "$$python" && break; done)
endif

BIN := .venv/bin
PIP := -m pip install --quiet --disable-pip-version-check
# Three files at a time, because Java's start-up and fault tests wait; in the order of
# conftest.py, where xdist's own would leave the longest file alone at the end.
PYTEST := $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# A virtual environment holds absolute paths, so one that came from elsewhere is made anew.
ifneq ($(shell cat .venv/.installed 2>/dev/null),$(CURDIR))
.venv/.installed: FORCE
endif
ifneq ($(shell cat .venv-localstack/.installed 2>/dev/null),$(CURDIR))
.venv-localstack/.installed: FORCE
endif

# Standard library only: the product's own search for Java, asked before anything is installed.
define FIND_JAVA
import os, pathlib, sys
from lakeload.machine.java import find_java, install_command
from lakeload_jobs.contract.errors import MachineNotReady
try:
    find_java(os.environ)
except MachineNotReady as error:
    system = pathlib.Path("/etc/os-release")
    print(install_command(sys.platform, system.read_text() if system.is_file() else ""))
    sys.exit(error.message)
endef
export FIND_JAVA

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: python java .venv/.installed ## make .venv with lakeload and everything its tests need

.PHONY: demo
demo: setup ## load sample tables into an embedded AWS, in about a minute
	@$(BIN)/lakeload demo

.PHONY: test
test: setup localstack ## run every test
	$(PYTEST)

.PHONY: changed
changed: setup localstack ## lint, and the tests that a change leads to, in about two minutes
	@$(BIN)/python -m tests.changed

.PHONY: unit
unit: setup ## run the tests that need no server and no Java
	$(PYTEST) --numprocesses 0 tests/unit

.PHONY: e2e
e2e: setup ## run the tests against real servers: docker compose where an engine answers
	@if docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; then \
	  trap 'docker compose down --volumes --timeout 5' EXIT; \
	  docker compose up --detach --wait \
	  && LAKELOAD_TEST_AWS_ENDPOINT=http://127.0.0.1:9856 \
	     LAKELOAD_TEST_LOCALSTACK_ENDPOINT=http://127.0.0.1:9866 \
	     $(PYTEST) tests/integration tests/e2e; \
	else \
	  echo "no Docker engine with compose answers here: the servers run as processes of this host"; \
	  $(MAKE) --no-print-directory localstack && $(PYTEST) tests/integration tests/e2e; \
	fi

.PHONY: lint
lint: setup ## ruff, format, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: docs
docs: setup ## build the documentation site into site/
	$(BIN)/python -m mkdocs build --strict

.PHONY: faults
faults: setup ## kill and disturb writers and whole syncs some 4,800 times, in about an hour
	LAKELOAD_TEST_EXHAUSTIVE=1 LAKELOAD_TEST_TEXTS=30000 $(PYTEST) -m exhaustive
	LAKELOAD_TEST_EXHAUSTIVE=1 $(PYTEST) tests/unit tests/integration/sources/files/spark
	$(BIN)/python -m tests.faults

.PHONY: bench
bench: setup ## compare with other tools, side by side, in about three hours
	@$(BIN)/python -m bench.whole

.PHONY: bench-quick
bench-quick: setup ## the same with fewer rows and one round, in less than six minutes
	$(BIN)/python -m bench --rows 1M --runs 1 --scaling 0 --no-results
	$(BIN)/python -m bench.postgres --rows 100000 --runs 1 --large 0

.PHONY: clean
clean: ## remove what make and the tests made here
	rm -rf .venv .venv-localstack dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
	  .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: python
python:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "lakeload needs a Python from 3.11 to 3.14 with its venv module, and none was found." >&2; \
	  echo "On Debian or Ubuntu: sudo apt-get install -y python3 python3-venv" >&2; \
	  echo "One that is not on PATH: make PYTHON=/path/to/python3 setup" >&2; \
	  exit 1; \
	fi

# Root on Debian or Ubuntu gets Java installed; anybody else is told the command.
.PHONY: java
java: python
	@command=$$(PYTHONPATH=cli:sparkjobs PYTHONDONTWRITEBYTECODE=1 "$(PYTHON)" -c "$$FIND_JAVA") \
	|| if [ -z "$$command" ]; then \
	  echo "the search for Java failed, see above" >&2; exit 1; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$${command##* }"; \
	else \
	  echo "install it with: $$command" >&2; exit 1; \
	fi

.PHONY: localstack
localstack: .venv-localstack/.installed

.venv/.installed: pyproject.toml sparkjobs/lakeload_jobs/__init__.py
	@echo "setting up .venv (once, about a minute)"
	@test "$$(cat .venv/.installed 2>/dev/null)" = "$(CURDIR)" || "$(PYTHON)" -m venv --clear .venv
	@rm -f .venv/.installed
	@$(BIN)/python $(PIP) --editable '.[demo,dev]'
	@printf '%s' "$(CURDIR)" > .venv/.installed

# An environment of its own: LocalStack's pins and ours exclude each other.
.venv-localstack/.installed: tests/servers/localstack-requirements.txt
	@echo "setting up .venv-localstack (once, about a minute, 520 MB)"
	@test "$$(cat .venv-localstack/.installed 2>/dev/null)" = "$(CURDIR)" || "$(PYTHON)" -m venv --clear .venv-localstack
	@rm -f .venv-localstack/.installed
	@.venv-localstack/bin/python $(PIP) --requirement tests/servers/localstack-requirements.txt
	@printf '%s' "$(CURDIR)" > .venv-localstack/.installed

.PHONY: FORCE
FORCE:
