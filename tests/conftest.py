"""Configure pytest for all tests: which tests run, in which order, and on which worker.

``make check``, ``make test`` and ``make proof`` run ``pytest --width check``, ``test`` and
``proof``. ``check`` leaves out the tests marked ``slow`` or ``full``, begins with the tests nearest
to the changes, and skips the rest when its time is over. ``test`` leaves out the tests marked
``full``, and runs those marked ``of_labs`` for a few labs. ``proof`` runs all tests, some of them
with more data.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# There are more processes than cores. With several threads, an operator would spend most of its
# time in threads that spin while they wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Without this, Inductor would start a pool of processes in each worker that compiles, and compile
# in one of these processes.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import hood  # before nbformat, which then imports a second faster, see hood  # noqa: F401
from hood.grader.inside.long_lived import long_lived
from hood.grader.sandbox import SandboxedKernel
from hood.phase_paths import ROOT
from utils.instruments.toolchain import inductor_lacks

# The parent of tests' folders. Tests commit to hundreds of small databases, and a commit waits for
# the disk, but not in memory. A whole run needs half a gigabyte there.
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

MANY_SEEDS = 20
SEED = ROOT / "tests" / "seed.txt"
# The marks of the tests that do not run, by width.
LEFT_OUT = {"check": ("slow", "full"), "test": ("full",), "proof": ()}
# Kinds of labs besides plain labs: labs that compile, and labs that train or communicate.
OTHER_KINDS = (
    ("05_custom_op", "06_compile", "11_tiles"),
    ("07_training", "08_transformer", "10_distributed"),
)
OWN = ("phases/", "source/", "release/", "tests/phases/answers/")  # a lab's own files, and bank
# For ``check``: the seconds after the start of pytest after which no test begins.
CHECK_SECONDS = 35
TOO_LATE = "not begun: the time of `make check` was over"

BEGAN = pytest.StashKey[float]()  # from `time.monotonic`, which all processes share


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("open the hood")
    group.addoption(
        "--width",
        choices=LEFT_OUT,
        default="test",
        help="check: what is quick; test: what CI runs; proof: everything, with whole sample "
        "classes, all rounds of faults and many seeds (default: %(default)s)",
    )
    group.addoption(
        "--seed",
        help="what draws cases and samples; by default the one in tests/seed.txt, so that what "
        "passed passes again, and in a proof a new one",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts background processes with SIGINT ignored, and tests would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    told = getattr(config, "workerinput", None)
    if told is None:
        new = secrets.token_hex(4) if config.option.width == "proof" else SEED.read_text().strip()
        config.option.seed = config.option.seed or new
        config.stash[BEGAN] = time.monotonic()
    else:  # otherwise each worker of pytest-xdist would draw another seed, which nobody would see
        config.option.seed = told["seed"]
        config.stash[BEGAN] = told["began"]
    # Keep the order of collection (the slowest first); xdist would sort groups by their size.
    config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Give each worker the seed of the run, and when it began."""
    node.workerinput["seed"] = node.config.option.seed
    node.workerinput["began"] = node.config.stash[BEGAN]


def pytest_runtest_setup(item: pytest.Item) -> None:
    late = time.monotonic() - item.config.stash[BEGAN] > CHECK_SECONDS
    if item.config.option.width == "check" and late:
        pytest.skip(TOO_LATE)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if late := sum(TOO_LATE in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"{late} tests were {TOO_LATE}; `make test` runs them all.")
    terminalreporter.write_line(f"The seed of this run: --seed {config.option.seed}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Collect tests without garbage collection: the half million imported objects stay alive."""
    with long_lived():
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that this width leaves out, and sort the others.

    ``check`` begins with the tests nearest to the changes, other widths with the slowest.
    """
    marks, labs = LEFT_OUT[config.option.width], drawn_labs(config)
    left_out = [
        item
        for item in items
        if any(map(item.get_closest_marker, marks))
        or (item.get_closest_marker("of_labs") and lab_of(item.nodeid) not in labs)
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    if config.option.width == "check":
        paths = changed(ROOT)
        items.sort(key=lambda item: -nearness(item.nodeid, paths))
    else:
        items.sort(key=lambda item: -_seconds(item))


def lab_of(test: str) -> str:
    """Return the lab at the start of a test's parameters, such as ``07_training``."""
    found = re.search(r"\[(\d\d_[a-z_]+)", test)
    assert found, f"{test}: its parameters do not begin with a lab"
    return found[1]


def drawn_labs(config: pytest.Config) -> set[str]:
    """Return the labs of tests marked ``of_labs``: all in a proof; else the changed ones, and more.

    The seed of the run selects one more lab of each kind.
    """
    every = {path.name for path in ROOT.glob("source/*")}
    if config.option.width == "proof":
        return every
    chance = random.Random(f"labs {config.option.seed}")
    plain = sorted(every.difference(*OTHER_KINDS))
    some = {chance.choice(kind) for kind in (plain, *OTHER_KINDS)}
    own = {part for path in changed(ROOT) if path.startswith(OWN) for part in path.split("/")}
    return some | {lab for lab in every if lab in own or lab[:2] in own}


def _seconds(item: pytest.Item) -> float:
    slow = item.get_closest_marker("slow")
    return slow.args[0] if slow else 0


def changed(root: Path) -> list[str]:
    """Return new files, and files that differ from the commit before the last one."""
    found: list[str] = []
    for words in ("diff --name-only HEAD~1", "ls-files --others --exclude-standard"):
        asked = ["git", "-C", str(root), *words.split()]
        found += subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    return found


def nearness(test: str, paths: list[str]) -> int:
    """Return how many words a test's name shares with the nearest of ``paths``.

    A test has the path of the file that it tests, and names its lab and exercise.
    """
    return max((len(_words(test) & _words(path)) for path in paths), default=0)


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.replace("test_", " ")))


class ByGroup(LoadScopeScheduling):
    """Send tests to workers in groups: those of a file together, so that they share fixtures.

    All tests in ``tests/browser`` are one group, so that they share one server and one browser. In
    any file, the tests with parameters such as ``[01_tensors: byte_offset]`` are a separate group
    for each word before the colon; in ``tests/phases``, such a group has the tests of all files, so
    that the answer keys of a lab are made only once.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file.startswith("tests/browser/"):
            return "tests/browser"
        group, colon, _ = test.partition("[")[2].partition(": ")
        place = "tests/phases" if file.startswith("tests/phases/") else file
        return f"{place} {group}" if colon else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> LoadScopeScheduling:
    return ByGroup(config, log)


@pytest.fixture(scope="session", autouse=True)
def busy() -> Iterator[None]:
    """Let kernels run ten times as long by the clock, because tests keep the machine busy.

    Otherwise a kernel with a limit of 1 s is given up after 10 s.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SandboxedKernel, "waits", 10 * SandboxedKernel.waits)
        yield


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Return whether the tests run with ``--width proof``."""
    return request.config.option.width == "proof"


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest, full: bool) -> list[str]:
    """Return the seeds that draw cases: one, or many new ones in each proof.

    Cases with fixed values test the properties that do not depend on the draw, so each run tests
    them. A proof tests properties that depend on the draw.
    """
    new = request.config.option.seed
    return [f"{new}-{k}" for k in range(MANY_SEEDS)] if full else [new]


@pytest.fixture(scope="session")
def worker_id(request: pytest.FixtureRequest) -> str:
    """Return pytest-xdist's name for this worker, or ``master`` if there are no workers."""
    return getattr(request.config, "workerinput", {}).get("workerid", "master")


@pytest.fixture(scope="session")
def compiler() -> None:
    """For a test that compiles C++ with Inductor. If that is not possible, it is skipped."""
    if lack := inductor_lacks():
        pytest.skip(f"not run: {lack}")


@pytest.fixture
def nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For a test of the messages on a machine without a C++ compiler."""
    from torch._inductor import config

    monkeypatch.setenv("CXX", "/nowhere/g++")
    with config.patch({"cpp.cxx": (None, "/nowhere/g++")}):
        yield
