"""Banks of answers to a lab, as learners write them: what is right, and what only looks so.

``answers/NN/<exercise>.toml`` has the form of the files beside the checks
(:mod:`hood.judge.checks.answers`). An answer is a whole solution cell, and ``edits`` change the
text of the lab's own. What a wrong answer ``breaks``, and what a right one ``uses``, is quoted from
the exercise's text. ``slipped = true`` says that a check once took the answer for what it is not;
``named`` is the misconception that a learner must read of. Most were written blind, from the lesson
and the learner's notebook alone. Those that tell nothing alone are gone, see
:mod:`tests.phases.redundant`: ``counts.csv`` says how many there were, and what they told.
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
# The keys that an entry of a bank has beside those of a file beside the checks, with what holds
# where they are left out.
OWN: Mapping[str, Any] = {"named": "", "slipped": False}


@dataclass(frozen=True)
class Answer:
    """One answer to an exercise, as an entry of its bank describes it."""

    exercise: str
    name: str
    right: bool
    cell: str
    quotes: tuple[str, ...] = ()  # what in the exercise's text it breaks or makes use of
    length: int = 0  # of its entry, in characters
    of: str = ""  # the right answer that it edits, if it is not the lab's own
    named: str = ""  # the misconception that a learner must read of
    slipped: bool = False  # whether it once earned everything and was wrong, or less and was right


@dataclass
class Bank:
    """The answers to one lab, which are read when they are asked for."""

    phase: PhasePaths

    @cached_property
    def lab(self) -> LabCode:
        return LabCode.read(self.phase.lab)

    @cached_property
    def checks(self) -> dict[str, Check]:
        return load_checks(self.phase.folder)

    @property
    def exercises(self) -> list[str]:
        """The names of the exercises, without a look at the checks."""
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
        """What a learner is told who hands an answer in with the lab's given cells.

        A call that does not end is stopped. examples: whether failing calls are sought, too.
        """
        check, thing = self.checks[answer.exercise], self.thing(answer)
        source = LearnerSource([*self.lab.given, answer.cell])
        verdict = judge(check, thing, seed, source=source, connect=WatchedConnection)
        if not examples:
            return verdict
        with Alarm(EXAMPLE_SECONDS, 15 * EXAMPLE_SECONDS):
            return exemplify(verdict, check, thing, seed)

    def earns_everything(self, answer: Answer, seed: str) -> bool:
        """Whether it earns all points that can be earned here; a wrong one is soon found out."""
        if not answer.right:
            with usual_settings():
                key = answer_key(self.checks[answer.exercise], seed)
                if first_failure(key, InProcess(self.thing(answer))) is not None:
                    return False
        parts = self.report(answer, seed).parts
        return all(part.earned == part.points for part in parts if part.status != "not run")

    def thing(self, answer: Answer) -> Any:
        """What an answer's cell defines, among the lab's given cells."""
        return self.checks[answer.exercise].thing_in(self.lab.names_after(answer.cell))


BANKS = {phase.number: Bank(phase) for phase in phases() if phase.lab.exists()}


def points_at_it(verdict: Verdict) -> bool:
    """Whether a report tells where the mistake is.

    It does by a misconception's name or hint, the rule that is broken, a fact that does not hold of
    the result, which is a whole sentence, or a call that fails.
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
    """Read a file of answers; raise ValueError for a key in it that nobody would read."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))
    for place, message in form_faults(_without_own_keys(entries) if _of_bank(file) else entries):
        raise ValueError(f"{file}: {place}: {message}")
    return entries


def _of_bank(file: Path) -> bool:
    return file.is_relative_to(ANSWERS)


def _without_own_keys(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bank's entries in the form of the files beside the checks.

    A value of another kind is left there, and refused.
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
    """Return what an answer quotes of the exercise's text."""
    found = entry.get("breaks", entry.get("uses", ()))
    return (found,) if isinstance(found, str) else tuple(found)


def _cell(entry: Mapping[str, Any], right: Mapping[str, Any], solution: str) -> str:
    if code := entry.get("code"):
        return code
    base = _cell(right[entry["of"]], right, solution) if "of" in entry else solution
    return with_edits({"": base}, entry["edits"])[""]
