"""Something that is made once for all workers of a test run, which only look at it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock


def made_once(
    factory: pytest.TempPathFactory, worker: str, name: str, make: Callable[[Path], Any]
) -> tuple[Path, Any]:
    """Make something in a folder that all workers share; the first to come does the work.

    Args:
        worker: pytest-xdist's name for this worker, or ``master``.
        name: of the folder, which does not exist yet.
        make: makes it there; what it returns is kept as JSON.

    Returns:
        the folder, and what ``make`` returned.
    """
    base = factory.getbasetemp() if worker == "master" else factory.getbasetemp().parent
    folder, done = base / name, base / f"{name}.json"
    with FileLock(base / f"{name}.lock"):
        if not done.exists():
            done.write_text(json.dumps(make(folder)))
    return folder, json.loads(done.read_text())
