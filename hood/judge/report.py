"""Show a verdict to a learner: which parts are right, why other parts are wrong, and what to read.

The text contains no hidden inputs and no right answers to them.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from IPython import get_ipython
from IPython.display import display

from hood.judge.backquotes import as_sentence
from hood.verdict import FULL, VERDICT_MIME, Status, Verdict, in_points

INDENT = " " * 11
ABOVE = "as above"
REMARK = re.compile(r" \([^()]*\)\.?$")
BRIEF = 70  # characters of a mistake's description, for one line
WORDS = {Status.WRONG: "not yet"}  # words for statuses that are shown under another name


class PartWords(NamedTuple):
    """The texts about a part.

    Attributes:
        word: the word for the part's status.
        share: the points that the part earned, such as ``1 of 2``.
        reasons: sentences; a repeated sentence is replaced by ``as above``.
        hint: a last sentence, which may be folded away, or empty.
        example: lines to paste, or empty.
        brief: the mistake in a few words, for one line.
        later: whether another wrong part comes before this part. Then this part's reasons may be
            folded away.
        reads: the heading of the section to read, if it differs from :attr:`Verdict.section`.
    """

    name: str
    status: Status
    word: str
    share: str
    reasons: list[str]
    hint: str
    example: str
    brief: str
    later: bool
    reads: str


class VerdictReport:
    """A verdict in words and, for programs, as JSON.

    ``lesson`` is the number of the lesson with the section ``verdict.reads``.
    """

    def __init__(self, verdict: Verdict, lesson: str):
        self.verdict = dataclasses.replace(verdict, lesson=lesson)

    def __str__(self) -> str:
        verdict = self.verdict
        lines = [f"{verdict.check}: {self.total()}"]
        for part in self.parts():
            lines.append(f"  {part.word:<7}  {part.name}  ({part.share})")
            for sentence in filter(None, (*part.reasons, part.hint)):
                lines += _indented(sentence)
            if part.example:
                lines.append(f"{INDENT}for example, to paste into your notebook:")
                lines += [f"{INDENT}    {line}" for line in part.example.splitlines()]
        if verdict.status is Status.NOT_ATTEMPTED:
            lines += _indented("not attempted yet")
        elif not verdict.parts:
            lines += _indented(verdict.problem)
        if verdict.status not in FULL and verdict.section:
            lines.append(f"  read: lesson {verdict.lesson}, “{verdict.section}”")
        return "\n".join(lines)

    def heard(self) -> str:
        """Return what a screen reader says of a new verdict: the points, and the first mistake."""
        verdict = self.verdict
        wrong = next((part for part in self.parts() if part.status is Status.WRONG), None)
        said = [verdict.problem] if not verdict.parts else []
        if verdict.status is Status.NOT_ATTEMPTED:
            said = ["not attempted yet"]
        elif wrong:
            said = [f"{wrong.word}: {wrong.name}", *wrong.reasons]
        sentences = map(as_sentence, filter(None, said))
        return " ".join([f"{verdict.check}: {self.total()}.", *sentences]).replace("`", "")

    def total(self) -> str:
        """Return the points. Withheld points are not part of the maximum."""
        most = self.verdict.most
        withheld = self.verdict.points - most
        more = f", {withheld:g} more withheld" if withheld else ""
        return f"{self.verdict.earned:g} of {in_points(most)}{more}"

    def parts(self) -> Iterator[PartWords]:
        """Yield the texts about each part, if the exercise was attempted."""
        said: set[str] = set()
        wrong, section = False, self.verdict.section
        for part in self.verdict.parts if self.verdict.status is not Status.NOT_ATTEMPTED else ():
            withheld, known = part.status is Status.NOT_RUN, part.misconception
            one = part.example
            clause = " ".join(one.said.split()).rstrip(".") if one and not one.call else ""
            words = f"For example, {clause}{'' if clause.endswith('…') else '.'}" if clause else ""
            why = f"“{known}”: {self.verdict.explanations[known]}" if known else part.said
            if words and not known:  # the example says what is wrong
                why = ""
            brief = f"“{known}”" if known else _end_of(part.said)
            why, hint = (ABOVE if one in said else one for one in (why, part.hint))
            hint = "" if why == hint == ABOVE else hint
            against = f"compared with {part.against}" if part.against else ""
            yield PartWords(
                part.name,
                part.status,
                WORDS.get(part.status, part.status),
                f"{part.points:g} withheld" if withheld else f"{part.earned:g} of {part.points:g}",
                list(filter(None, (against, why, words))),
                hint,
                "\n".join(one.lines()) if one else "",
                brief,
                wrong and part.status is Status.WRONG,
                part.reads if part.reads != section else "",
            )
            said |= {why, part.hint} - {""}
            wrong = wrong or part.status is Status.WRONG

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": str(self), VERDICT_MIME: self.verdict.to_json()}

    def show(self) -> None:
        """Display the report in a notebook, or print it elsewhere."""
        if get_ipython() is None:
            print(self)
        else:
            display(self)


def _end_of(said: str) -> str:
    """Return the last clauses of a sentence, as many as fit into a line.

    The first clauses only name the place. A remark in brackets at the end is left out.
    """
    if len(said) > BRIEF:
        said = REMARK.sub("", said)
    clauses = said.split(": ")
    while len(": ".join(clauses)) > BRIEF and len(clauses) > 1:
        clauses = clauses[1:]
    return textwrap.shorten(": ".join(clauses), BRIEF, placeholder=" …")


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=INDENT, subsequent_indent=INDENT)
