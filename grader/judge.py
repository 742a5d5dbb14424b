"""Run a check against a learner's code and say what came of it, and why.

The reference and the learner's code play the same cases; a part earns its points when all its
cases agree. Where they do not, each misconception plays the cases too: :mod:`grader.diagnosis` says
when one of them is what the learner did.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from grader.answer_key import AnswerKey, Outcome, answer_key, play
from grader.by_hand import Look
from grader.diagnosis import Diagnosis, Played
from grader.difference import difference, differs
from grader.example import Example, find_examples
from grader.remote.link import InProcess, Link, LinkLost, OutOfTime
from grader.written import Written
from utils.checks import Case, Check

OUT_OF_TIME = "nothing before the cell's time was up (a loop that never ends?)"


@dataclasses.dataclass(frozen=True)
class PartResult:
    """One part of an exercise.

    Attributes:
        name: as the check has it.
        points: what it can earn.
        earned: all of them, or 0.
        status: ``right``, ``wrong``, ``not attempted``, or ``not run`` where this machine has
            nothing to judge it by.
        problem: what went wrong in the first failed case, without inputs or values; or why it was
            not run; or empty.
        misconception: name of the misconception that the code behaves like, or empty.
        hint: where none is named, the one that most of it looks like, in a sentence; or empty.
        example: a small call that fails in this part, or None.
        broken_rule: whether the problem is that something was used which had to be done by hand.
        against: what the answer was held against, where that depends on the machine.
    """

    name: str
    points: float
    earned: float
    status: str
    problem: str = ""
    misconception: str = ""
    broken_rule: bool = False
    against: str = ""
    hint: str = ""
    example: Example | None = None

    @property
    def reason(self) -> str:
        """Why the points were lost; equal for two parts that one cause took them from."""
        return self.misconception or self.problem


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a check says of one learner's code.

    Attributes:
        status: ``right``, ``right as far as run``, ``partly``, ``wrong`` or ``not attempted``.
        explanations: misconception name to the sentence that the learner reads.
        reads: heading of the lesson section to read again.
        seed: what the cases were drawn from.
        claims: what of it rests on the word of the learner's own process, a few words each.
    """

    check: str
    points: float
    parts: tuple[PartResult, ...]
    status: str
    reads: str
    seed: str
    explanations: dict[str, str] = dataclasses.field(default_factory=dict)
    claims: tuple[str, ...] = ()

    @property
    def earned(self) -> float:
        """Points earned, over all parts."""
        return float(sum(part.earned for part in self.parts))

    @property
    def misconceptions(self) -> list[str]:
        """Names of the misconceptions that were recognised, each once."""
        return list(self.explanations)

    def unexampled(self) -> list[str]:
        """The parts that deserve an example: one for each misconception, and each without one.

        Code that ran out of time would do so again.
        """
        stopped = any(OUT_OF_TIME in p.problem for p in self.parts)
        if self.status == "not attempted" or stopped:
            return []
        first = {p.misconception: p.name for p in reversed(self.parts)}
        return [
            p.name
            for p in self.parts
            if p.status == "wrong"
            and not p.broken_rule
            and (not p.misconception or first[p.misconception] == p.name)
        ]

    def with_examples(self, found: Mapping[str, Example]) -> Verdict:
        """The same verdict, with examples for some parts."""
        parts = (dataclasses.replace(p, example=found.get(p.name)) for p in self.parts)
        return dataclasses.replace(self, parts=tuple(parts))


Asked = tuple[Case, Outcome]  # the case, the learner's outcome


def judge(
    check: Check, thing: Any, seed: str, *, source: str | Mapping[str, str] | Written = ""
) -> Verdict:
    """Judge a function, class, value or dict of functions in this process.

    Args:
        check: what must hold.
        thing: what the learner wrote.
        seed: draws the cases.
        source: the notebook's cells, for the look at what may not be used; or the learner's code,
            for an exercise of several functions the code of each, by name. Empty when unknown.
    """
    with one_thread():
        key = answer_key(check, seed)
        return assess(key, ask(key, InProcess(thing)), source=source)


def exemplify(verdict: Verdict, check: Check, thing: Any, seed: str) -> Verdict:
    """A verdict of :func:`judge` with failing examples.

    Args:
        thing: what was judged; in a notebook it has the name that the check calls it by.
        seed: public.
    """
    with one_thread():
        key = answer_key(check, verdict.seed)
        found = find_examples(key, InProcess(thing), verdict.unexampled(), seed)
        return verdict.with_examples(found)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Cases are too small to gain from more, and lose much on a machine that is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def first_failure(key: AnswerKey, link: Link, suspect: int = 0) -> int | None:
    """The number of a case in which an answer is wrong; none is asked after it.

    For a machine's question, whether an answer earns everything: what it uses by name is not
    looked at, and nothing is explained.

    Args:
        suspect: the number of the case to ask before the others.

    Raises:
        OutOfTime: when the learner's code was interrupted.
        LinkLost: when it can no longer be asked.
    """
    check, unread = key.check, Look(key.check, "")
    for number in sorted(range(len(key.cases)), key=lambda n: n != suspect):
        c = key.cases[number]
        if c.not_run:
            continue
        got = play(check, link, c)
        if _broken_rule(check, c, got, unread) or differs(check, got, key.right(c)):
            return number
    return None


def ask(key: AnswerKey, link: Link) -> list[Asked]:
    """Let the learner's code play each case; nothing else is computed meanwhile.

    Once its time is up, or it is gone, the rest stays unplayed, which decides against it.
    """
    asked: list[Asked] = []
    why = ""
    for c in key.cases:
        got = Outcome(None, None, (), unusable=why)
        if not why:
            try:
                got = play(key.check, link, c)
            except (KeyboardInterrupt, OutOfTime):
                why = OUT_OF_TIME
            except LinkLost as lost:
                why = f"nothing more: {lost}"
            if why:
                got = Outcome(None, None, (), unusable=why)
        asked.append((c, got))
    return asked


def assess(
    key: AnswerKey,
    asked: list[Asked],
    *,
    source: str | Mapping[str, str] | Written = "",
    claims: tuple[str, ...] = (),
) -> Verdict:
    """Compare what the learner's code did with what the reference does, and say why they differ.

    Args:
        key: what was asked, and what is right.
        asked: what :func:`ask` gave for it.
        source: as for :func:`judge`.
        claims: as :class:`Verdict` has it.
    """
    check = key.check
    not_run = {c.part: c.not_run for c, _ in asked if c.not_run}
    played = [(c, got, key.right(c)) for c, got in asked if c.part not in not_run]
    look = Look(check, source)
    attempted = not played or not all(_not_attempted(got) for _, got, _ in played)
    diagnosis = Diagnosis(key, played)
    parts = tuple(
        PartResult(name, points, 0.0, "not run", not_run[name])
        if name in not_run
        else _judge_part(check, name, [p for p in played if p[0].part == name], diagnosis, look)
        if attempted
        else PartResult(name, points, 0.0, "not attempted", "not attempted yet")
        for name, points in check.parts.items()
    )
    named = {part.misconception for part in parts}
    return Verdict(
        check=check.name,
        points=check.points,
        parts=parts,
        status=_status(parts) if attempted else "not attempted",
        reads=check.reads,
        seed=key.seed,
        explanations={m.name: m.explanation for m in check.misconceptions if m.name in named},
        claims=claims,
    )


def claims_of(check: Check) -> tuple[str, ...]:
    """What a check can only learn from the learner's own process."""
    traced = check.by_hand is not None and check.by_hand.needs_trace
    said = {
        "which operators ran": traced,
        "that the inputs were left as they were": not check.changes_inputs,
        "that results share storage with the inputs": check.sharing,
    }
    return tuple(claim for claim, is_made in said.items() if is_made)


def _status(parts: tuple[PartResult, ...]) -> str:
    found = {part.status for part in parts}
    if "wrong" in found:
        return "partly" if "right" in found else "wrong"
    return "right as far as run" if "not run" in found else "right"


def _judge_part(
    check: Check,
    name: str,
    mine: list[Played],
    diagnosis: Diagnosis,
    look: Look,
) -> PartResult:
    points = check.parts[name]
    for c, got, _ in mine:
        rule = _broken_rule(check, c, got, look)
        if rule:
            return PartResult(name, points, 0.0, "wrong", rule, broken_rule=True)
    all_said = ((c, difference(check, got, want, c.places)) for c, got, want in mine)
    c, said = next((wrong for wrong in all_said if wrong[1]), (mine[0][0], ""))
    against = mine[0][0].against
    if not said:
        return PartResult(name, points, points, "right", against=against)
    known, resembled = diagnosis.of(name)
    problem = f"{c.shown}: {said}" if c.shown else said
    hint = (
        f"this looks like “{resembled.name}”, though not everywhere: {resembled.explanation}"
        if resembled
        else ""
    )
    known_as = known.name if known else ""
    return PartResult(name, points, 0.0, "wrong", problem, known_as, against=against, hint=hint)


def _not_attempted(outcome: Outcome) -> bool:
    return outcome.raised is not None and outcome.raised.kinds[0] == "NotImplementedError"


def _broken_rule(check: Check, c: Case, got: Outcome, look: Look) -> str:
    rule = check.by_hand
    if rule is None:
        return ""
    who = f"`{c.of}`" if c.of else "your code"
    refused = rule.refused_ops(op for call in got.calls for op in call.ops)
    if refused:
        names = ", ".join(f"`{op.removeprefix('aten.')}`" for op in refused)
        return f"{who} used torch's own {names}; {rule.because}"
    return look.refusal(c.of)
