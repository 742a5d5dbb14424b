"""The version of what decides verdicts: the grader's code, the checks, utils and its data."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from grader.phase_paths import ROOT, PhasePaths

# The files of the grader that decide a score. The others build, record or display.
DECIDING = (
    "inside",
    "judging",
    "preprocessors",
    "sandbox",
    "submission",
    "run_record.py",
    "untrusted.py",
    "verdict.py",
    "verify.py",
    "batch/grading.py",
    "batch/job.py",
)


@cache
def version(lab: str) -> str:
    """Return a hash of the code that grades a lab and of the data that it reads, 16 hex digits."""
    digest = hashlib.sha256()
    for path in sorted(_files(lab)):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _files(lab: str) -> list[Path]:
    grader = [ROOT / "grader" / name for name in DECIDING]
    return [
        *(path for part in grader for path in (part.rglob("*.py") if part.is_dir() else [part])),
        *(p for p in _data_too(ROOT / "utils") if "views" not in p.relative_to(ROOT).parts),
        *_data_too(ROOT / "benchmarks" / "records"),
        *PhasePaths(ROOT, lab).checks,
    ]


def _data_too(folder: Path) -> list[Path]:
    """Return the files below a folder, but for Python's caches and what is hidden."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
