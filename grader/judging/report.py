"""Show a verdict to a learner: which parts are right, why others are not, and what to read.

The text contains neither hidden inputs nor their right answers.
"""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any

from IPython import get_ipython
from IPython.display import display

from grader.verdict import FULL, VERDICT_MIME, PartResult, Status, Verdict, in_points

INDENT = " " * 11
MARKS = {Status.RIGHT: "ok", Status.WRONG: "not yet"}


class VerdictReport:
    """A verdict in words and, for programs, as JSON.

    ``lesson`` is the number of the lesson that ``verdict.reads`` is a section of.
    """

    def __init__(self, verdict: Verdict, lesson: str):
        self.verdict = dataclasses.replace(verdict, lesson=lesson)

    def __str__(self) -> str:
        verdict = self.verdict
        lines = [f"{verdict.check}: {self.total()}"]
        said: set[str] = set()
        for part in verdict.parts if verdict.status is not Status.NOT_ATTEMPTED else ():
            share = f"({part.earned:g} of {part.points:g})"
            if part.status is Status.NOT_RUN:
                share = f"({part.points:g} withheld)"
            mark = MARKS.get(part.status, part.status)
            lines.append(f"  {mark:<7}  {part.name}  {share}")
            if part.against:
                lines += _indented(f"held against {part.against}")
            for sentence in self.reasons(part, said):
                lines += _indented(sentence)
            if part.example:
                lines.append(f"{INDENT}for example, to paste into your notebook:")
                lines += [f"{INDENT}    {line}" for line in part.example.lines()]
        if verdict.status is Status.NOT_ATTEMPTED:
            lines += _indented("not attempted yet")
        if verdict.status not in FULL:
            lines.append(f"  read: lesson {verdict.lesson}, “{verdict.reads}”")
        return "\n".join(lines)

    def total(self) -> str:
        """Return the points: those withheld are not among the points that could be earned."""
        most = self.verdict.most
        withheld = self.verdict.points - most
        more = f", {withheld:g} more withheld" if withheld else ""
        return f"{self.verdict.earned:g} of {in_points(most)}{more}"

    def reasons(self, part: PartResult, said: set[str]) -> list[str]:
        """Return the sentences that explain a part; one that was given above is not repeated.

        ``said`` has the sentences that were given so far; those of this part are added.
        """
        known = part.misconception
        why = f"“{known}”: {self.verdict.explanations[known]}" if known else part.problem
        told = []
        for sentence in filter(None, (why, part.hint)):
            told.append("as above" if sentence in said else sentence)
            said.add(sentence)
        return told

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": str(self), VERDICT_MIME: self.verdict.to_json()}

    def show(self) -> None:
        """Display the report in a notebook, or print it elsewhere."""
        if get_ipython() is None:
            print(self)
        else:
            display(self)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=INDENT, subsequent_indent=INDENT)
