"""For tests of the command that are not about its worker processes."""

import pytest

from grader.batch import command
from tests.grader.batch.small import Here


@pytest.fixture
def here(monkeypatch):
    """No worker processes: for what becomes of results, wherever they come from."""
    monkeypatch.setattr(command, "_executor", lambda *_: Here())
