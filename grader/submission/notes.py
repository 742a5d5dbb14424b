"""Notes: messages to a learner about what was wrong with a submission and was repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from nbformat.notebooknode import NotebookNode

from grader.metadata import MAY_RAISE
from grader.submission.names import printable
from grader.submission.notebook import SubmittedCell

# Points are the source's. Where they alone differ, an earlier release may have had others.
SETTINGS = ("grade", "solution", "locked", "task")
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
    UNGRADED = "ungraded"  # by fault of the grader
    OTHER = "other"  # the record of the run has none of these


@dataclass(frozen=True)
class Note:
    """One message about a submission.

    Attributes:
        kind: what was wrong; programs decide by it.
        message: a sentence for the learner.
        cell: the ``grade_id`` of the cell that the note is about, or None.
    """

    kind: NoteKind
    message: str
    cell: str | None = None


FOREIGN = Note(
    NoteKind.FOREIGN,
    "No answer to this lab was found in the notebook, so the lab was graded as it was released. "
    "Was another notebook handed in?",
)


UNMARKED = Note(
    NoteKind.UNMARKED,
    "The cells of this lab had lost their marks. The code in your cells was used wherever it "
    "defines what an exercise asks for.",
)


def unreadable(reason: str) -> Note:
    """Return the note that nothing of the file could be used; it stands above the lab's cells."""
    instead = "What you see below is the lab as it was released, and grading gave it no mark."
    return Note(NoteKind.UNREADABLE, f"{reason} {instead}")


def renamed(taken: str, expected: str) -> Note:
    """Return the note that the notebook was found under another name."""
    return Note(
        NoteKind.RENAMED,
        f"{_quoted(taken)} was taken for the notebook, which should be named `{expected}`.",
    )


def in_a_folder(name: str) -> Note:
    """Return the note that the notebook was found in a folder within the submission's folder."""
    return Note(
        NoteKind.RENAMED,
        f"The notebook was taken from the folder {_quoted(name)}; hand in what is in it.",
    )


def another(graded: str, names: Sequence[str]) -> Note:
    """Return the note that copies of the notebook were handed in beside it."""
    return Note(
        NoteKind.ANOTHER,
        f"Also handed in: {some(names)}. Only `{graded}` was graded. Is the work in another one?",
    )


def left_out(name: str, reason: str) -> Note:
    """Return the note that a file beside the notebook is missing when the notebook runs."""
    return Note(NoteKind.LEFT_OUT, f"{name} was left out: {reason}.")


def more_left_out(count: int) -> Note:
    """Return the note that so many further files are missing when the notebook runs."""
    return Note(NoteKind.LEFT_OUT, f"{count} further files were left out.")


def not_shown(names: Sequence[str]) -> list[Note]:
    """Return a note about files that only the learner's own code gets, or an empty list."""
    if not names:
        return []
    return [
        Note(
            NoteKind.NOT_SHOWN,
            f"{some(names)}: your code can read this, but it is not kept beside the graded "
            "notebook, because whoever opens that might run it. Data and pictures (.csv, .json, "
            ".npz, .png) are kept.",
        )
    ]


def no_timestamp(problem: str) -> Note:
    """Return the note that the time of the submission is unknown."""
    return Note(
        NoteKind.TIMESTAMP, f"`timestamp.txt` can't be used: {problem}. A person will look at it."
    )


def ungraded(problem: str) -> Note:
    """Return the note that the grader failed. It is not the learner's fault."""
    return Note(
        NoteKind.UNGRADED, f"This could not be graded: {problem}. A person will look at it."
    )


def unknown(grade_id: str) -> Note:
    """Return the note that a cell has an id that the lab does not have."""
    return Note(
        NoteKind.UNKNOWN,
        f"A cell is marked with the id {_quoted(grade_id)}, which this lab does not have. "
        "It was kept as an ordinary cell.",
    )


def cell_missing(grade_id: str, *, written_elsewhere: bool) -> Note:
    """Return the note that an owned cell was missing.

    Args:
        written_elsewhere: whether another cell defines what the missing cell should define.
    """
    used = "the code in your other cells was used"
    what = used if written_elsewhere else "it was put back as released"
    return Note(NoteKind.MISSING, f"The cell `{grade_id}` was missing; {what}.", grade_id)


def copied(grade_id: str, count: int, *, solution: bool) -> Note:
    """Return the note that an owned cell occurred more than once."""
    used = (
        "the last changed one above its test was graded; other changed ones were kept as ordinary "
        "cells, untouched ones left out"
        if solution
        else "the original was used once"
    )
    return Note(
        NoteKind.COPIED, f"The cell `{grade_id}` was there {count} times; {used}.", grade_id
    )


def cell_edited(grade_id: str) -> Note:
    """Return the note that the text of a cell that is not a solution cell was changed."""
    return Note(
        NoteKind.CHANGED, f"The cell `{grade_id}` was edited; the original was used.", grade_id
    )


def words_moved(grade_id: str) -> Note:
    """Return the note that words typed into a question's cell stand in a cell of their own."""
    return Note(
        NoteKind.MOVED,
        f"What was written into the cell `{grade_id}` now stands in a cell below it.",
        grade_id,
    )


def metadata_notes(grade_id: str, came: SubmittedCell, cell: NotebookNode) -> list[Note]:
    """Return notes on what else the learner changed in an owned cell: type, settings, tags."""
    notes = []
    if came.kind != cell.cell_type:
        message = f"The cell `{grade_id}` had become a {came.kind} cell; it was read as "
        notes.append(Note(NoteKind.RETYPED, f"{message}{cell.cell_type}.", grade_id))
    ours, theirs = cell.metadata.nbgrader, came.settings
    if any(theirs.get(key) != ours.get(key) for key in SETTINGS if key in theirs):
        message = f"The grading settings of the cell `{grade_id}` were changed; the original ones"
        notes.append(Note(NoteKind.SETTINGS, f"{message} were used.", grade_id))
    released = {*cell.metadata.get("tags", []), MAY_RAISE}  # the second is in every release
    tags = [tag for tag in came.tags if tag not in released]
    if tags:
        message = f"Tags of the cell `{grade_id}` were removed: {some(tags)}."
        notes.append(Note(NoteKind.TAGS, message, grade_id))
    return notes


def some(names: Sequence[str]) -> str:
    """Return the first ``FEW`` names in backquotes, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(map(_quoted, names[:FEW])) + more


def _quoted(text: str) -> str:
    """Return a learner's word in backquotes: odd characters replaced, at most 60 characters."""
    return f"`{printable(text)[:60]}`"
