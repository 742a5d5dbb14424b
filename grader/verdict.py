"""What a check says of one learner's code, as data.

:mod:`grader.judging.judge` makes it; the report in the notebook, feedback, the terminal and the
class report read it. Between processes and files it travels as JSON under :data:`VERDICT_MIME`.
Programs decide by :class:`Status` and :class:`Cause`; sentences are for people, and nothing reads
them. The module imports nothing that is slow to load.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self, TypeVar

VERDICT_MIME = "application/vnd.open-the-hood.verdict+json"

# Bounds of a verdict that is read back: a notebook that was graded without a sandbox may hold
# whatever its learner's code wrote. The grader's own verdicts are far smaller.
MAX_TEXT = 400  # characters of one text
MAX_ENTRIES = 100  # parts, explanations, claims

LINE = 100  # characters of an example's comment
UNDEFINED = "a name is not defined: the cell that should define it did not run through"

E = TypeVar("E", bound=StrEnum)


class Status(StrEnum):
    """What became of an exercise or of one of its parts."""

    RIGHT = "right"
    RIGHT_AS_FAR_AS_RUN = "right as far as run"  # an exercise, of which a part was not run
    PARTLY = "partly"  # an exercise with right and wrong parts
    WRONG = "wrong"
    NOT_ATTEMPTED = "not attempted"
    NOT_RUN = "not run"


FULL = frozenset({Status.RIGHT, Status.RIGHT_AS_FAR_AS_RUN})
TRIED = FULL | {Status.PARTLY, Status.WRONG}


class Cause(StrEnum):
    """Why points were lost, or why there is no verdict."""

    NONE = "none"  # nothing was lost, or the verdict is older than causes
    NOT_ATTEMPTED = "not_attempted"
    WRONG_RESULT = "wrong_result"
    RULE_BROKEN = "rule_broken"  # something was used that had to be done by hand
    TIMEOUT = "timeout"  # the code ran until its time was up
    NO_REPLY = "no_reply"  # the learner's process could not be asked any more
    UNDEFINED_NAME = "undefined_name"  # the cell that defines it did not run through
    KERNEL_DIED = "kernel_died"
    KERNEL_STOPPED = "kernel_stopped"  # in an earlier cell, so this one was not run
    NOT_EVALUATED = "not_evaluated"  # the check gave no verdict
    UNAVAILABLE = "unavailable"  # this machine has nothing to judge it by, such as a GPU


@dataclass(frozen=True)
class Example:
    """A small call that goes wrong, for the learner to paste.

    Attributes:
        call: an expression that the lab's names suffice for.
        expected: an expression for what is right, or the name of the exception; empty where
            ``said`` tells the difference.
        got: an expression for what was returned; or what was raised.
        others: whether other answers are right, too.
        said: the difference in words, where the two expressions would look alike or be too long.
        seed: what it was drawn from; public.
    """

    call: str
    expected: str = ""
    got: str = ""
    others: bool = False
    said: str = ""
    seed: str = ""

    def lines(self) -> list[str]:
        """What a learner pastes: the call, and a comment of one line, or of two if it is long."""
        if self.said:
            return [self.call, f"# {self.said}"]
        expected = "one right answer is" if self.others else "expected"
        said = f"# {expected} {self.expected}", f"came {self.got}"
        if sum(map(len, said)) > LINE:
            return [self.call, said[0], f"# {said[1]}"]
        return [self.call, ", ".join(said)]

    @classmethod
    def from_json(cls, raw: Any) -> Self | None:
        """An example that was read from a file; None where there is none."""
        if not isinstance(raw, Mapping):
            return None
        words = ("call", "expected", "got", "said", "seed")
        return cls(**{key: _text(raw.get(key)) for key in words}, others=raw.get("others") is True)


@dataclass(frozen=True)
class PartResult:
    """One part of an exercise.

    Attributes:
        name: as the check has it.
        points: what it can earn.
        earned: all of them, or 0.
        status: any but ``RIGHT_AS_FAR_AS_RUN`` and ``PARTLY``.
        cause: why the points were lost.
        problem: the same for the learner, about the first failed case, without its inputs and
            values; or why it was not run; or empty.
        quoted: the learner's own words at the end of ``problem``, such as an exception's message.
        misconception: name of the misconception that the code behaves like, or empty.
        hint: where none is named, the one that most of it looks like, in a sentence; or empty.
        example: a small call that fails in this part, or None.
        against: what the answer was held against, where that depends on the machine.
    """

    name: str
    points: float
    earned: float
    status: Status
    cause: Cause = Cause.NONE
    problem: str = ""
    quoted: str = ""
    misconception: str = ""
    hint: str = ""
    example: Example | None = None
    against: str = ""

    @property
    def reason(self) -> str:
        """Why the points were lost; equal for two parts that one cause took them from."""
        return self.misconception or self.problem

    @property
    def anonymous_problem(self) -> str:
        """The problem without the learner's own words."""
        words = f": {self.quoted}" if self.quoted else ""
        return self.problem.removesuffix(words)

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """A part that was read from a file."""
        raw = _mapping(raw)
        return cls(
            name=_text(raw.get("name")),
            points=_number(raw.get("points")),
            earned=_number(raw.get("earned")),
            status=_member(Status, raw.get("status"), Status.NOT_RUN),
            cause=_member(Cause, raw.get("cause"), Cause.NONE),
            problem=_text(raw.get("problem")),
            quoted=_text(raw.get("quoted")),
            misconception=_text(raw.get("misconception")),
            hint=_text(raw.get("hint")),
            example=Example.from_json(raw.get("example")),
            against=_text(raw.get("against")),
        )


@dataclass(frozen=True)
class Verdict:
    """What a check says of one learner's code.

    Attributes:
        check: its name, which is the ``grade_id`` of the graded cell.
        points: what the exercise can earn.
        status: of the whole exercise.
        parts: in the check's order; none where there was nothing to judge.
        reads: heading of the lesson section to read again.
        lesson: the number of the lesson with that section; empty while it is not known.
        seed: what the cases were drawn from.
        explanations: misconception name to the sentence that the learner reads.
        claims: what of it rests on the word of the learner's own process, a few words each.
        cause: why there is no verdict, for ``NOT_RUN``.
        problem: the same for the learner.
    """

    check: str
    points: float
    status: Status
    parts: tuple[PartResult, ...] = ()
    reads: str = ""
    lesson: str = ""
    seed: str = ""
    explanations: dict[str, str] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    cause: Cause = Cause.NONE
    problem: str = ""

    @property
    def earned(self) -> float:
        """Points earned, over all parts."""
        return float(sum(part.earned for part in self.parts))

    @property
    def misconceptions(self) -> list[str]:
        """Names of the misconceptions that were recognised, each once."""
        return list(self.explanations)

    @property
    def anonymous_problem(self) -> str:
        """The problem without the learner's own words."""
        return UNDEFINED if self.cause is Cause.UNDEFINED_NAME else self.problem

    def unexampled(self) -> list[str]:
        """The parts that deserve an example: one for each misconception, and each without one.

        Code that ran out of time would do so again.
        """
        stopped = any(part.cause is Cause.TIMEOUT for part in self.parts)
        if self.status is Status.NOT_ATTEMPTED or stopped:
            return []
        first = {p.misconception: p.name for p in reversed(self.parts)}
        return [
            p.name
            for p in self.parts
            if p.status is Status.WRONG
            and p.cause is not Cause.RULE_BROKEN
            and (not p.misconception or first[p.misconception] == p.name)
        ]

    def with_examples(self, found: Mapping[str, Example]) -> Verdict:
        """The same verdict, with examples for some parts."""
        parts = (dataclasses.replace(p, example=found.get(p.name)) for p in self.parts)
        return dataclasses.replace(self, parts=tuple(parts))

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data, with the points earned."""
        data = dataclasses.asdict(self)
        return {**data, "parts": list(data["parts"]), "earned": self.earned}

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """A verdict that was read from a file. Whatever is not of the right type is left out."""
        raw = _mapping(raw)
        explanations = list(_mapping(raw.get("explanations")).items())[:MAX_ENTRIES]
        return cls(
            check=_text(raw.get("check")),
            points=_number(raw.get("points")),
            status=_member(Status, raw.get("status"), Status.NOT_RUN),
            parts=tuple(map(PartResult.from_json, _sequence(raw.get("parts")))),
            reads=_text(raw.get("reads")),
            lesson=_text(raw.get("lesson")),
            seed=_text(raw.get("seed")),
            explanations={_text(name): _text(why) for name, why in explanations},
            claims=tuple(map(_text, _sequence(raw.get("claims")))),
            cause=_member(Cause, raw.get("cause"), Cause.NONE),
            problem=_text(raw.get("problem")),
        )


def _mapping(raw: Any) -> Mapping[Any, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _sequence(raw: Any) -> list[Any]:
    return list(raw[:MAX_ENTRIES]) if isinstance(raw, (list, tuple)) else []


def _text(raw: Any) -> str:
    return raw[:MAX_TEXT] if isinstance(raw, str) else ""


def _number(raw: Any) -> float:
    return float(raw) if isinstance(raw, (int, float)) and abs(raw) < 1e9 else 0.0


def _member(kind: type[E], raw: Any, otherwise: E) -> E:
    return kind(raw) if isinstance(raw, str) and raw in list(kind) else otherwise
