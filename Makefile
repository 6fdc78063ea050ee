# One door for everything: `make` lists the targets.
# The environment is .venv; no target needs it to be active.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The first of these that works makes .venv. Another one: make setup PYTHON=/path/to/python3.12
PYTHON ?= python3.11 python3 python3.12 python3.13 python3.14 python
WORKERS ?= 2

# What is checked out here is what runs, whatever the shell holds.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

PY := .venv/bin/python
# worksteal: the slow ones lie together, and one worker would keep them
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist worksteal
SETUP := .venv/setup.stamp
SETUP_BENCH := .venv/bench.stamp
# By environment, not by -c: the pins also hold where pip builds this package, apart from .venv.
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(PY) -m pip install
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

.PHONY: help setup test test-fast test-all check demo bench docs format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(SETUP)  ## make .venv with everything a developer needs (minutes, once)

test: check  ## what continuous integration runs: check, fast tests, a sample of the slow ones
	@echo "== fast tests"
	@$(PYTEST)
	@echo "== slow tests, every fourth"
	@$(PYTEST) tests -m slow --slow sample || test $$? -eq 5  # 5: there are none

test-fast: $(SETUP)  ## the fast tests alone
	@$(PYTEST)

test-all: check  ## everything, all slow tests included
	@echo "== all tests"
	@$(PYTEST) --slow all

check: $(SETUP)  ## format, lint, types
	@echo "== ruff format"
	@$(PY) -m ruff format --check .
	@echo "== ruff check"
	@$(PY) -m ruff check .
	@echo "== mypy"
	@$(PY) -m mypy

demo: $(SETUP)  ## the doctor on a broken multi-task program, then the repaired one on real data
	@$(PY) examples/census_mmoe/demo.py

bench: $(SETUP_BENCH)  ## every benchmark; each prints a table of ratios
	@for file in benchmarks/[a-z]*.py; do \
		echo "== $$file"; file=$${file%.py}; $(PY) -m "$${file//\//.}" || exit 1; \
	done

docs: $(SETUP)  ## write the tables in README.md and docs/ that are made from the code
	@$(PY) docs/readme_rules.py
	@OMP_NUM_THREADS=1 $(PY) -m docs.methods_table

format: $(SETUP)  ## write the files as `make check` wants them
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

clean:  ## remove .venv and all caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(SETUP): pyproject.toml constraints.txt
	@python=""; for name in $(PYTHON); do \
		if "$$name" -c '$(USABLE)' >/dev/null 2>&1; then python=$$name; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "gradwright needs Python 3.11 or newer, with its venv module. Tried: $(PYTHON)." >&2; \
		echo "Install one, or say where it is: make setup PYTHON=/path/to/python3.11" >&2; \
		exit 1; \
	fi; \
	echo "== setup: .venv from $$("$$python" --version), then some 60 packages (minutes, once)"; \
	"$$python" -m venv .venv
	@$(INSTALL) -e '.[dev,lightning,transformers]'
	@# Alone: it asks for torchvision, whose CUDA build breaks Transformers beside a CPU torch.
	@$(INSTALL) --no-deps LibMTL
	@touch $@

$(SETUP_BENCH): $(SETUP)
	@echo "== setup: the libraries that the benchmarks compare with"
	@$(INSTALL) -e '.[bench]'
	@touch $@
