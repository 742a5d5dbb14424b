"""The record of a grading run in a notebook's metadata, beside the verdicts.

The lab's own settings (title, points, limits) are under the same key, but are not part of the
record.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from nbformat.notebooknode import NotebookNode

from hood.grader.submission.notebook import Unreadable
from hood.grader.submission.notes import Note, NoteKind, record
from hood.metadata import KEY, VERSIONS
from hood.untrusted import mapping, member, number, sequence, text, texts, truth

SEED = re.compile(r"[0-9A-Za-z-]{1,64}")


def typed_seed(text: str) -> str:
    """Return the seed typed after ``--seed``; argparse calls this.

    Raises ArgumentTypeError if the text is not a seed.
    """
    if not SEED.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a seed: expected 1 to 64 characters from A-Z, a-z, 0-9 and '-'"
        )
    return text


@dataclass(frozen=True)
class RunRecord:
    """The record of one notebook's run; missing values, and values of a wrong type, are empty."""

    seed: str = ""  # the seed of its checks' cases
    job_id: str = ""  # the batch's id, with hashes of the grader, the lab and the submission
    # the versions of Python and of the packages that decide grades, by name; empty if not recorded
    versions: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool | None = None  # whether a sandbox was used; None if not recorded
    seconds: float | None = None  # the run's duration by the clock
    notes: tuple[Note, ...] = ()  # about changes before grading
    python: str = ""  # the learner's Python version, according to the submission
    # for each exercise, in words: the points before a request for a regrade
    earlier: Mapping[str, str] = field(default_factory=dict)
    # whether only requests for a regrade are new since the earlier grading
    only_asks: bool | None = None

    @property
    def graded_by(self) -> str:
        """Hashes of all factors of the grade (:data:`hood.grader.batch.job.FACTORS`), or empty."""
        return self.job_id.rpartition("-")[0]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the record from a graded notebook's file; empty when there is no such notebook."""
        from hood.grader.submission.files import read_file  # here, because it imports nbgrader

        data = read_file(path)
        try:
            return cls() if isinstance(data, Unreadable) else cls.of(json.loads(data)["metadata"])
        except (TypeError, ValueError, KeyError):
            return cls()

    @classmethod
    def of(cls, metadata: Any) -> Self:
        """Read the record from a notebook's metadata, which may be of any shape."""
        ours = mapping(mapping(metadata).get(KEY))
        return cls(
            seed=text(ours.get("seed")),
            job_id=text(ours.get("key")),
            versions=_texts(ours.get(VERSIONS)),
            sandbox=truth(ours.get("sandbox")),
            seconds=number(ours.get("seconds")),
            notes=tuple(map(_note, sequence(ours.get("notes")))),
            python=text(ours.get("python")),
            earlier=_texts(ours.get("earlier")),
            only_asks=truth(ours.get("only_asks")),
        )


def problem_of(cell: NotebookNode) -> str:
    """Return why a cell could not be run to its end; empty if it ran to its end.

    The cell's metadata may have any shape.
    """
    return text(mapping(cell.metadata.get(KEY)).get("problem"))


def record_note(nb: NotebookNode, note: Note) -> None:
    """Add a note to the notebook's notes."""
    record(nb, notes=[*RunRecord.of(nb.metadata).notes, note])


def _texts(raw: Any) -> dict[str, str]:
    ours = mapping(raw)
    return texts(ours, *sequence(list(ours)))


def _note(raw: Any) -> Note:
    ours = mapping(raw)
    kind = member(NoteKind, ours.get("kind"), NoteKind.OTHER)
    return Note(kind, text(ours.get("message")), text(ours.get("cell")))
