"""What is recorded of a grading run in a notebook's own metadata, beside the verdicts.

The lab's own settings (title, points, limits) stand under the same key and are no facts of a run.
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
    """Return the seed that somebody typed behind ``--seed``; argparse calls it.

    Raises ArgumentTypeError if it is none.
    """
    if not SEED.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no seed: expected 1 to 64 letters a-z, digits and '-'"
        )
    return text


@dataclass(frozen=True)
class RunRecord:
    """The facts about one notebook's run; what was not recorded, or has another type, is empty."""

    seed: str = ""  # what the cases were drawn from
    job_id: str = ""  # the batch's, which names what it was graded by and the submission
    # of the packages that decide, and of Python, by name; empty where that was not recorded
    versions: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool | None = None  # whether there was one; None where that was not recorded
    seconds: float | None = None  # how long the run took by the clock
    notes: tuple[Note, ...] = ()  # what was put right before grading
    python: str = ""  # the version with which, as the submission says, its learner worked
    # what verdicts gave before a request for a regrade, in words, by exercise
    earlier: Mapping[str, str] = field(default_factory=dict)
    # whether it differs from what was graded before by requests for a regrade alone
    only_asks: bool | None = None

    @property
    def graded_by(self) -> str:
        """Hashes of what it was graded by (:data:`hood.grader.batch.job.FACTORS`), or empty."""
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
    """Return why a cell, with metadata of any shape, could not be run to its end; or nothing."""
    return text(mapping(cell.metadata.get(KEY)).get("problem"))


def record_note(nb: NotebookNode, note: Note) -> None:
    """Add a note to those that the notebook has."""
    record(nb, notes=[*RunRecord.of(nb.metadata).notes, note])


def _texts(raw: Any) -> dict[str, str]:
    ours = mapping(raw)
    return texts(ours, *sequence(list(ours)))


def _note(raw: Any) -> Note:
    ours = mapping(raw)
    kind = member(NoteKind, ours.get("kind"), NoteKind.OTHER)
    return Note(kind, text(ours.get("message")), text(ours.get("cell")))
