"""One zygote for all tests of the sandbox, and no test where there is no bubblewrap."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from grader.sandbox import doctor
from grader.sandbox.warm_process import cool
from tests.grader.sandbox.inmate import Inmate


@pytest.fixture(scope="session")
def problems() -> list[str]:
    return [str(problem) for problem in doctor.problems()]


def demand_sandboxes(problems: list[str]) -> None:
    """Without bubblewrap a test that needs a sandbox is skipped; with it, it fails without one."""
    if problems and shutil.which("bwrap"):
        pytest.fail(f"bubblewrap is here, and there is no sandbox: {problems[0]}")
    if problems:
        pytest.skip(f"not run: {problems[0]}")


@pytest.fixture
def sandbox(problems: list[str]) -> None:
    """For a test that needs a sandbox."""
    demand_sandboxes(problems)


@pytest.fixture(scope="module")
def shared(problems: list[str]) -> Iterator[Inmate]:
    """A kernel for the tests of a module that only look around."""
    demand_sandboxes(problems)
    with Inmate() as inmate:
        yield inmate


@pytest.fixture(scope="session", autouse=True)
def _cool() -> Iterator[None]:
    yield
    cool()
