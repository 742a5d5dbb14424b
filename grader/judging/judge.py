"""Run a check against a learner's code and compute the verdict.

The reference and the learner's code play the same cases. A part earns its points if all its cases
agree. If they do not, each misconception plays the cases too, and
:mod:`grader.judging.diagnosis` decides whether one of them behaves like the learner's code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.judging.answer_key import AnswerKey, CaseOutcome, answer_key, play
from grader.judging.by_hand import RuleReader, can_be_heard
from grader.judging.diagnosis import Diagnosis, Played
from grader.judging.difference import Finding, difference, differs
from grader.judging.example import find_examples
from grader.judging.learner_source import Written
from grader.judging.rpc_client import Connection, ConnectionLost, InProcess, OutOfTime
from grader.verdict import Cause, PartResult, Status, Verdict
from utils.checks.exercise import Case, Check
from utils.drivers import INPUTS_KEPT

# Operators that hardly anybody calls by name: what stands in the learner's code.
CALLED_BY = {
    "aten.clone": " (as `contiguous` and `reshape` do)",
    "aten._to_copy": " (as `to` and `float` do)",
}
OUT_OF_TIME = "no answer before its time was up (an endless loop?)"


Asked = tuple[Case, CaseOutcome]  # the case, the learner's outcome


def judge(
    check: Check,
    thing: Any,
    seed: str,
    *,
    source: Written | None = None,
    connect: Callable[[Any], Connection] = InProcess,
) -> Verdict:
    """Judge a function, class, value or dict of functions in this process.

    Args:
        thing: what the learner wrote.
        source: the notebook's cells, for a rule about forbidden names; None if unknown.
        connect: makes the connection to ``thing``.
    """
    with one_thread():
        key = answer_key(check, seed)
        return assess(key, ask(key, connect(thing)), source=source)


def exemplify(verdict: Verdict, check: Check, thing: Any, seed: str) -> Verdict:
    """Return a verdict of :func:`judge` with failing examples.

    Args:
        thing: what was judged; the notebook must know it under the name that the check uses.
        seed: a public seed.
    """
    with one_thread():
        key = answer_key(check, verdict.seed)
        found = find_examples(key, InProcess(thing), verdict.unexampled(), seed)
        return verdict.with_examples(found)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: cases are too small to gain from more, and busy machines lose."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def first_failure(key: AnswerKey, connection: Connection, suspect: int = 0) -> int | None:
    """Play cases until the answer is wrong in one; return the number of that case.

    This only tells whether an answer earns full points: the names that it uses are not checked and
    nothing is explained. ``python -m grader mutants`` calls it.

    Args:
        suspect: the number of the case to play first.

    Returns:
        The number of the case; None if the answer is right in all.

    Raises:
        OutOfTime: if the answer was interrupted.
        ConnectionLost: if the answer can no longer be called.
    """
    check, unread = key.check, RuleReader(key.check, None)
    for number in sorted(range(len(key.cases)), key=lambda n: n != suspect):
        c = key.cases[number]
        if c.not_run:
            continue
        got = play(check, connection, c)
        if _broken_rule(check, c, got, unread) or differs(check, got, key.right(c)):
            return number
    return None


def ask(key: AnswerKey, connection: Connection) -> list[Asked]:
    """Play each case with the learner's code. The comparison comes later, in :func:`assess`.

    When its time is up or it can no longer be called, the remaining cases are not played and count
    as failed.
    """
    asked: list[Asked] = []
    unplayed: CaseOutcome | None = None
    for c in key.cases:
        got = unplayed
        if got is None:
            try:
                got = play(key.check, connection, c)
            except OutOfTime:
                got = unplayed = CaseOutcome.lost(Cause.TIMEOUT, OUT_OF_TIME)
            except ConnectionLost as lost:
                got = unplayed = CaseOutcome.lost(Cause.NO_REPLY, f"nothing more: {lost}")
        asked.append((c, got))
    return asked


def assess(
    key: AnswerKey,
    asked: list[Asked],
    *,
    source: Written | None = None,
    claims: tuple[str, ...] = (),
) -> Verdict:
    """Compare the learner's outcomes with the reference's and return the verdict."""
    check = key.check
    not_run = {c.part: c.not_run for c, _ in asked if c.not_run}
    played = [(c, got, key.right(c)) for c, got in asked if c.part not in not_run]
    look = RuleReader(check, source)
    attempted = not played or not all(_not_attempted(got) for _, got, _ in played)
    diagnosis = Diagnosis(key, played)
    parts = tuple(
        PartResult(name, points, 0.0, Status.NOT_RUN, Cause.UNAVAILABLE, not_run[name])
        if name in not_run
        else _judge_part(check, name, [p for p in played if p[0].part == name], diagnosis, look)
        if attempted
        else PartResult(
            name, points, 0.0, Status.NOT_ATTEMPTED, Cause.NOT_ATTEMPTED, "not attempted yet"
        )
        for name, points in check.parts.items()
    )
    named = {part.misconception for part in parts}
    return Verdict(
        check=check.name,
        points=check.points,
        parts=parts,
        status=_status(parts) if attempted else Status.NOT_ATTEMPTED,
        reads=check.reads,
        seed=key.seed,
        explanations={m.name: m.explanation for m in check.misconceptions if m.name in named},
        claims=claims,
    )


def claims_of(key: AnswerKey) -> tuple[str, ...]:
    """Return what can only be known from what the learner's own process says, in words.

    It is what a call shows beside its result, and what the plays of the cases say of drivers. Those
    of the reference tell, so that no learner's process decides what is said of it.
    """
    check = key.check
    traced = check.by_hand is not None and check.by_hand.needs_trace
    said = {
        "which operators ran": traced,
        "which functions of torch were called": can_be_heard(check.by_hand),
        INPUTS_KEPT: not check.changes_inputs,
        "that results share storage with the inputs": check.sharing,
    }
    shown = [claim for claim, is_made in said.items() if is_made]
    played = [claim for c in key.cases if not c.not_run for claim in key.right(c).claims]
    return tuple(dict.fromkeys(shown + played))


def _status(parts: tuple[PartResult, ...]) -> Status:
    found = {part.status for part in parts}
    if Status.WRONG in found:
        return Status.PARTLY if Status.RIGHT in found else Status.WRONG
    return Status.RIGHT_AS_FAR_AS_RUN if Status.NOT_RUN in found else Status.RIGHT


def _judge_part(
    check: Check,
    name: str,
    mine: list[Played],
    diagnosis: Diagnosis,
    look: RuleReader,
) -> PartResult:
    points = check.parts[name]
    for c, got, _ in mine:
        rule = _broken_rule(check, c, got, look)
        if rule:
            return PartResult(name, points, 0.0, Status.WRONG, Cause.RULE_BROKEN, rule)
    against = mine[0][0].against
    found: Finding | None = None
    for c, got, want in mine:
        if found := difference(check, got, want, c.places):
            break
    if found is None:
        return PartResult(name, points, points, Status.RIGHT, against=against)
    known, resembled = diagnosis.of(name)
    hint = (
        f"this looks like “{resembled.name}”, though not everywhere: {resembled.explanation}"
        if resembled
        else ""
    )
    return PartResult(
        name,
        points,
        0.0,
        Status.WRONG,
        got.cause if got.cause is not Cause.NONE else Cause.WRONG_RESULT,
        problem=f"{c.shown}: {found}" if c.shown else str(found),
        quoted=found.quoted,
        misconception=known.name if known else "",
        hint=hint,
        against=against,
    )


def _not_attempted(outcome: CaseOutcome) -> bool:
    return outcome.raised is not None and outcome.raised.kinds[0] == "NotImplementedError"


def _broken_rule(check: Check, c: Case, got: CaseOutcome, look: RuleReader) -> str:
    rule = check.by_hand
    if rule is None:
        return ""
    if said := look.refusal(c.of):  # it quotes the learner's code; operators have torch's names
        return said
    who = f"`{c.of}`" if c.of else "your code"
    refused = rule.refused_ops(op for call in got.calls for op in call.ops)
    if refused:
        names = ", ".join(f"`{op.removeprefix('aten.')}`{CALLED_BY.get(op, '')}" for op in refused)
        return f"{who} used torch's own {names}; {rule.because}"
    return look.heard(c.of, got.called)
