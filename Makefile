# demo · check · test · proof · lab · teach · hub · build · site · bench · clean. Each sets up .venv itself, once: the
# stamp's name holds the hash of what is installed and the build of PyTorch, so a finished set-up is
# never repeated and a changed one is brought up to date.

# pip writes the path of this folder into programs that a shell starts, PATH parts its folders at a colon, and
# nbgrader looks for files with patterns. Without these, "$(CURDIR)" in a rule is safe, too.
REFUSED := $(strip $(foreach one,: $$ " \ ` * ?,$(findstring $(one),$(CURDIR))))
$(if $(REFUSED),$(error The path of this folder, $(CURDIR), has $(REFUSED), which the shell, PATH or \
nbgrader read as something else. Rename the folder, or move it: letters, digits, spaces and . _ - are fine))

PYTHON ?= python3
# Where uv is, it is faster than pip, and fetches a Python if there is none that fits. `UV=`: pip.
UV ?= $(shell command -v uv)
# Of the tests: two more than cores, since many of them wait more than they work; not of `check`.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(shell expr $(CORES) + 2)
# Of the demo: a lab's folder name, several, or all; the one that shows most when none is named.
LAB ?=

VENV := .venv
READY := $(wildcard $(VENV)/.ready-*)
# PyTorch's build, cuda or cpu. A .venv keeps the one that it has until the other is asked for. CUDA is chosen
# where there is an NVIDIA GPU.
NEARBY := $(wildcard $(PIP_FIND_LINKS)/torch-*+cpu-*)
TORCH ?= $(or $(filter cuda cpu,$(subst -, ,$(READY))),$(shell nvidia-smi -L >/dev/null 2>&1 && echo cuda || echo cpu))
# The packages: those that a learner needs, or all. `make lab` installs the first; a .venv that has all keeps them.
ifeq ($(MAKECMDGOALS)$(findstring -all,$(READY)),lab)
PACKAGES := learner
else
PACKAGES := all
endif
SIZE_cuda_all := 5.7 GB, with PyTorch's CUDA build; with TORCH=cpu it takes 2.7 GB
SIZE_cpu_all := 2.7 GB, with PyTorch's CPU build
SIZE_cuda_learner := 5.2 GB, with PyTorch's CUDA build; with TORCH=cpu it takes 2.2 GB
SIZE_cpu_learner := 2.2 GB, with PyTorch's CPU build
$(if $(SIZE_$(TORCH)_all),,$(error TORCH is cuda or cpu, not "$(TORCH)"))
STAMP := $(VENV)/.ready-$(shell cat pyproject.toml lock/*.txt | git hash-object --stdin)-$(TORCH)-$(PACKAGES)
# Tools are called by name, and so calls nbgrader `alembic` where it brings a gradebook up to date.
RUN := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# JupyterLab's log is a file that only its owner can read, since a token stands in it; the screen has
# the address and errors.
LOG := build/jupyter.log
LOGGING := {'formatters': {'plain': {'format': '%(asctime)s %(levelname)s %(name)s: %(message)s'}}, \
  'handlers': {'console': {'level': 'ERROR'}, 'file': {'class': 'logging.FileHandler', \
  'filename': '$(LOG)', 'level': 'INFO', 'formatter': 'plain'}}, \
  'loggers': {'ServerApp': {'handlers': ['console', 'file']}, 'LabApp': {'handlers': ['console', 'file']}}}
OPEN_LOG = mkdir -p $(dir $(LOG)) && install -m 600 /dev/null $(LOG) && \
  echo "JupyterLab starts. Its log: $(LOG); its address and errors stand here. Ctrl-C ends it."
JUPYTERLAB = python -m jupyter lab $(ALLOW_ROOT) --Application.logging_config="$(LOGGING)"

# OpenMP's threads spin while they wait. Where another program has one of the cores, a training loop
# of torch with two threads then takes ten times as long; asleep, they lose nothing that shows.
export OMP_WAIT_POLICY := passive

# As containers often set it: the tests start hundreds of processes, and each would compile anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test proof form quick types built lab teach hub build site pictures bench lock clean help tools
.DEFAULT_GOAL := help

help:
	@echo "make demo    build the course, then release, grade and report on a sample class (LAB=all: on all)"
	@echo "make check   what one runs while writing, in a minute"
	@echo "make test    everything CI runs"
	@echo "make proof   everything there is, at full width: for a night or a release"
	@echo "make lab     open JupyterLab on the start page"
	@echo "make teach   open JupyterLab with nbgrader's menu and formgrader"
	@echo "make hub     try a JupyterHub whose learners get verdicts from the service"
	@echo "make build   turn the text in phases/ into notebooks"
	@echo "make site    the course as a static site, build/site/html"
	@echo "make pictures take the README's pictures anew, from a real JupyterLab"
	@echo "make lock    renew lock/ from pyproject.toml"
	@echo "make bench   measure how fast a class is graded; with an NVIDIA GPU, the kernels, too"
	@echo "make clean   remove .venv, dist and caches; never submissions or grades"

demo: build tools
	@$(RUN) python -m hood demo $(LAB)

# Learners' code runs in sandboxes that bubblewrap builds, and torch.compile needs a C++ compiler and
# Python.h; where apt may install them, it does. Without a compiler the rest goes on, and that is said.
tools: $(STAMP)
	@{ command -v bwrap && $(RUN) python -m utils.instruments.toolchain; } >/dev/null || \
	  $(RUN) python -m hood doctor --install

quick: WORKERS = $(CORES)
# Whole classes take longer than any test should that hangs. At its end both commands, on fresh machines.
proof: MORE = -o faulthandler_timeout=7200

# How tests are chosen and spread: tests/conftest.py.
TESTS = $(RUN) python -m pytest -n $(WORKERS) --durations=20 $(MORE) --width

# All at once: mypy is one process, and the longest of all in a fresh clone. A minute of tests is not
# much to have run in vain where one of the others fails.
check: form
	@$(MAKE) --no-print-directory --jobs=3 types built quick

test proof: form
	@$(MAKE) --no-print-directory --jobs=2 types built
	@$(TESTS) $@
	@[ $@ != proof ] || $(RUN) python -m tests.fresh_machine

form: $(STAMP) tools
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .

quick: $(STAMP)
	@$(TESTS) check

types: $(STAMP)
	@$(RUN) mypy

built: $(STAMP)
	@$(RUN) python -m hood build --check

# Learners have no use for nbgrader's menu, its Validate button and its sidebar: hood/learner/jupyter leaves
# them out.
# JupyterLab drops the style of outputs that nobody has trusted; figures would be white in its dark theme.
# It opens, too, where a copy could not be brought up to date: that was told.
lab: $(STAMP)
	@$(RUN) python -m hood work || true
	@$(RUN) jupyter trust work/start.ipynb work/lesson_*.ipynb >/dev/null
	@$(OPEN_LOG)
	@$(RUN) JUPYTER_CONFIG_PATH="$(CURDIR)/hood/learner/jupyter:$$JUPYTER_CONFIG_PATH" \
	  $(JUPYTERLAB) --LabApp.default_url=/lab/tree/work/start.ipynb

# The pages for marking answers in words, in its menu and below /marking, are for those who teach alone.
# Otherwise they have what learners have, and nbgrader's menu back.
teach: $(STAMP)
	@$(OPEN_LOG)
	@$(RUN) JUPYTER_CONFIG_PATH="$(CURDIR)/hood/classroom/marking/jupyter:$(CURDIR)/hood/learner/jupyter:$$JUPYTER_CONFIG_PATH" \
	  $(JUPYTERLAB)

# A JupyterHub with the service that gives verdicts, and learners' servers without checks, to try.
hub: $(STAMP)
	@$(RUN) python -m hood.authoring.sample_hub

build: $(STAMP)
	@$(RUN) python -m hood build

site: $(STAMP)
	@$(RUN) python -m hood site

# The README's, from a real JupyterLab; Pillow writes them small.
pictures: $(STAMP)
	@$(RUN) python -m tests.browser.pictures

bench: $(STAMP)
	@$(RUN) python -m benchmarks.grading
	@if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then \
	  $(RUN) python -m benchmarks.gpu; else echo "No NVIDIA GPU here: its kernels are not measured."; fi

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find phases utils hood tests -name __pycache__ -type d -prune -exec rm -rf {} +

# CONTRIBUTING.md says what to run then.
lock:
	@[ -n "$(UV)" ] || { echo "make lock needs uv: https://docs.astral.sh/uv says how to install it" >&2; exit 1; }
	@PATH="$(dir $(UV)):$$PATH" $(PYTHON) lock/renew.py $(LOCK)

# With uv a Python that was not named is one that pyproject.toml allows. --seed: notebooks may call pip.
MAKE_VENV := $(if $(UV),$(UV) venv --quiet --seed --clear $(if $(filter file,$(origin PYTHON)),,--python $(PYTHON)),\
  $(PYTHON) -m venv --clear) $(VENV)
# What is installed is all that the lock names, so nothing else is looked for. Both say what they fetch.
INSTALL := $(if $(UV),$(UV) pip install --python $(VENV)/bin/python,\
  PIP_DISABLE_PIP_VERSION_CHECK=1 $(VENV)/bin/python -m pip install) --no-deps
CHECK := $(if $(UV),$(UV) pip check --python $(VENV)/bin/python,$(VENV)/bin/python -m pip check)
LOCKED := $(INSTALL) --require-hashes --only-binary :all:
TORCH_LOCK := lock/torch-$(TORCH).txt
OTHERS := lock/packages.txt $(if $(filter all,$(PACKAGES)),lock/extras.txt)
COUNT = $(shell cat $(1) | grep -c ==)
# pip says too much of hundreds of packages, and nothing of how many are left.
NUMBERED := $(if $(UV),,$(VENV)/bin/python lock/numbered.py env)

# A .venv without a stamp is half-made, one whose stamp names another folder was moved here, and one with
# PyTorch's other build holds packages that this one has not: such are made again. One with an older stamp
# is only brought up to date.
$(STAMP):
	@[ -n "$(UV)" ] || $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make a virtual environment. Try: sudo apt install python3-venv" >&2; exit 1; }
	@if [ "$$(cat $(VENV)/.ready-*-$(TORCH)* 2>/dev/null)" != "$(CURDIR)" ]; then \
	  $(MAKE_VENV) && echo "Made .venv with $$($(VENV)/bin/python --version). It will take $(SIZE_$(TORCH)_$(PACKAGES))"; fi
	@rm -f $(VENV)/.ready-*
	@$(VENV)/bin/python -c 'import re, sys; first, end = re.findall(r"3\.(\d+)", sys.argv[1]); \
	  sys.exit(not int(first) <= sys.version_info.minor < int(end) and \
	  f"Open the Hood needs Python 3.{first} to 3.{int(end) - 1}, and this is 3.{sys.version_info.minor}. Try: make PYTHON=python3.{first} ...")' \
	  "$$(grep '^requires-python' pyproject.toml)"
	@echo "1 of 2: PyTorch, $(call COUNT,$(TORCH_LOCK)) of the packages in lock/ and most of the size ..."
	@$(LOCKED) $(if $(UV),,$(if $(NEARBY),$(if $(filter cpu,$(TORCH)),--no-index))) -r $(TORCH_LOCK)
	@echo "2 of 2: the $(call COUNT,$(OTHERS)) others ..."
	@$(NUMBERED) $(LOCKED) $(OTHERS:%=-r %)
	@$(INSTALL) $(if $(UV),--quiet,-qq) --no-build-isolation --editable .
	@said=$$($(CHECK)) || { echo "$$said" >&2; echo "lock/ is out of step with pyproject.toml. Bring it up to date: make lock" >&2; exit 1; }
	@printf '%s' "$(CURDIR)" > $@
	@echo "Ready: $$($(VENV)/bin/python --version) in .venv."
