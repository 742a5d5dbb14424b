# demo · check · test · proof · lab · build · site · bench · clean. Each sets up .venv itself, once: the
# stamp's name holds the hash of pyproject.toml, so a finished set-up is never repeated and a changed
# one is brought up to date.

PYTHON ?= python3
# Of the tests: two more than cores, since many of them wait more than they work; not of `check`.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(shell expr $(CORES) + 2)
# Of the demo: a lab's folder name, several, or all; the one that shows most when none is named.
LAB ?=

VENV := .venv
STAMP := $(VENV)/.ready-$(shell git hash-object pyproject.toml)
# Tools are called by name, and so calls nbgrader `alembic` where it brings a gradebook up to date.
RUN := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# As containers often set it: the tests start hundreds of processes, and each would compile anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test proof types built lab build site bench clean help tools
.DEFAULT_GOAL := help

help:
	@echo "make demo    build the course, then release, grade and report on a sample class (LAB=all: on all)"
	@echo "make check   what one runs while writing, in a minute"
	@echo "make test    everything CI runs"
	@echo "make proof   everything there is, at full width: for a night or a release"
	@echo "make lab     open JupyterLab on the start page"
	@echo "make build   turn the text in phases/ into notebooks"
	@echo "make site    the course as a static site, build/site/html"
	@echo "make bench   measure how fast a class is graded; with an NVIDIA GPU, the kernels, too"
	@echo "make clean   remove .venv, dist and caches; never submissions or grades"

demo: build tools
	@$(RUN) python -m grader demo $(LAB)

# Learners' code runs in sandboxes that bubblewrap builds, and torch.compile needs a C++ compiler and
# Python.h; where apt may install them, it does. Without a compiler the rest goes on, and that is said.
tools: $(STAMP)
	@{ command -v bwrap && $(RUN) python -m utils.toolchain; } >/dev/null || \
	  $(RUN) python -m grader doctor --install

check: WORKERS = $(CORES)
# Whole classes take longer than any test should that hangs.
proof: MORE = -o faulthandler_timeout=7200

# How tests are chosen and spread: tests/conftest.py.
check test proof: $(STAMP) tools
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(MAKE) --no-print-directory --jobs=2 types built
	@$(RUN) python -m pytest -n $(WORKERS) --width $@ --costs $(MORE)

types: $(STAMP)
	@$(RUN) mypy

built: $(STAMP)
	@$(RUN) python -m grader build --check

# JupyterLab drops the style of outputs that nobody has trusted; figures would be white in its dark theme.
# It opens, too, where a copy could not be brought up to date: that was told.
lab: $(STAMP)
	@$(RUN) python -m grader work || true
	@$(RUN) jupyter trust notebooks/*.ipynb >/dev/null
	@$(RUN) python -m jupyter lab $(ALLOW_ROOT) --LabApp.default_url=/lab/tree/notebooks/start.ipynb

build: $(STAMP)
	@$(RUN) python -m grader build

site: $(STAMP)
	@$(RUN) python -m grader site

bench: $(STAMP)
	@$(RUN) python -m benchmarks.grading
	@if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then \
	  $(RUN) python -m benchmarks.gpu; else echo "No NVIDIA GPU here: its kernels are not measured."; fi

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find phases utils grader tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A .venv without a stamp is half-made, and one whose stamp names another folder was moved here:
# both are made again. One with an older stamp is only brought up to date.
$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || { \
	  echo "Open the Hood needs Python 3.11, 3.12 or 3.13; $(PYTHON) is something else. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make a virtual environment. Try: sudo apt install python3-venv" >&2; exit 1; }
	@if [ "$$(cat $(VENV)/.ready-* 2>/dev/null)" != "$(CURDIR)" ]; then \
	  echo "Making .venv with $$($(PYTHON) --version) ..."; $(PYTHON) -m venv --clear $(VENV); fi
	@rm -f $(VENV)/.ready-*
	@echo "Installing the pinned packages (several minutes the first time) ..."
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(VENV)/bin/python -m pip install -qq --editable '.[dev,cluster,postgres,site]'
	@printf '%s' "$(CURDIR)" > $@
	@echo "Ready: $$($(VENV)/bin/python --version) in .venv."
