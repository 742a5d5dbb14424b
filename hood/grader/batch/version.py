"""What decides verdicts beside a submission, as hashes, and what of it has changed."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path

from hood.phase_paths import ROOT, PhasePaths

# The files of the grader that decide a score. The others build, record or display.
DECIDING = (
    "judge",
    "grader/cleaning",
    "grader/execution",
    "grader/inside",
    "grader/sandbox",
    "grader/submission",
    "grader/batch/grading.py",
    "grader/batch/job.py",
    "grader/run_record.py",
    "classroom/lesson_links.py",
    "untrusted.py",
    "verdict.py",
)
# Those among them that no worker loads: they collect, show, say what a machine lacks, or read what
# stands in a submission's own digest.
OTHERS = (
    "judge/backquotes.py",
    "judge/card.py",
    "judge/solutions.py",
    "grader/cleaning/formulas.py",
    "grader/execution/self_judged.py",
    "grader/sandbox/doctor.py",
    "grader/submission/files.py",
    "grader/submission/times.py",
)
# The parts of a job's id that stand before the submission's, in their order, and in words.
FACTORS = (
    "the lab in source/",
    "the grader",
    "the lab's checks",
    "nbgrader's settings for running notebooks",
    "whether what it compiles can be compiled",
    "whether a sandbox is used",
)
DIGITS = 12  # of each part's hash; a job's id has to fit into 64 characters
ANOTHER = "the program that gave them"


def changes(before: str, now: str) -> list[str]:
    """Return in words what decides verdicts and is not the same in two jobs' ids.

    ``before`` is the recorded id, perhaps of an earlier form; ``now`` is a job's id, or its part
    that all submissions share.
    """
    old, new = before.split("-"), now.split("-")
    if len(old) <= len(FACTORS):  # the last is the submission's
        return [ANOTHER]
    return [part for part, one, other in zip(FACTORS, old, new, strict=False) if one != other]


def version(lab: str) -> str:
    """Return hashes of the code that grades a lab with its data, and of the lab's checks."""
    return f"{grader_version()}-{checks_version(lab)}"


def grader_version() -> str:
    """Return a hash of the code that grades, and of the data that it reads."""
    return _hash(_grader())


def checks_version(lab: str) -> str:
    """Return a hash of a lab's checks, and of the answers by which mistakes are named."""
    phase = PhasePaths(ROOT, lab)
    return _hash(phase.checks, *map(deciding, sorted(phase.answers.glob("*.toml"))))


def deciding(answers: Path) -> bytes:
    """Return what of an answers' file a verdict can depend on."""
    entries = tomllib.loads(answers.read_text(encoding="utf-8"))
    found = {
        kind: {
            name: {key: value for key, value in one.items() if key not in ("breaks", "uses")}
            for name, one in entries.get(kind, {}).items()
        }
        for kind in ("wrong", "right")
    }
    return json.dumps([answers.name, found]).encode()


def _hash(files: Iterable[Path], *more: bytes) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    for content in more:
        digest.update(content + b"\0")
    return digest.hexdigest()[:DIGITS]


def _grader() -> list[Path]:
    folder = ROOT / "hood"
    grader = [folder / name for name in DECIDING]
    every = {path for part in grader for path in (part.rglob("*.py") if part.is_dir() else [part])}
    return [
        *(every - {folder / name for name in OTHERS}),
        *(p for p in _data_too(ROOT / "utils") if "views" not in p.relative_to(ROOT).parts),
        # of a GPU's record, what answers are held against
        *(ROOT / "benchmarks" / "records").glob("*/minigpt.json"),
        *(ROOT / "benchmarks" / "records").glob("*/logits.npz"),
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
