"""A few rounds of :mod:`tests.faults`, or all of them in ``make proof``."""

import io
import os
import tempfile

import pytest
from rich.console import Console

from tests.faults.__main__ import main

KINDS = (
    "killed-twice",
    "worker",
    "writer-statement",
    "writer-committing",
    "file-limit",
    "locked-long",
)


@pytest.mark.slow(95)
def test_after_any_fault_the_next_run_ends_with_the_same_grades(full, monkeypatch):
    # in memory, like pytest's folders, but not inside these folders, whose names are too long for a
    # socket's path
    monkeypatch.setattr(tempfile, "tempdir", os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    console = Console(file=io.StringIO(), width=200)
    status = main([] if full else ["--only", *KINDS, "--rounds", str(len(KINDS))], console)
    assert status == 0, console.file.getvalue()
