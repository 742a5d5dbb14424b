"""For all tests: what each target runs, in which order, how it is spread, and what it costs.

``make check``, ``make test`` and ``make proof`` run ``pytest --width check``, ``test`` or
``proof``. The first leaves out what is marked ``slow``, the first two what is marked ``full``, and
with the last some tests grow.
"""

from __future__ import annotations

import os
import secrets
import signal

import pytest
from xdist.scheduler import LoadScopeScheduling

# Workers, and the processes that they start, are more than there are cores: threads of one
# operator that wait for each other actively would use most of the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import grader  # before nbformat: it spares every process a second, see there  # noqa: F401
from tests.costs import Costs
from tests.proven import Proven

MANY_SEEDS = 20
# By width, the marks of tests that do not run.
LEFT_OUT = {"check": ("slow", "full"), "test": ("full",), "proof": ()}


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
        default=secrets.token_hex(4),
        help="the seed that is new in each run; give that of a run to repeat it",
    )
    group.addoption("--costs", action="store_true", help="what each folder's tests cost")


def pytest_configure(config: pytest.Config) -> None:
    # A shell lets what it runs in the background ignore SIGINT, and that is inherited.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The longest begin first, as they are collected, and not those that are most.
    config.option.loadscopereorder = False
    config.pluginmanager.register(Costs(shown=config.option.costs))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    terminalreporter.write_line(f"The seed of this run: --seed {config.option.seed}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of this width; put the slow first, the slowest before all."""
    marks = LEFT_OUT[config.option.width]
    left_out = [item for item in items if any(map(item.get_closest_marker, marks))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: -_seconds(item))


def _seconds(item: pytest.Item) -> float:
    slow = item.get_closest_marker("slow")
    return slow.args[0] if slow else 0


class ByGroup(LoadScopeScheduling):
    """Sends tests to workers in groups: a file's together, so that its fixtures are made once.

    The tests of a browser are one group, for one server and one browser. A parameter such as
    ``[01_tensors: byte_offset]`` makes a group of its own of all that begin with the word before
    the colon.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file.startswith("tests/browser/"):
            return "tests/browser"
        group, colon, _ = test.partition("[")[2].partition(": ")
        return f"{file} {group}" if colon else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> LoadScopeScheduling:
    return ByGroup(config, log)


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the tests run at full width."""
    return request.config.option.width == "proof"


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest, full: bool) -> list[str]:
    """What draws cases: one seed, or many, that are new in each run.

    What decides whatever is drawn stands in the cases themselves, so each run asks it, and what a
    draw decides is seen by many runs with a seed each as by one run with many seeds.
    """
    new = request.config.option.seed
    return [f"{new}-{k}" for k in range(MANY_SEEDS)] if full else [new]


@pytest.fixture(scope="session")
def proven(request: pytest.FixtureRequest) -> Proven:
    """What was proven before on this machine."""
    return Proven(request.config)


@pytest.fixture(scope="session")
def worker_id(request: pytest.FixtureRequest) -> str:
    """pytest-xdist's name for this worker, or ``master`` where tests run in one process."""
    return getattr(request.config, "workerinput", {}).get("workerid", "master")
