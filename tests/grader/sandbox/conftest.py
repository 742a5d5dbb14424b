"""One zygote for all tests of the sandbox, and no test where there is no bubblewrap."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from grader.sandbox import doctor
from grader.sandbox.warm import cool
from tests.grader.sandbox.inmate import Inmate


@pytest.fixture(scope="session")
def problems() -> list[str]:
    return [str(problem) for problem in doctor.problems()]


def demand_rooms(problems: list[str]) -> None:
    """Without bubblewrap a test that needs a room is not run; with it, no room is a failure."""
    if problems and shutil.which("bwrap"):
        pytest.fail(f"bubblewrap is here, and there is no room: {problems[0]}")
    if problems:
        pytest.skip(f"not run: {problems[0]}")


@pytest.fixture
def room(problems: list[str]) -> None:
    """For a test that needs a room."""
    demand_rooms(problems)


@pytest.fixture(scope="module")
def shared(problems: list[str]) -> Iterator[Inmate]:
    """A kernel for the tests of a module that only look around."""
    demand_rooms(problems)
    with Inmate() as inmate:
        yield inmate


@pytest.fixture(scope="session", autouse=True)
def _cool() -> Iterator[None]:
    yield
    cool()
