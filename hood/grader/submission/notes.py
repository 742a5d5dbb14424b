"""Notes: messages to a learner about repaired faults of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from nbformat.notebooknode import NotebookNode

from hood.grader.submission.names import printable
from hood.metadata import KEY

FEW = 5  # at most this many of a learner's names in one note


class NoteKind(StrEnum):
    """What was wrong with a submission or one of its cells."""

    UNREADABLE = "unreadable"
    FOREIGN = "foreign"  # the notebook has no graded cell and no answer of the lab
    UNMARKED = "unmarked"  # the notebook's cells have lost their ids
    RENAMED = "renamed"
    ANOTHER = "another"  # another notebook with a similar name was handed in
    MISSING = "missing"  # a cell is missing
    COPIED = "copied"  # a cell occurs several times
    CHANGED = "changed"  # a cell other than a solution cell was edited
    MOVED = "moved"  # text was moved out of one of the lab's cells
    RETYPED = "retyped"  # a cell's type was changed
    SETTINGS = "settings"  # a cell's settings for grading were changed
    TAGS = "tags"  # a cell's tags were changed
    FILES = "files"  # the files could not be copied into the sandbox
    UNKNOWN = "unknown"  # the lab has no cell with this id
    LEFT_OUT = "left out"  # a file was left out
    NOT_SHOWN = "not shown"  # a browser or a kernel might run these files
    TIMESTAMP = "timestamp"
    OWN_TIME = "own time"  # the time of the learner's own cells was used up
    UNGRADED = "ungraded"  # there is no grade, because the grader failed
    OTHER = "other"  # the run's record has an unknown kind


@dataclass(frozen=True)
class Note:
    """One message to a learner about a submission, or about the cell with this ``grade_id``."""

    kind: NoteKind
    message: str
    cell: str | None = None


def unreadable(reason: str) -> Note:
    """Return the note for a file that could not be used. Pages show it above the lab's cells."""
    instead = "Below is the lab as it was released; grading gave no mark."
    return Note(NoteKind.UNREADABLE, f"{reason} {instead}")


def left_out(name: str, reason: str) -> Note:
    """Return the note for a file that is missing when the notebook runs."""
    return Note(NoteKind.LEFT_OUT, f"{name} was left out: {reason}.")


def some(names: Sequence[str]) -> str:
    """Return the first ``FEW`` names in backquotes, and the number of the other names."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(map(quoted, names[:FEW])) + more


def quoted(text: str) -> str:
    """Return a learner's text in backquotes: odd characters replaced, at most 60 characters."""
    return f"`{printable(text)[:60]}`"


def record(where: NotebookNode, **facts: Any) -> None:
    """Write facts about the run into the metadata of a notebook or a cell."""
    if "notes" in facts:
        facts["notes"] = [asdict(note) for note in facts["notes"]]
    where.metadata.setdefault(KEY, NotebookNode()).update(facts)
