"""Names what decides a verdict besides submission and lab: the code of grader and checks."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from grader.phase_paths import ROOT, PhasePaths

# What of the grader decides a mark; the rest builds, records or shows.
DECIDING = (
    "inside",
    "judging",
    "preprocessors",
    "sandbox",
    "submission",
    "batch/grading.py",
    "batch/job.py",
)


@cache
def version(lab: str, root: Path = ROOT) -> str:
    """Sixteen hex digits over the code that grades a lab."""
    digest = hashlib.sha256()
    for path in sorted(_files(lab, root)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _files(lab: str, root: Path) -> list[Path]:
    grader = [root / "grader" / name for name in DECIDING]
    utils = [p for p in (root / "utils").rglob("*.py") if "views" not in p.parts]
    return [
        *(path for part in grader for path in (part.rglob("*.py") if part.is_dir() else [part])),
        *utils,
        *PhasePaths(root, lab).checks,
    ]
