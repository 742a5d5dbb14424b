"""The answer key: the cases of a check, with the outcomes of the reference and the misconceptions.

All submissions of a grading run get the same cases. So each outcome of the reference and of a
misconception is computed once and cached.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from grader.inside.codec import NotByValue
from grader.judging.by_hand import can_be_heard
from grader.judging.difference import OTHER_KIND, differs
from grader.judging.rpc_client import Connection, ConnectionLost, InProcess, OutOfTime
from grader.judging.subject import Subject, SubjectRaised
from grader.verdict import Cause
from utils.checks.exercise import Candidate, Case, Check
from utils.drivers import NoDriver
from utils.instruments.world import WorldError

# Answer keys to cache: more than the exercises of a lab, which are graded in turn for each
# submission.
KEPT = 64

# In the message of torch's RuntimeError for it, which has no type of its own on a CPU.
OUT_OF_MEMORY = "can't allocate memory"


@dataclasses.dataclass(frozen=True)
class CaseOutcome:
    """The outcome of one case: a value or an exception, and the side effects of the calls.

    Attributes:
        value: what the case returned.
        raised: what the code raised, or None.
        calls: a :class:`grader.judging.subject.CallEffects` for each call.
        unusable: what came back instead of a usable value, in words; empty if the value is usable.
        unprocessed: whether the case failed to process what came back.
        got: what the last call returned, for a case that failed to process it.
        cause: why there is neither value nor exception, if the code could not be called.
        claims: what rests on the word of the process that was asked, a few words each.
        called: what it says that the code called of torch; see :class:`Subject`.
    """

    value: Any
    raised: SubjectRaised | None
    calls: tuple
    unusable: str = ""
    unprocessed: bool = False
    got: Any = None
    cause: Cause = Cause.NONE
    claims: tuple[str, ...] = ()
    called: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def lost(cls, cause: Cause, why: str) -> CaseOutcome:
        """Return the outcome of a case that could not be played.

        Args:
            cause: why, for programs.
            why: why, in words that follow "returned".
        """
        return cls(None, None, (), unusable=why, cause=cause)

    def ran_short(self) -> bool:
        """Return whether the machine had too little memory for the case."""
        raised = self.raised
        return raised is not None and (
            MemoryError.__name__ in raised.kinds or OUT_OF_MEMORY in raised.message
        )


class AnswerKey:
    """The cases that a seed draws, with the outcomes that answers are compared with.

    Attributes:
        cases: the cases, in the order in which they are played.
    """

    def __init__(self, check: Check, seed: str):
        self.check, self.seed = check, seed
        self.cases = check.draw_cases(seed)
        self._known: dict[tuple[str, int], CaseOutcome] = {}
        self._errs: dict[tuple[str, int], bool] = {}

    def right(self, c: Case) -> CaseOutcome:
        """Return the outcome of the reference for one of the cases.

        Raises:
            ValueError: if the reference returns a value that cannot be sent between processes, or
                raises where the case does not say so, or another exception than it says.
            MemoryError: if this machine has too little memory.
        """
        found = self._outcome("", self.check.right, c)
        if found.ran_short():  # raised, because a new grading process may have enough memory
            raise MemoryError(f"check {self.check.name!r}: {found.raised}")
        if found.unusable:
            raise ValueError(f"check {self.check.name!r}: its reference returned {found.unusable}")
        raised = found.raised.kinds[0] if found.raised else ""
        if raised != c.raises:
            where = f"check {self.check.name!r}, part {c.part!r}"
            said = f"the case says it raises {c.raises}" if c.raises else "the case does not say so"
            got = f"raised {found.raised}" if found.raised else "raised nothing"
            raise ValueError(f"{where}: the reference {got}; {said}")
        return found

    def mistaken(self, misconception: Candidate, c: Case) -> CaseOutcome:
        """Return the outcome of one of the check's misconceptions for one of the cases."""
        return self._outcome(misconception.name, misconception.thing, c)

    def errs(self, misconception: Candidate, c: Case) -> bool:
        """Return whether one of the check's misconceptions is wrong in one of the cases."""
        place = misconception.name, id(c)
        if place in self._errs:
            return self._errs[place]
        found = self.mistaken(misconception, c)
        errs = differs(self.check, found, self.right(c))
        if not found.ran_short():
            self._errs[place] = errs
        return errs

    def _outcome(self, name: str, thing: Any, c: Case) -> CaseOutcome:
        place = name, id(c)
        if place in self._known:
            return self._known[place]
        found = play(self.check, InProcess(thing), c)
        if not found.ran_short():  # cached, it would affect every later submission
            self._known[place] = found
        return found


@lru_cache(maxsize=KEPT)
def answer_key(check: Check, seed: str) -> AnswerKey:
    """Return the answer key of a check and a seed, cached for the next submission of a run."""
    return AnswerKey(check, seed)


def play(check: Check, connection: Connection, c: Case) -> CaseOutcome:
    """Play one case with the code at the other end of ``connection``.

    Raises:
        OutOfTime: if the code was interrupted.
        ConnectionLost: if the code can no longer be called.
        MemoryError: if this process has too little memory.
        NoDriver: if the case asks for a driver that there is not.
    """
    rule = check.by_hand
    traced = rule is not None and rule.needs_trace
    subject = Subject(connection, trace=traced, listen=can_be_heard(rule))
    found = _played(c, subject)
    calls, claims = tuple(subject.calls), tuple(subject.claims)
    return dataclasses.replace(found, calls=calls, claims=claims, called=subject.called)


def _played(c: Case, subject: Subject) -> CaseOutcome:
    try:
        return CaseOutcome(c.play(subject), None, (), got=subject.got)
    except SubjectRaised as error:  # the traceback would keep the values of its frames alive
        return CaseOutcome(None, error.with_traceback(None), ())
    except WorldError as error:  # what the learner's ranks did together
        kinds = [kind.__name__ for kind in type(error).__mro__]
        raised = SubjectRaised.of({"kinds": kinds, "message": str(error)})
        return CaseOutcome(None, raised, ())
    except NotByValue as error:
        return CaseOutcome(None, None, (), unusable=str(error))
    except (OutOfTime, ConnectionLost, MemoryError, NoDriver):
        raise
    except Exception:  # the case processes what came back, which may be anything
        return CaseOutcome(None, None, (), unusable=OTHER_KIND, unprocessed=True, got=subject.got)
