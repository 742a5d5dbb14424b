"""Define the verdict: the result of a check for one learner's code, as data.

:mod:`hood.judge.verdicts.judge` makes verdicts. The report in the notebook, the feedback page, the
terminal and the class report show verdicts. In files and between processes, a verdict is JSON under
:data:`VERDICT_MIME`. Programs use :class:`Status` and :class:`Cause`. The sentences are for people,
and no program parses them. This module imports only modules that load quickly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from hood.untrusted import mapping, member, number, sequence, text, texts

VERDICT_MIME = "application/vnd.open-the-hood.verdict+json"

LINE = 100  # characters of an example's comment
MAX_CALL = 1000  # characters of an example's call, before it is laid out in lines
UNDEFINED = "a name is not defined: no cell that ran to its end defines it"


class Status(StrEnum):
    """The result of an exercise or of one of its parts."""

    RIGHT = "right"
    RIGHT_AS_FAR_AS_RUN = "right as far as run"  # for an exercise: some of its parts were not run
    PARTLY = "partly"  # for an exercise: some of its parts are right and some are wrong
    WRONG = "wrong"
    NOT_ATTEMPTED = "not attempted"
    NOT_RUN = "not run"


FULL = frozenset({Status.RIGHT, Status.RIGHT_AS_FAR_AS_RUN})
TRIED = FULL | {Status.PARTLY, Status.WRONG}


class Cause(StrEnum):
    """Why points were lost, or why there is no verdict."""

    NONE = "none"  # no points were lost, or the verdict was written before causes existed
    NOT_ATTEMPTED = "not_attempted"
    WRONG_RESULT = "wrong_result"
    RULE_BROKEN = "rule_broken"  # the code uses something that the exercise forbids
    TIMEOUT = "timeout"  # the code exceeded its time limit
    TOO_MUCH_OUTPUT = "too_much_output"  # the notebook printed more than it may
    NO_REPLY = "no_reply"  # the learner's process no longer answers
    UNDEFINED_NAME = "undefined_name"  # the cell that defines the name did not finish
    KERNEL_DIED = "kernel_died"
    KERNEL_STOPPED = "kernel_stopped"  # the kernel stopped before this cell
    NOT_EVALUATED = "not_evaluated"  # the check gave no verdict
    NEWER_PYTHON = "newer_python"  # this machine's Python is older than the learner's; no mark yet
    UNAVAILABLE = "unavailable"  # this machine lacks what the check needs, such as a GPU


@dataclass(frozen=True)
class Example:
    """A small failing call: code for a learner to paste into a cell, or a description in words."""

    # An expression that uses only names of the lab and of ``before``; it may have several lines.
    # Empty if ``said`` describes the call in words, and there is nothing to paste.
    call: str
    # An expression for the right result, or the name of the expected exception; empty when ``said``
    # describes the difference.
    expected: str = ""
    got: str = ""  # an expression for what the call returned, or the exception that it raised
    others: bool = False  # whether other answers are right, too
    said: str = ""  # the difference in words, if the two results look the same or are too long
    seed: str = ""  # the public seed that the example was drawn from
    before: tuple[str, ...] = ()  # lines to run before the call, such as an import
    # The problem of this call; :attr:`PartResult.problem` is about the first failed case.
    problem: str = ""

    def lines(self) -> list[str]:
        """Return the lines to paste: the call, and below it one or two lines of comment.

        The list is empty if the call is described in words. No text can break out of its comment.
        """
        said, right, got = (" ".join(t.split()) for t in (self.said, self.expected, self.got))
        code = [*self.before, *self.call.splitlines()]
        if not code:
            return []
        if said:
            return [*code, f"# {said}"]
        right = f"# {'one right answer is' if self.others else 'expected'} {right}"
        if len(right) + len(f"got {got}") > LINE:
            return [*code, right, f"# got {got}"]
        return [*code, f"{right}, got {got}"]

    @classmethod
    def from_json(cls, raw: Any) -> Self | None:
        """Read an example from JSON data; return None if the data is not an object."""
        if not isinstance(raw, dict):
            return None
        words = texts(raw, "expected", "got", "said", "seed", "problem")
        call = text(raw.get("call"), 2 * MAX_CALL)
        before = tuple(text(line, 2 * MAX_CALL) for line in sequence(raw.get("before")))
        return cls(call, **words, others=raw.get("others") is True, before=before)


@dataclass(frozen=True)
class PartResult:
    """The result of one part of an exercise."""

    name: str  # the part's name in the check
    points: float  # points that the part can earn
    earned: float  # points earned: all of them, or 0
    status: Status  # any status except ``RIGHT_AS_FAR_AS_RUN`` and ``PARTLY``
    cause: Cause = Cause.NONE  # why the points were lost
    # The cause in words for the learner. It describes the first failed case without its inputs and
    # values, or says why the part was not run. Empty when nothing is wrong.
    problem: str = ""
    quoted: str = ""  # the learner's own words at the problem's end, such as an exception's message
    misconception: str = ""  # name of the misconception that the code behaves like, or empty
    hint: str = ""  # the most similar misconception's sentence, if none was recognised
    example: Example | None = None  # a small call that fails in this part, or None
    against: str = ""  # what the answer was compared with, if this depends on the machine
    reads: str = ""  # heading of the lesson section to read again after this mistake

    @property
    def said(self) -> str:
        """The problem in words for the learner, from the part's example if it has one."""
        return (self.example.problem if self.example else "") or self.problem

    @property
    def anonymous_problem(self) -> str:
        """The problem without the learner's own words."""
        return self.problem.removesuffix(f": {self.quoted}") if self.quoted else self.problem

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """Read a part from JSON data."""
        raw = mapping(raw)
        return cls(
            **texts(raw, "name", "problem", "quoted", "misconception", "hint", "against", "reads"),
            points=number(raw.get("points")) or 0.0,
            earned=number(raw.get("earned")) or 0.0,
            status=member(Status, raw.get("status"), Status.NOT_RUN),
            cause=member(Cause, raw.get("cause"), Cause.NONE),
            example=Example.from_json(raw.get("example")),
        )


def in_points(number: float) -> str:
    """Return a number of points in words: ``1 point``, ``2.5 points``."""
    return f"{number:g} point{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Verdict:
    """The result of one exercise, for one learner's code."""

    check: str  # the check's name, equal to the ``grade_id`` of the graded cell
    points: float  # points that the exercise can earn
    status: Status  # status of the whole exercise
    # The parts' results in the check's order; empty when there was nothing to judge
    parts: tuple[PartResult, ...] = ()
    reads: str = ""  # heading of the lesson section that the exercise belongs to
    lesson: str = ""  # number of the lesson with that section; empty when it is not known yet
    seed: str = ""  # the seed that the cases were drawn from
    # Maps a misconception's name to the sentence that the learner reads
    explanations: dict[str, str] = field(default_factory=dict)
    claims: tuple[str, ...] = ()  # facts that only the learner's own process reports
    cause: Cause = Cause.NONE  # why there is no verdict, for ``NOT_RUN``
    problem: str = ""  # the cause in words for the learner

    @property
    def earned(self) -> float:
        """Points earned, summed over all parts."""
        return float(sum(part.earned for part in self.parts))

    @property
    def most(self) -> float:
        """Points that could be earned here. Parts that were not run do not count."""
        return self.points - sum(p.points for p in self.parts if p.status is Status.NOT_RUN)

    @property
    def section(self) -> str:
        """Heading of the lesson section to read again: the section of the first mistake."""
        wrong = (part.reads for part in self.parts if part.status is Status.WRONG)
        return next(wrong, "") or self.reads

    @property
    def misconceptions(self) -> list[str]:
        """Names of the recognised misconceptions, without repetition."""
        return list(self.explanations)

    @property
    def causes(self) -> set[Cause]:
        """Why points were lost: the causes of the verdict and of its parts."""
        return {self.cause, *(part.cause for part in self.parts)}

    @property
    def anonymous_problem(self) -> str:
        """The problem without the learner's own words."""
        return UNDEFINED if self.cause is Cause.UNDEFINED_NAME else self.problem

    def unexampled(self) -> dict[str, str]:
        """Return the parts that should get an example, each with its misconception's name, or "".

        These are wrong parts that broke no rule. If several parts have the same misconception, only
        the first of them gets an example. After a stopped call the result is empty, because a call
        of an example would also be stopped.
        """
        stopped = (Cause.TIMEOUT, Cause.TOO_MUCH_OUTPUT)
        if any(part.cause in stopped for part in self.parts):
            return {}
        first = {p.misconception: p for p in reversed(self.parts)}
        wrong = [p for p in self.parts if p.status is Status.WRONG]
        told = [p for p in wrong if not p.misconception or first[p.misconception] is p]
        return {p.name: p.misconception for p in told if p.cause is not Cause.RULE_BROKEN}

    def with_examples(self, found: Mapping[str, Example]) -> Verdict:
        """Return the same verdict with examples; the keys of ``found`` are names of parts."""
        parts = (dataclasses.replace(p, example=found.get(p.name)) for p in self.parts)
        return dataclasses.replace(self, parts=tuple(parts))

    def shown(self, *, misconceptions: bool, examples: bool) -> Verdict:
        """Return the verdict without the misconceptions and examples that a class's rules hide."""
        named = {"misconception": "", "hint": "", "reads": ""}
        hidden: dict[str, Any] = {} if misconceptions else named
        hidden |= {} if examples else {"example": None}
        parts = tuple(dataclasses.replace(part, **hidden) for part in self.parts)
        explanations = self.explanations if misconceptions else {}
        return dataclasses.replace(self, parts=parts, explanations=explanations)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain data, with the points earned."""
        data = dataclasses.asdict(self)
        return {**data, "parts": list(data["parts"]), "earned": self.earned}

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """Read a verdict from JSON data. A value of a wrong type is replaced by a default."""
        raw = mapping(raw)
        explanations = sequence(list(mapping(raw.get("explanations")).items()))
        return cls(
            **texts(raw, "check", "reads", "lesson", "seed", "problem"),
            points=number(raw.get("points")) or 0.0,
            status=member(Status, raw.get("status"), Status.NOT_RUN),
            parts=tuple(map(PartResult.from_json, sequence(raw.get("parts")))),
            explanations={text(name): text(why) for name, why in explanations},
            claims=tuple(map(text, sequence(raw.get("claims")))),
            cause=member(Cause, raw.get("cause"), Cause.NONE),
        )
