"""Find the misconception that a learner's code behaves like, if there is one.

A misconception is wrong code that is stored with its check. A misconception *explains* a failed
case if, in this case, its outcome is exactly the outcome of the learner's code. A misconception is
*contradicted* if there is a case in which it is wrong, and in which the learner's code is right, or
is wrong in another way.

If the learner's code fails a part, a misconception is

- named, if it is not contradicted and explains every failed case of the part. If the code failed
  two or more cases of the exercise, the misconception must explain at least two of these;
- offered as a hint, if it is not contradicted and explains more than half of the failed cases of
  the part. In the other failed cases the misconception is right, so the code must have a second
  mistake.

If several misconceptions qualify, the misconception that explains the largest number of cases of
the exercise wins. If several misconceptions are left, the first of them wins if they explain every
failed case of the exercise. Otherwise the part gets no name and no hint.
"""

from __future__ import annotations

from functools import cached_property

from hood.judge.checks.answers import Candidate
from hood.judge.checks.exercise import Case
from hood.judge.verdicts.answer_key import AnswerKey
from hood.judge.verdicts.difference import alike, differs
from hood.judge.verdicts.outcome import CaseOutcome


class Diagnosis:
    """The comparison of one learner's code with the misconceptions of a check.

    ``played`` has all cases that could be run, with the learner's outcomes.
    """

    def __init__(self, key: AnswerKey, played: list[tuple[Case, CaseOutcome]]):
        self._key, self._played = key, played
        self._explained: dict[str, set[int]] = {}

    def of(self, part: str) -> tuple[Candidate | None, Candidate | None]:
        """Return, for a failed part, the misconception to name, and the misconception to hint at.

        At least one of the two is None.
        """
        failed = [k for k in self._failed if self._played[k][0].part == part]
        named: list[Candidate] = []
        offered: dict[int, list[Candidate]] = {}
        for m in self._key.check.misconceptions:
            # Try two failed cases first, because most misconceptions match no case. For most
            # learners, the first failed cases are the same, so the outcomes of these cases are
            # cached. Playing every case with each misconception would take longer than everything
            # else.
            if not any(self._alike(m, k) for k in failed[:2]):
                continue
            explained = self._explained_by(m)
            here = len(explained.intersection(failed))
            if 2 * here <= len(failed) or self._contradicted(m):
                continue
            twice = len(self._failed) == 1 or len(explained) > 1
            if here == len(failed) and twice:
                named.append(m)
            else:
                offered.setdefault(here, []).append(m)
        if named:
            return self._best(named), None
        return None, self._best(offered[max(offered)]) if offered else None

    def _best(self, fitting: list[Candidate]) -> Candidate | None:
        """Return the misconception that explains the largest number of failed cases.

        If several misconceptions explain this number of cases, return None, unless each of them
        explains all failed cases. Then return the first of them.
        """
        counts = [len(self._explained_by(m)) for m in fitting]
        if counts.count(max(counts)) > 1 and max(counts) < len(self._failed):
            return None
        return fitting[counts.index(max(counts))]

    @cached_property
    def _failed(self) -> list[int]:
        key = self._key
        each = enumerate(self._played)
        return [k for k, (c, got) in each if differs(key.check, got, key.right(c))]

    def _explained_by(self, m: Candidate) -> set[int]:
        if m.name not in self._explained:
            self._explained[m.name] = {k for k in self._failed if self._alike(m, k)}
        return self._explained[m.name]

    def _contradicted(self, m: Candidate) -> bool:
        others = set(range(len(self._played))) - self._explained_by(m)
        return any(self._key.errs(m, self._played[k][0]) for k in others)

    def _alike(self, m: Candidate, k: int) -> bool:
        c, got = self._played[k]
        return alike(self._key.check, got, self._key.mistaken(m, c))
