# demo · check · test · proof · lab · teach · hub · build · site · bench · clean. Each sets up .venv first if needed.
# The name of the stamp contains a hash of the installed packages, and PyTorch's build. So a finished set-up is never
# repeated, and a set-up is brought up to date if the packages change.

# pip writes this folder's path into programs that a shell starts, PATH separates its folders by colons, and nbgrader
# finds files by patterns. Without these characters, "$(CURDIR)" in a rule is safe, too.
REFUSED := $(strip $(foreach one,: $$ " \ ` * ?,$(findstring $(one),$(CURDIR))))
$(if $(REFUSED),$(error The path of this folder, $(CURDIR), has $(REFUSED), which means something else to the shell, \
PATH or nbgrader. Rename the folder, or move it: letters, digits, spaces and . _ - are fine))

# The Python that makes `.venv`.
PYTHON ?= python3
# The program uv. It is faster than pip, and downloads a Python if no installed Python fits. `UV=` chooses pip.
UV ?= $(shell command -v uv)
CORES := $(shell getconf _NPROCESSORS_ONLN)
# The number of tests that run at a time. By default it is the number of cores plus two, because many tests mostly
# wait. In `make check` it is the number of cores.
WORKERS ?= $(shell expr $(CORES) + 2)
# The labs of `make demo`: one or more folder names, or `all`. Without a name, `make demo` takes the lab that shows most.
LAB ?=

VENV := .venv
READY := $(wildcard $(VENV)/.ready-*)
NEARBY := $(wildcard $(PIP_FIND_LINKS)/torch-*+cpu-*)
# PyTorch's build, cuda or cpu. A .venv keeps its build until you choose the other build. If there is an NVIDIA GPU,
# a new .venv gets the CUDA build.
TORCH ?= $(or $(filter cuda cpu,$(subst -, ,$(READY))),$(shell nvidia-smi -L >/dev/null 2>&1 && echo cuda || echo cpu))
# The packages: `learner` (what a learner needs) or `all`. `make lab` installs only what a learner needs. A .venv with
# all packages keeps all of them.
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
# Tools are called by name. nbgrader, too, calls `alembic` by name to upgrade a gradebook.
RUN := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# JupyterLab's log is a file that only its owner can read, because it contains a token. The screen shows the address
# and errors.
LOG := build/jupyter.log
LOGGING := {'formatters': {'plain': {'format': '%(asctime)s %(levelname)s %(name)s: %(message)s'}}, \
  'handlers': {'console': {'level': 'ERROR'}, 'file': {'class': 'logging.FileHandler', \
  'filename': '$(LOG)', 'level': 'INFO', 'formatter': 'plain'}}, \
  'loggers': {'ServerApp': {'handlers': ['console', 'file']}, 'LabApp': {'handlers': ['console', 'file']}}}
OPEN_LOG = mkdir -p $(dir $(LOG)) && install -m 600 /dev/null $(LOG) && \
  echo "JupyterLab starts. Its log: $(LOG). Its address and errors appear here. Ctrl-C ends it."
JUPYTERLAB = python -m jupyter lab $(ALLOW_ROOT) --Application.logging_config="$(LOGGING)"

# OpenMP's threads spin while they wait. If another program uses one of the cores, a training loop of torch with two
# threads then takes ten times as long. Sleeping threads lose no measurable time.
export OMP_WAIT_POLICY := passive

# Containers often set this. The tests start hundreds of processes, and each would compile its modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test proof form quick types built lab teach hub build site pictures bench lock clean help tools
.DEFAULT_GOAL := help

help:
	@echo "make demo    build the course, then grade a sample class and write a report (LAB=all: for all labs)"
	@echo "make check   run the quick tests for a minute; the tests nearest to your changes run first"
	@echo "make test    run everything that CI runs"
	@echo "make proof   run every test with all its cases, at night or before a release"
	@echo "make tools   set up .venv; install bubblewrap and a C++ compiler if apt can install them"
	@echo "make lab     open JupyterLab on the start page"
	@echo "make teach   open JupyterLab with nbgrader's menu and formgrader"
	@echo "make hub     try a JupyterHub whose learners get verdicts from the service"
	@echo "make build   turn the text in phases/ into notebooks"
	@echo "make site    build the static site in build/site/html"
	@echo "make pictures take the README's pictures again, in a real JupyterLab"
	@echo "make lock    renew lock/ from pyproject.toml"
	@echo "make bench   measure how fast a class is graded and, with an NVIDIA GPU, how fast the kernels are"
	@echo "make clean   remove .venv, dist and caches, but no submissions and no grades"

demo: build tools
	@$(RUN) python -m hood demo $(LAB)

# Learners' code runs in sandboxes of bubblewrap, and torch.compile needs a C++ compiler and Python.h. They are
# installed by apt if possible. Without a compiler, a message says so and the rest goes on.
tools: $(STAMP)
	@{ command -v bwrap && $(RUN) python -m utils.instruments.toolchain; } >/dev/null || \
	  $(RUN) python -m hood doctor --install

quick: WORKERS = $(CORES)
# Grading whole classes takes longer than the time limit for a hanging test. At the end, the page of wrong verdicts
# is made again, and both commands run on fresh machines.
proof: MORE = -o faulthandler_timeout=7200

# tests/conftest.py chooses the tests and distributes them.
TESTS = $(RUN) python -m pytest -n $(WORKERS) --durations=20 $(MORE) --width

# The three targets run at the same time: mypy is one process, and takes longest in a fresh clone. If one target
# fails, at most a minute of tests was in vain.
check: form
	@$(MAKE) --no-print-directory --jobs=3 types built quick

test proof: form
	@$(MAKE) --no-print-directory --jobs=2 types built
	@$(TESTS) $@
	@[ $@ != proof ] || $(RUN) python -m tests.phases.verdict_errors --write
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

# hood/learner/jupyter hides nbgrader's menu, its Validate button and its sidebar, which learners do not need.
# JupyterLab drops the style of untrusted outputs, and figures would be white in the dark theme, so the notebooks are
# trusted. If a copy can't be brought up to date, a message says so, and JupyterLab opens anyway.
lab: $(STAMP)
	@$(RUN) python -m hood work || true
	@$(RUN) jupyter trust work/start.ipynb work/lesson_*.ipynb >/dev/null
	@$(OPEN_LOG)
	@$(RUN) JUPYTER_CONFIG_PATH="$(CURDIR)/hood/learner/jupyter:$$JUPYTER_CONFIG_PATH" \
	  $(JUPYTERLAB) --LabApp.default_url=/lab/tree/work/start.ipynb

# The pages for marking answers in words, in the menu and below /marking, are for instructors alone. Otherwise
# instructors have the learners' settings, and nbgrader's menu.
teach: $(STAMP)
	@$(OPEN_LOG)
	@$(RUN) JUPYTER_CONFIG_PATH="$(CURDIR)/hood/classroom/marking/jupyter:$(CURDIR)/hood/learner/jupyter:$$JUPYTER_CONFIG_PATH" \
	  $(JUPYTERLAB)

# A JupyterHub to try, with the service that gives verdicts. The learners' servers do not contain the checks.
hub: $(STAMP)
	@$(RUN) python -m hood.authoring.sample_hub

build: $(STAMP)
	@$(RUN) python -m hood build

site: $(STAMP)
	@$(RUN) python -m hood site

# The README's pictures come from a real JupyterLab. Pillow makes them small.
pictures: $(STAMP)
	@$(RUN) python -m tests.browser.pictures

bench: $(STAMP)
	@$(RUN) python -m benchmarks.grading
	@if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then \
	  $(RUN) python -m benchmarks.gpu; else echo "No NVIDIA GPU here: the kernels are not measured."; fi

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find phases utils hood tests -name __pycache__ -type d -prune -exec rm -rf {} +

# docs/authors/a-dependency.md says what to run afterwards.
lock:
	@[ -n "$(UV)" ] || { echo "make lock needs uv: https://docs.astral.sh/uv says how to install it" >&2; exit 1; }
	@PATH="$(dir $(UV)):$$PATH" $(PYTHON) lock/renew.py $(LOCK)

# Unless PYTHON is set, uv chooses a Python that pyproject.toml allows. --seed installs pip, which notebooks may call.
MAKE_VENV := $(if $(UV),$(UV) venv --quiet --seed --clear $(if $(filter file,$(origin PYTHON)),,--python $(PYTHON)),\
  $(PYTHON) -m venv --clear) $(VENV)
# Exactly the packages in the lock are installed, without resolving dependencies. uv and pip both show what they fetch.
INSTALL := $(if $(UV),$(UV) pip install --python $(VENV)/bin/python,\
  PIP_DISABLE_PIP_VERSION_CHECK=1 $(VENV)/bin/python -m pip install) --no-deps
CHECK := $(if $(UV),$(UV) pip check --python $(VENV)/bin/python,$(VENV)/bin/python -m pip check)
LOCKED := $(INSTALL) --require-hashes --only-binary :all:
TORCH_LOCK := lock/torch-$(TORCH).txt
OTHERS := lock/packages.txt $(if $(filter all,$(PACKAGES)),lock/extras.txt)
COUNT = $(shell cat $(1) | grep -c ==)
# pip prints too much about hundreds of packages, but does not say how many are left.
NUMBERED := $(if $(UV),,$(VENV)/bin/python lock/numbered.py env)

# A .venv is made again if it has no stamp (it is half-made), if its stamp names another folder (it was moved), or if
# it has PyTorch's other build (which has packages that this build lacks). With an older stamp it is only brought up
# to date.
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
