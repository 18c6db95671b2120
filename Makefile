# Every target makes its own environment in .venv from requirements.lock, once, and again when the lock changes.
# Another Python: make book PYTHON=python3.12

PYTHON ?= $(shell for p in python3.12 python3.11 python3.13 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
PROFILE ?= laptop
BIN := .venv/bin
READY := .venv/.ready

# The book never asks a model hub for anything unless you say so: make book HF_HUB_OFFLINE=0 PROFILE=small
HF_HUB_OFFLINE ?= 1
TOKENIZERS_PARALLELISM ?= false
export HF_HUB_OFFLINE TOKENIZERS_PARALLELISM

.PHONY: book book-fresh test lab lint clean environment

book: $(READY)
	$(BIN)/kbook book --profile $(PROFILE)

# The same, but nothing is taken from data/results or from earlier runs, which are kept aside.
book-fresh: $(READY)
	$(BIN)/kbook book --fresh --profile $(PROFILE)

test: $(READY)
	$(BIN)/python -m pytest

lab: $(READY)
	$(BIN)/jupyter lab --ServerApp.root_dir=. notebooks

lint: $(READY)
	$(BIN)/ruff check kbook tests
	$(BIN)/ruff format --check kbook tests
	$(BIN)/mypy
	$(BIN)/nbstripout --verify --keep-id notebooks/*.ipynb

environment: $(READY)

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "K-Book needs Python 3.11, 3.12 or 3.13 with venv: install one, or say PYTHON=..."; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps -e .
	@touch $(READY)

# Keeps .venv and the run store: what took time to get is not thrown away by habit.
clean:
	rm -rf _build book/chapters .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find kbook tests -name __pycache__ -type d -prune -exec rm -rf {} +
