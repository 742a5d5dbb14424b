"""One zygote for all tests of the sandbox, and no test where the machine cannot make sandboxes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.sandbox import doctor
from grader.sandbox.warm_process import cool
from tests.grader.sandbox.inmate import Inmate


@pytest.fixture(scope="session")
def problems() -> list[str]:
    return [str(problem) for problem in doctor.problems()]


@pytest.fixture
def sandbox(problems: list[str]) -> None:
    """A test that needs a sandbox is not run where there can be none, and says why."""
    if problems:
        pytest.skip(f"not run: {problems[0]}")


@pytest.fixture(scope="module")
def shared(problems: list[str]) -> Iterator[Inmate]:
    """A kernel for the tests of a module that only look around."""
    if problems:
        pytest.skip(f"not run: {problems[0]}")
    with Inmate() as inmate:
        yield inmate


@pytest.fixture(scope="session", autouse=True)
def _cool() -> Iterator[None]:
    yield
    cool()
