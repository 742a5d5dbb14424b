"""Banks of answers to a lab, as learners write them: what is right, and what only looks so.

An answer is a whole solution cell. Most are edits of the lab's own solution, so that what differs
is all there is to read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.judging.answer_key import answer_key
from grader.judging.catalogue import load_checks
from grader.judging.judge import Verdict, first_failure, judge, one_thread
from grader.judging.learner_source import Written
from grader.judging.rpc_client import InProcess
from grader.phase_paths import ROOT, choose
from grader.proof.selftest import LabCode

CODE = "code"  # in place of what is edited: a cell of its own


@dataclass(frozen=True)
class Answer:
    """One answer to an exercise; ``breaks`` says what in its text a wrong one is not true to."""

    exercise: str
    name: str
    right: bool
    cell: str
    breaks: str = ""


@dataclass
class Bank:
    """The answers to one lab."""

    phase: str
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        (found,) = choose(ROOT, [self.phase])
        self.lab = LabCode.read(found.lab)
        self.checks = load_checks(found.folder)

    def right(self, exercise: str, name: str, *edits: tuple[str, str], code: str = "") -> None:
        """Add a right answer: code of its own, or an edit of the lab's solution."""
        self.answers.append(Answer(exercise, name, True, code or self._edited(exercise, edits)))

    def wrong(
        self, exercise: str, name: str, *edits: tuple[str, str], code: str = "", breaks: str = ""
    ) -> None:
        """Add a wrong answer."""
        code = code or self._edited(exercise, edits)
        self.answers.append(Answer(exercise, name, False, code, breaks))

    def fill(
        self,
        right: Mapping[str, Mapping[str, str]],
        wrong: Mapping[str, Sequence[Sequence[str]]],
        left_open: Collection[tuple[str, str]] = (),
    ) -> None:
        """Add the answers of tables.

        Args:
            right: by exercise and name, the cells of right answers.
            wrong: by exercise, a name, what of the question the answer breaks, and pairs of a text
                in the first right answer and what stands there instead; :data:`CODE` for all of it.
            left_open: (exercise, name) of answers that are not judged.
        """
        for exercise, cells in right.items():
            for name, cell in cells.items():
                if (exercise, name) not in left_open:
                    self.right(exercise, name, code=cell)
            for name, breaks, *edits in wrong.get(exercise, ()):
                cell = next(iter(cells.values()))
                for old, new in zip(edits[::2], edits[1::2], strict=True):
                    assert old == CODE or old in cell, f"{exercise}, {name}: {old!r}"
                    cell = new if old == CODE else cell.replace(old, new)
                if (exercise, name) not in left_open:
                    self.wrong(exercise, name, code=cell, breaks=breaks)

    def judge(self, answer: Answer, seed: str) -> Verdict:
        """What the check says of an answer that was handed in with the lab's given cells."""
        check, thing = self.checks[answer.exercise], self._thing(answer)
        return judge(check, thing, seed, source=Written([*self.lab.given, answer.cell]))

    def earns_everything(self, answer: Answer, seed: str) -> bool:
        """Whether it earns all points that can be earned here; a wrong one is soon found out."""
        if not answer.right:
            with one_thread():
                key = answer_key(self.checks[answer.exercise], seed)
                if first_failure(key, InProcess(self._thing(answer))) is not None:
                    return False
        parts = self.judge(answer, seed).parts
        return all(part.earned == part.points for part in parts if part.status != "not run")

    def _thing(self, answer: Answer) -> Any:
        return self.checks[answer.exercise].thing_in(self.lab.names_after(answer.cell))

    def _edited(self, exercise: str, edits: tuple[tuple[str, str], ...]) -> str:
        code = self.lab.solutions[exercise]
        for old, new in edits:
            assert code.count(old) == 1, f"{exercise}: {old!r} is there {code.count(old)} times"
            code = code.replace(old, new)
        return code
