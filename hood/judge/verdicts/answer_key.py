"""The answer key: the cases of a check, with the outcomes of the reference and the misconceptions.

All submissions of a grading run get the same cases. So each outcome of the reference and of a
misconception is computed once and cached.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

from hood.judge.checks.answers import Candidate
from hood.judge.checks.exercise import Case, Check
from hood.judge.connection.rpc_client import InProcess
from hood.judge.verdicts.difference import differs
from hood.judge.verdicts.outcome import CaseOutcome, play


class AnswerKey:
    """The cases that a seed draws, with the outcomes that answers are compared with."""

    def __init__(self, check: Check, seed: str):
        self.check, self.seed = check, seed
        self.cases = check.draw_cases(seed)  # the cases, in the order in which they are played
        self._known: dict[tuple[str, int], CaseOutcome] = {}
        self._errs: dict[tuple[str, int], bool] = {}

    def right(self, c: Case) -> CaseOutcome:
        """Return the outcome of the reference for one of the cases.

        Raises:
            ValueError: the reference returned a value that cannot be sent between processes, or
                raised an exception that the case does not expect, or did not raise the exception
                that the case expects.
            MemoryError: this machine has too little memory.
        """
        check, found = self.check, self._outcome("", self.check.right, c)
        if found.ran_short():  # not cached: a new grading process may have enough memory
            raise MemoryError(f"check {check.name!r}: {found.raised}")
        if found.unusable:
            raise ValueError(
                f"check {check.name!r}, part {c.part!r}: an argument or the result of "
                f"the reference cannot be sent by value: {found.unusable}"
            )
        if (found.raised.kinds[0] if found.raised else "") != c.raises:
            said = f"the case expects {c.raises or 'no exception'}"
            got = f"raised {found.raised or 'nothing'}"
            raise ValueError(f"check {check.name!r}, part {c.part!r}: the reference {got}; {said}")
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
        with warnings.catch_warnings():  # these warnings are not the learner's
            warnings.simplefilter("ignore")
            found = play(self.check, InProcess(thing), c)
        if not found.ran_short():  # if cached, this outcome would affect all later submissions
            self._known[place] = found
        return found


# Cached for the next submission of a run. A run grades a lab's exercises one after another. No lab
# has more exercises than this.
answer_key = lru_cache(maxsize=64)(AnswerKey)
