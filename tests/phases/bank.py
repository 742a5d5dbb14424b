"""Banks of answers to a lab, as learners write them: right answers, and wrong ones that look right.

``answers/NN/<exercise>.toml`` has the form of the files beside the checks
(:mod:`hood.judge.checks.answers`). An answer is a whole solution cell, and ``edits`` change the
text of the lab's solution. ``breaks`` of a wrong answer, and ``uses`` of a right answer, quote the
exercise's text. ``slipped = true`` means that a check once misjudged the answer. ``named`` is the
misconception that the verdict must name. Most authors of the answers saw only the lesson and the
learner's notebook. Redundant answers were removed (:mod:`tests.phases.redundant`); ``counts.csv``
has their number and their results.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hood.authoring.proof.selftest import LabCode
from hood.judge.catalogue import load_checks
from hood.judge.checks.answers import with_edits
from hood.judge.checks.answers_form import form_faults
from hood.judge.checks.exercise import Check
from hood.judge.connection.rpc_client import InProcess
from hood.judge.connection.settings import usual_settings
from hood.judge.examples.example import exemplify
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.answer_key import answer_key
from hood.judge.verdicts.judge import Verdict, first_failure, judge
from hood.judge.verify import EXAMPLE_SECONDS
from hood.judge.watched import Alarm, WatchedConnection
from hood.phase_paths import PhasePaths, phases
from hood.verdict import Cause, Status

ANSWERS = Path(__file__).with_name("answers")
# Further keys of an entry in a bank, besides those of a file beside the checks, with their
# defaults.
OWN: Mapping[str, Any] = {"named": "", "slipped": False}


@dataclass(frozen=True)
class Answer:
    """One answer to an exercise, as an entry of its bank describes it."""

    exercise: str
    name: str
    right: bool
    cell: str
    quotes: tuple[str, ...] = ()  # the quote of the exercise's text that it breaks or uses
    length: int = 0  # length of its entry, in characters
    of: str = ""  # the right answer that it edits, if it does not edit the lab's solution
    named: str = ""  # the misconception that the verdict must name
    slipped: bool = False  # whether a check once misjudged it


@dataclass
class Bank:
    """The answers to one lab, read on request."""

    phase: PhasePaths

    @cached_property
    def lab(self) -> LabCode:
        return LabCode.read(self.phase.lab)

    @cached_property
    def checks(self) -> dict[str, Check]:
        return load_checks(self.phase.folder)

    @property
    def exercises(self) -> list[str]:
        """The names of the exercises, without loading the checks."""
        return sorted(file.stem for file in (ANSWERS / self.phase.number).glob("*.toml"))

    @cached_property
    def answers(self) -> list[Answer]:
        return [answer for exercise in self.exercises for answer in self.of(exercise)]

    def of(self, exercise: str) -> Iterator[Answer]:
        """Yield the answers to one exercise."""
        entries = read(ANSWERS / self.phase.number / f"{exercise}.toml")
        solution = self.lab.solutions[exercise]
        for kind in ("right", "wrong"):
            for name, entry in entries.get(kind, {}).items():
                cell = _cell(entry, entries.get("right", {}), solution)
                own = {key: entry[key] for key in ("of", *OWN) if key in entry}
                length, quotes = len(str(entry)), quotations(entry)
                yield Answer(exercise, name, kind == "right", cell, quotes, length, **own)

    def report(self, answer: Answer, seed: str, *, examples: bool = False) -> Verdict:
        """The verdict on an answer, submitted with the lab's given cells.

        A call that does not end is stopped. examples: whether to look for failing calls, too.
        """
        check, thing = self.checks[answer.exercise], self.thing(answer)
        source = LearnerSource([*self.lab.given, answer.cell])
        verdict = judge(check, thing, seed, source=source, connect=WatchedConnection)
        if not examples:
            return verdict
        with Alarm(EXAMPLE_SECONDS, 15 * EXAMPLE_SECONDS):
            return exemplify(verdict, check, thing, seed)

    def earns_everything(self, answer: Answer, seed: str) -> bool:
        """Whether an answer earns all points that it can. The first fault ends the judging."""
        if not answer.right:
            with usual_settings():
                key = answer_key(self.checks[answer.exercise], seed)
                if first_failure(key, InProcess(self.thing(answer))) is not None:
                    return False
        parts = self.report(answer, seed).parts
        return all(part.earned == part.points for part in parts if part.status != "not run")

    def thing(self, answer: Answer) -> Any:
        """The definitions of an answer's cell, after the lab's given cells."""
        return self.checks[answer.exercise].thing_in(self.lab.names_after(answer.cell))


BANKS = {phase.number: Bank(phase) for phase in phases() if phase.lab.exists()}


def points_at_it(verdict: Verdict) -> bool:
    """Whether a report tells where the mistake is. A report tells this if it has a misconception's
    name, a hint, a broken rule, a fact that is not true of the result (a whole sentence), or a call
    that fails.
    """
    return any(
        part.misconception
        or part.hint
        or part.example
        or part.cause is Cause.RULE_BROKEN
        or (part.cause is Cause.WRONG_RESULT and part.problem.endswith("."))
        for part in verdict.parts
        if part.status is Status.WRONG
    )


def read(file: Path) -> dict[str, Any]:
    """Read a file of answers; raise ValueError for an unknown key."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))
    for place, message in form_faults(_without_own_keys(entries) if _of_bank(file) else entries):
        raise ValueError(f"{file}: {place}: {message}")
    return entries


def _of_bank(file: Path) -> bool:
    return file.is_relative_to(ANSWERS)


def _without_own_keys(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bank's entries in the form of the files beside the checks.

    A value of another kind stays in the entry, where it is refused later.
    """
    return {
        kind: {
            name: {
                key: value
                for key, value in entry.items()
                if key not in OWN or type(value) is not type(OWN[key])
            }
            for name, entry in table.items()
        }
        for kind, table in entries.items()
    }


def quotations(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return an answer's quotes of the exercise's text."""
    found = entry.get("breaks", entry.get("uses", ()))
    return (found,) if isinstance(found, str) else tuple(found)


def _cell(entry: Mapping[str, Any], right: Mapping[str, Any], solution: str) -> str:
    if code := entry.get("code"):
        return code
    base = _cell(right[entry["of"]], right, solution) if "of" in entry else solution
    return with_edits({"": base}, entry["edits"])[""]
