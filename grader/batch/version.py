"""The version of the code that decides verdicts: the grader's and the checks'."""

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
    """Return a hash of the code that grades a lab, 16 hex digits."""
    digest = hashlib.sha256()
    for path in sorted(_files(lab)):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _files(lab: str) -> list[Path]:
    grader = [ROOT / "grader" / name for name in DECIDING]
    utils = [p for p in (ROOT / "utils").rglob("*.py") if "views" not in p.parts]
    return [
        *(path for part in grader for path in (part.rglob("*.py") if part.is_dir() else [part])),
        *utils,
        *PhasePaths(ROOT, lab).checks,
    ]
