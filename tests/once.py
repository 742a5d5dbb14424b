"""Make a folder once for all workers of a test run, which only read it."""

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
    """Make a folder that all workers share; the first worker makes it, the others wait.

    Args:
        factory: pytest's, for the place of the folder.
        worker: pytest-xdist's name for this worker, or ``master``.
        name: the folder's name.
        make: makes the folder at the path that it gets; its result is stored as JSON.

    Returns:
        The folder, and the result of ``make``.
    """
    base = factory.getbasetemp() if worker == "master" else factory.getbasetemp().parent
    folder, done = base / name, base / f"{name}.json"
    with FileLock(base / f"{name}.lock"):
        if not done.exists():
            done.write_text(json.dumps(make(folder)))
    return folder, json.loads(done.read_text())
