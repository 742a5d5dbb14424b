"""Compiled headers of a sandbox, made once for all workers of a run."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from nbformat.notebooknode import NotebookNode

from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.text import parse
from hood.grader.sandbox.compiled_headers import prepared_headers
from hood.phase_paths import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "compiled" / "97_compiled"


def lab() -> NotebookNode:
    """The instructor's version of a lab that compiles."""
    return to_notebook(parse("lab.py", (FOLDER / "lab.py").read_text()))


def prepared_by_two(caches: Path) -> list[str]:
    """The paths that two processes got at the same time, before the headers existed."""
    caches.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        # add a path, as a course in another folder with another grader may have done
        patch.setattr(sys, "path", [str(ROOT), *sys.path])
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            return list(pool.map(_prepare, [caches] * 2))


def _prepare(caches: Path) -> str:
    """A worker's work before its first submission."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(caches))
        return str(prepared_headers())
