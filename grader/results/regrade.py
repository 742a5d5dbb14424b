"""Requests for a regrade: a text cell that a learner adds to an exercise, and hands in again.

It begins with ``Regrade:`` and says why. It needs no other way in than the notebook: it is bounded
and made harmless as any text of a learner's is, and stands beside the exercise in formgrader and on
feedback. The class report lists it until a person has given the exercise a mark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from grader.judging.graded_cell import read_verdicts
from grader.results.feedback.exercises import added_by, sections
from grader.run_record import RunRecord, record
from grader.untrusted import text
from grader.verdict import Verdict, in_points

WORD = b"egrade"
ASKS = re.compile(r"\s{0,20}[*_]{0,3}regrade[*_]{0,3}\s{0,20}:[*_]{0,3}", re.IGNORECASE)


def requests_of(nb: NotebookNode) -> dict[str, str]:
    """Return what a learner asks for, by the name of the exercise; the last one counts."""
    return {
        section.name: " ".join(text(ASKS.sub("", cell.source, count=1)).split())
        for section in sections(nb)
        for cell in section.cells
        if section.graded and cell.cell_type == "markdown"
        if added_by(cell) == "learner" and ASKS.match(cell.source)
    }


def verdict_in_words(verdict: Verdict) -> str:
    """Return what a verdict gave, for a comparison with another one."""
    return f"{verdict.earned:g} of {in_points(verdict.most)}"


def with_earlier_verdicts(data: bytes, graded_before: Path) -> bytes:
    """Return a graded notebook's file with what the last other verdicts on its requests gave.

    Args:
        data: the file, which is to replace ``graded_before``.
    """
    if WORD not in data:
        return data
    try:
        nb = nbformat.v4.reads(data.decode())
        old = nbformat.v4.reads(graded_before.read_text(encoding="utf-8"))
        asked, now, then = requests_of(nb), read_verdicts(nb), read_verdicts(old)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return data  # there is none, or none that can be read
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
