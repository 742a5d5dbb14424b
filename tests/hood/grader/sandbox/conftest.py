"""One zygote for all tests of the sandbox, and no test where there is no bubblewrap."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hood.grader.sandbox.warm_process import shut_down
from tests.hood.conftest import demand_sandboxes
from tests.hood.grader.sandbox.inmate import Inmate


@pytest.fixture(scope="module")
def shared(problems: list[str]) -> Iterator[Inmate]:
    """A kernel for the tests of a module that only look around."""
    demand_sandboxes(problems)
    with Inmate() as inmate:
        yield inmate


@pytest.fixture(scope="module")
def connected(problems: list[str]) -> Iterator[Inmate]:
    """A kernel like `shared`, of a lab whose processes may reach each other over TCP and UDP."""
    demand_sandboxes(problems)
    with Inmate(loopback=True) as inmate:
        yield inmate


@pytest.fixture(scope="module")
def own_zygote() -> Iterator[None]:
    """A zygote for a module that counts on a new one, or lets it import what others don't expect.

    A worker's tests share a zygote, which keeps what a lab of theirs had it import.
    """
    shut_down()
    yield
    shut_down()


@pytest.fixture(scope="session", autouse=True)
def _shut_down() -> Iterator[None]:
    yield
    shut_down()
