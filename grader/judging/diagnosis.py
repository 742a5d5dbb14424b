"""Find the misconception that a learner's code behaves like, if there is one.

A misconception is wrong code that is stored with its check. It *explains* a failed case if it does
exactly what the learner's code did. It is *contradicted* if it is wrong in any case in which the
learner's code is right or wrong in another way.

For a part that was failed, a misconception is

- named, if it explains every failed case of the part, and at least two cases of the exercise if
  the code failed two or more, and is not contradicted;
- offered as a hint, if it explains more than half of the failed cases of the part and is not
  contradicted. In the other failed cases it is right, so the code must have a second mistake.

If several qualify, the one that explains most cases of the exercise wins. If that leaves several
which differ somewhere, none is reported.
"""

from __future__ import annotations

from functools import cached_property

from grader.judging.answer_key import AnswerKey, CaseOutcome
from grader.judging.difference import alike, differs
from utils.checks.exercise import Candidate, Case

Played = tuple[Case, CaseOutcome, CaseOutcome]  # the case, the learner's outcome, the reference's


class Diagnosis:
    """The comparison of one learner's code with the misconceptions of a check.

    Args:
        played: all cases that could be run.
    """

    def __init__(self, key: AnswerKey, played: list[Played]):
        self._key, self._played = key, played
        self._same: dict[tuple[int, int], bool] = {}

    def of(self, part: str) -> tuple[Candidate | None, Candidate | None]:
        """Return the misconception to name for a failed part, and the one to offer.

        At most one of the two is not None.
        """
        failed = [k for k in self._failed if self._played[k][0].part == part]
        named: list[Candidate] = []
        offered: dict[int, list[Candidate]] = {}
        for m in self._key.check.misconceptions:
            if not self._resembles(m, failed):
                continue
            explained = [k for k in failed if self._alike(m, k)]
            if 2 * len(explained) <= len(failed) or self._contradicted(m):
                continue
            twice = len(self._failed) == 1 or len(self._explained(m)) > 1
            if len(explained) == len(failed) and twice:
                named.append(m)
            else:
                offered.setdefault(len(explained), []).append(m)
        if named:
            return self._best(named), None
        return None, self._best(offered[max(offered)]) if offered else None

    def _resembles(self, m: Candidate, failed: list[int]) -> bool:
        """Whether it did as the learner's code did in one of the first two of these cases.

        Most misconceptions did in none, and the first cases are the same for most learners: to let
        every misconception play every case would take longer than all the rest.
        """
        return any(self._alike(m, k) for k in failed[:2])

    def _best(self, fitting: list[Candidate]) -> Candidate | None:
        """Return the one that explains most failed cases; None for a tie that leaves some over."""
        counts = [len(self._explained(m)) for m in fitting]
        if counts.count(max(counts)) > 1 and max(counts) < len(self._failed):
            return None
        return fitting[counts.index(max(counts))]

    @cached_property
    def _failed(self) -> list[int]:
        check = self._key.check
        return [k for k, (_, got, want) in enumerate(self._played) if differs(check, got, want)]

    def _explained(self, m: Candidate) -> list[int]:
        """Return the failed cases of the whole exercise that a misconception explains."""
        return [k for k in self._failed if self._alike(m, k)]

    def _contradicted(self, m: Candidate) -> bool:
        """Return whether it is wrong anywhere in another way than the learner's code."""
        failed = set(self._failed)
        return any(
            self._key.errs(m, c) and not (k in failed and self._alike(m, k))
            for k, (c, _, _) in enumerate(self._played)
        )

    def _alike(self, m: Candidate, k: int) -> bool:
        known = self._same.get((id(m), k))
        if known is None:
            c, got, _ = self._played[k]
            known = alike(self._key.check, got, self._key.mistaken(m, c))
            self._same[id(m), k] = known
        return known
