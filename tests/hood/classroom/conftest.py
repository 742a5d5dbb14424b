"""Fixtures for tests of the batch command without worker processes."""

import pytest

from hood.classroom.recording import command
from tests.hood.classroom.recording.small import Here
from tests.hood.tiny import write


@pytest.fixture
def here(monkeypatch):
    """Replace the pool by an executor in this process, for tests of what happens with results."""
    monkeypatch.setattr(command, "_executor", lambda *_: Here())


@pytest.fixture
def strict(tmp_path, monkeypatch):
    """Start workers with low limits on a submission's processor time and memory."""
    code = "from hood.grader.submission.bounds import bounded as b\n"
    code += "b.__wrapped__.__defaults__ = (1.0, 400 << 20)"
    write(code.encode(), tmp_path / "strict" / "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "strict"))
