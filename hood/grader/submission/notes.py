"""Notes: messages to a learner about what was wrong with a submission and was repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from nbformat.notebooknode import NotebookNode

from hood.grader.submission.names import printable
from hood.metadata import KEY

FEW = 5  # names of a learner's that one note has


class NoteKind(StrEnum):
    """What was wrong with a submission or one of its cells."""

    UNREADABLE = "unreadable"
    FOREIGN = "foreign"  # it has no graded cell and no answer of the lab
    UNMARKED = "unmarked"  # its cells have lost their ids
    RENAMED = "renamed"
    ANOTHER = "another"  # notebook of that name lies beside it
    MISSING = "missing"  # a cell
    COPIED = "copied"  # a cell
    CHANGED = "changed"  # a cell that is not a solution cell
    MOVED = "moved"  # words that were added to a question's cell
    RETYPED = "retyped"  # a cell
    SETTINGS = "settings"  # of a cell, for grading
    TAGS = "tags"  # of a cell
    FILES = "files"  # none could be copied into the sandbox
    UNKNOWN = "unknown"  # a cell's id
    LEFT_OUT = "left out"  # one file
    NOT_SHOWN = "not shown"  # files that a browser or a kernel might run
    TIMESTAMP = "timestamp"
    OWN_TIME = "own time"  # of the learner's own cells was up
    UNGRADED = "ungraded"  # by fault of the grader
    OTHER = "other"  # the record of the run has none of these


@dataclass(frozen=True)
class Note:
    """One message to a learner about a submission, or its cell of that ``grade_id``."""

    kind: NoteKind
    message: str
    cell: str | None = None


def unreadable(reason: str) -> Note:
    """Return the note that nothing of the file could be used; it stands above the lab's cells."""
    instead = "What you see below is the lab as it was released, and grading gave it no mark."
    return Note(NoteKind.UNREADABLE, f"{reason} {instead}")


def left_out(name: str, reason: str) -> Note:
    """Return the note that a file beside the notebook is missing when the notebook runs."""
    return Note(NoteKind.LEFT_OUT, f"{name} was left out: {reason}.")


def some(names: Sequence[str]) -> str:
    """Return the first ``FEW`` names in backquotes, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(map(quoted, names[:FEW])) + more


def quoted(text: str) -> str:
    """Return a learner's word in backquotes: odd characters replaced, at most 60 characters."""
    return f"`{printable(text)[:60]}`"


def record(where: NotebookNode, **facts: Any) -> None:
    """Write facts about the run into a notebook's metadata, or a cell's ``problem``."""
    if "notes" in facts:
        facts["notes"] = [asdict(note) for note in facts["notes"]]
    where.metadata.setdefault(KEY, NotebookNode()).update(facts)
