"""Fixtures for tests of workers."""

import pytest

from tests.hood.tiny import write


@pytest.fixture
def strict(tmp_path, monkeypatch):
    """Start workers with low limits on a submission's processor time and memory."""
    code = "from hood.grader.submission.bounds import bounded as b\n"
    code += "b.__wrapped__.__defaults__ = (1.0, 400 << 20)"
    write(code.encode(), tmp_path / "strict" / "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "strict"))
