"""One zygote for all tests of the sandbox, and no test if there is no bubblewrap."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hood.grader.sandbox.warm_process import shut_down
from tests.hood.conftest import demand_sandboxes
from tests.hood.grader.sandbox.inmate import Inmate


@pytest.fixture(scope="module")
def shared(problems: list[str]) -> Iterator[Inmate]:
    """A kernel shared by the tests of a module that only read."""
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
    """A new zygote, for a module that needs one, or that lets it import more.

    A worker's tests share a zygote, which keeps the imports of their labs.
    """
    shut_down()
    yield
    shut_down()


@pytest.fixture(scope="session", autouse=True)
def _shut_down() -> Iterator[None]:
    yield
    shut_down()
