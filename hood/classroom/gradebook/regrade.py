"""Find requests for a regrade: a learner adds a text cell to an exercise, and hands in again.

The cell begins with ``Regrade:`` and gives the reason. The request is part of the notebook, so it
is limited and sanitized like all of a learner's text. The request appears beside the exercise in
formgrader and in feedback. The class report lists the request until a person has marked the
exercise. If nothing else has changed, the time of the earlier hand-in counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_task

from hood.classroom.gradebook.exercises import Segment, added_by, is_answer, segments
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.run_record import RunRecord
from hood.grader.submission.notes import NoteKind, record
from hood.untrusted import text
from hood.verdict import Verdict, in_points

WORD = b"regrade"
ASKS = re.compile(r"\s{0,20}[*_]{0,3}regrade[*_]{0,3}\s{0,20}:[*_]{0,3}", re.IGNORECASE)


def may_ask(data: bytes) -> bool:
    """Return whether a notebook's file may contain a request and must be parsed."""
    return WORD in data.lower()


def requests_of(nb: NotebookNode) -> dict[str, str]:
    """Return a learner's requests, keyed by exercise; the last request in an exercise counts."""
    return {
        segment.name: " ".join(text(ASKS.sub("", cell.source, count=1)).split())
        for segment, cell in _asking(nb)
    }


def _asking(nb: NotebookNode) -> Iterator[tuple[Segment, NotebookNode]]:
    """Yield the cells that ask for a regrade, each with its exercise."""
    for segment in segments(nb):
        for cell in segment.cells if segment.graded else ():
            theirs = cell.cell_type == "markdown" and added_by(cell) == "learner"
            if theirs and ASKS.match(cell.source):
                yield segment, cell


def only_asks(graded: Iterable[tuple[bytes, Path]]) -> bool:
    """Return whether a learner added only requests to the work that was graded earlier.

    If a question has no answer cell, a cell that the learner adds below it is the answer. So a
    request below such a question also changes the work.

    Args:
        graded: each notebook's new file, with the path of the file that it will replace.
    """
    asks = False
    for data, before in graded:
        try:
            nb = nbformat.v4.reads(data.decode())
            old = nbformat.v4.reads(before.read_text(encoding="utf-8"))
            asking = list(_asking(nb))
            if any(is_task(segment.graded) for segment, _ in asking):
                return False
            if _work(nb) != _work(old) or not (_keeps(nb) and _keeps(old)):
                return False
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return False
        asks = asks or bool(asking)
    return asks


def _work(nb: NotebookNode) -> list[Any]:
    """Return a graded notebook's parts that may affect a verdict or mark; leave out requests.

    If nbgrader restores the text of a lab's cell, that text is not the learner's work. The lab's
    other code cells are part of the work, because learners can delete, copy and move them.
    """
    asking = [cell for _, cell in _asking(nb)]
    found = []
    for cell in nb.cells:
        if any(cell is one for one in asking) or added_by(cell) == "grader":
            continue
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if is_answer(cell):
            found.append([name, cell.cell_type, cell.source, cell.get("attachments", {})])
        elif name or cell.cell_type == "code":
            found.append([name, cell.cell_type, "" if name else cell.source])
    return found


def _keeps(nb: NotebookNode) -> bool:
    """Return whether a graded notebook still has everything that its learner's code could read."""
    hiding = (NoteKind.NOT_SHOWN, NoteKind.LEFT_OUT, NoteKind.FILES)
    return not any(note.kind in hiding for note in RunRecord.of(nb.metadata).notes)


def marked_as_asking(data: bytes) -> bytes:
    """Return a graded notebook's file with ``only_asks`` recorded in it."""
    nb = nbformat.v4.reads(data.decode())
    record(nb, only_asks=True)
    return nbformat.v4.writes(nb).encode()


def verdict_in_words(verdict: Verdict) -> str:
    """Return a verdict's points as text, to show beside the points of another verdict."""
    return f"{verdict.earned:g} of {in_points(verdict.most)}"


def with_earlier_verdicts(data: bytes, graded_before: Path) -> bytes:
    """Add the earlier points to a graded notebook's file, for each exercise with a request.

    Args:
        data: the file that will replace ``graded_before``.
    """
    if not may_ask(data):
        return data
    try:
        nb = nbformat.v4.reads(data.decode())
        old = nbformat.v4.reads(graded_before.read_text(encoding="utf-8"))
        asked, now, then = requests_of(nb), read_verdicts(nb), read_verdicts(old)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return data  # there is no older file, or it can't be read
    earlier: Mapping[str, str] = RunRecord.of(old.metadata).earlier
    found: dict[str, str] = {}
    for name in asked.keys() & now.keys():
        before = verdict_in_words(then[name]) if name in then else ""
        said = before if before != verdict_in_words(now[name]) else earlier.get(name, "")
        found |= {name: said} if said else {}
    if not found:
        return data
    record(nb, earlier=found)
    return nbformat.v4.writes(nb).encode()
