"""Names what decides a verdict besides submission and lab: the code of grader and checks."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from grader.layout import ROOT, Room

# Folders and files of the grader that build, record or show, and decide no mark, but for two.
SILENT = {"batch", "build", "class_report", "sample_class", "demo.py", "prove.py", "summary.py"}
DECIDING = (Path("grader/batch/grading.py"), Path("grader/batch/job.py"))


@cache
def version(lab: str, root: Path = ROOT) -> str:
    """Sixteen hex digits over the code that grades a lab."""
    digest = hashlib.sha256()
    for path in sorted(_files(lab, root)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _files(lab: str, root: Path) -> list[Path]:
    grader = [
        path
        for path in (root / "grader").rglob("*.py")
        if path.relative_to(root / "grader").parts[0] not in SILENT
    ]
    utils = [p for p in (root / "utils").rglob("*.py") if "views" not in p.parts]
    return [*grader, *(root / path for path in DECIDING), *utils, *Room(root, lab).checks]
