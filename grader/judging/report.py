"""How a verdict is shown to a learner: what holds, what does not, what it looks like, what to read.

Neither hidden inputs nor their right answers appear in it.
"""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any

from IPython import get_ipython
from IPython.display import display

from grader.verdict import FULL, VERDICT_MIME, PartResult, Status, Verdict

INDENT = " " * 11
MARKS = {Status.RIGHT: "ok     ", Status.WRONG: "not yet", Status.NOT_RUN: "not run"}


class Report:
    """A verdict in words and, for programs, as JSON.

    Args:
        verdict: what the check said.
        lesson: the number of the lesson that ``verdict.reads`` belongs to.
    """

    def __init__(self, verdict: Verdict, lesson: str):
        self.verdict = dataclasses.replace(verdict, lesson=lesson)

    def __str__(self) -> str:
        verdict = self.verdict
        lines = [f"{verdict.check}: {points(verdict.earned)} of {points(verdict.points)} points"]
        said: set[str] = set()
        for part in verdict.parts if verdict.status is not Status.NOT_ATTEMPTED else ():
            share = f"({points(part.earned)} of {points(part.points)})"
            if part.status is Status.NOT_RUN:
                share = f"({points(part.points)} withheld)"
            lines.append(f"  {MARKS[part.status]}  {part.name}  {share}")
            if part.against:
                lines += _indented(f"held against {part.against}")
            lines += self._why(part, said)
        if verdict.status is Status.NOT_ATTEMPTED:
            lines += _indented("not attempted yet")
        if verdict.status not in FULL:
            lines.append(f"  read: lesson {verdict.lesson}, “{verdict.reads}”")
        return "\n".join(lines)

    def _why(self, part: PartResult, said: set[str]) -> list[str]:
        """What is told of a part; a reason that was told above is not told again.

        Args:
            said: the reasons that were told so far; it grows.
        """
        known = part.misconception
        why = f"“{known}”: {self.verdict.explanations[known]}" if known else part.problem
        told = []
        for sentence in (why, part.hint):
            if sentence:
                told += _indented("as above" if sentence in said else sentence)
                said.add(sentence)
        if part.example:
            told.append(f"{INDENT}for example, to paste into your notebook:")
            told += [f"{INDENT}    {line}" for line in part.example.lines()]
        return told

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": str(self), VERDICT_MIME: self.verdict.to_json()}

    def show(self) -> None:
        """Display it in a notebook, print it anywhere else."""
        if get_ipython() is None:
            print(self)
        else:
            display(self)


def points(value: float) -> str:
    """2.0 as ``2``, 1.5 as ``1.5``."""
    return f"{value:g}"


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=INDENT, subsequent_indent=INDENT)
