"""What is asked of everybody, and what the reference and the misconceptions make of it.

All submissions of a grading run are asked the same, so what is right, and what each known mistake
comes to, is worked out once and kept.
"""

from __future__ import annotations

import dataclasses
import re
from functools import lru_cache
from typing import Any

from grader.inside.codec import NotByValue
from grader.judging.difference import OTHER_KIND, differs
from grader.judging.rpc_client import InProcess, Link, LinkLost, OutOfTime
from grader.judging.subject import Subject, SubjectRaised
from grader.verdict import Cause
from utils.checks import Candidate, Case, Check

# More than the exercises of a lab, which are graded in turn for each submission.
KEPT = 64

# As Python and torch say it.
OUT_OF_MEMORY = re.compile(r"^MemoryError|can't allocate memory")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one case came to: a value or an exception, and what the calls did besides.

    Attributes:
        unusable: what came back in place of a value, in words; or empty.
        got: what the last call returned, for a case that can't look into it.
        cause: why there is neither value nor exception, where the code could not be asked.
    """

    value: Any
    raised: SubjectRaised | None
    calls: tuple
    unusable: str = ""
    got: Any = None
    cause: Cause = Cause.NONE

    @classmethod
    def lost(cls, cause: Cause, why: str) -> Outcome:
        """Of a case that could not be played."""
        return cls(None, None, (), unusable=why, cause=cause)

    def ran_short(self) -> bool:
        """Whether the machine had not enough memory for it."""
        return self.raised is not None and bool(OUT_OF_MEMORY.search(str(self.raised)))


class AnswerKey:
    """The cases that a seed draws, with the outcomes that answers are held against.

    Args:
        check: what must hold.
        seed: draws the cases.

    Attributes:
        cases: in the order in which they are asked.
    """

    def __init__(self, check: Check, seed: str):
        self.check, self.seed = check, seed
        self.cases = check.draw_cases(seed)
        self._known: dict[tuple[str, int], Outcome] = {}
        self._errs: dict[tuple[str, int], bool] = {}

    def right(self, c: Case) -> Outcome:
        """What the reference makes of one of the cases.

        Raises:
            ValueError: when it returns something that can't cross between processes.
            MemoryError: when this machine had not enough for it.
        """
        found = self._outcome("", self.check.right, c)
        if found.ran_short():  # a grader that starts afresh may have enough
            raise MemoryError(f"check {self.check.name!r}: {found.raised}")
        if found.unusable:
            raise ValueError(f"check {self.check.name!r}: its reference returned {found.unusable}")
        return found

    def mistaken(self, misconception: Candidate, c: Case) -> Outcome:
        """What a misconception of the check makes of one of the cases."""
        return self._outcome(misconception.name, misconception.thing, c)

    def errs(self, misconception: Candidate, c: Case) -> bool:
        """Whether a misconception of the check is wrong in one of the cases."""
        place = misconception.name, id(c)
        if place in self._errs:
            return self._errs[place]
        found = self.mistaken(misconception, c)
        errs = differs(self.check, found, self.right(c))
        if not found.ran_short():
            self._errs[place] = errs
        return errs

    def _outcome(self, name: str, thing: Any, c: Case) -> Outcome:
        place = name, id(c)
        if place in self._known:
            return self._known[place]
        found = play(self.check, InProcess(thing), c)
        if not found.ran_short():  # kept, it would be held against everybody
            self._known[place] = found
        return found


@lru_cache(maxsize=KEPT)
def answer_key(check: Check, seed: str) -> AnswerKey:
    """The key of a check and a seed; the same one again for the next submission of a run."""
    return AnswerKey(check, seed)


def play(check: Check, link: Link, c: Case) -> Outcome:
    """Let the code at the other end of ``link`` play one case."""
    subject = Subject(link, trace=check.by_hand is not None and check.by_hand.needs_trace)
    try:
        value = c.play(subject)
    except SubjectRaised as error:  # without its traceback, which keeps all that was alive there
        return Outcome(None, error.with_traceback(None), tuple(subject.calls))
    except NotByValue as error:
        return Outcome(None, None, tuple(subject.calls), unusable=str(error))
    except (OutOfTime, LinkLost):
        raise
    except Exception:  # the case looks into what came back, which may be anything
        return Outcome(None, None, tuple(subject.calls), unusable=OTHER_KIND, got=subject.got)
    return Outcome(value, None, tuple(subject.calls), got=subject.got)
