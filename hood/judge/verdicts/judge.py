"""Run a check against a learner's code and compute the verdict.

The reference and the learner's code play the same cases. A part earns its points if the outcomes of
all its cases agree. If some outcomes differ, each misconception plays the cases, too, and
:mod:`hood.judge.verdicts.diagnosis` decides whether one of them behaves like the learner's code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hood.judge.checks.exercise import Case, Check
from hood.judge.connection.drivers import INPUTS_KEPT
from hood.judge.connection.rpc_client import (
    Connection,
    ConnectionLost,
    InProcess,
    OutOfOutput,
    OutOfTime,
)
from hood.judge.connection.settings import usual_settings
from hood.judge.source.accounting import Surroundings
from hood.judge.source.by_hand import RuleReader, can_be_heard
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.answer_key import AnswerKey, answer_key
from hood.judge.verdicts.diagnosis import Diagnosis
from hood.judge.verdicts.difference import difference, differs, in_case
from hood.judge.verdicts.outcome import CaseOutcome, play
from hood.verdict import Cause, PartResult, Status, Verdict

# Operators that hardly anybody calls by name, with the functions that call the operators.
CALLED_BY = {
    "aten.clone": " (`contiguous` and `reshape` call it)",
    "aten._to_copy": " (`to` and `float` call it)",
}
# The limit follows, if it is known.
OUT_OF_TIME = "no answer in time (an endless loop, or code that is too slow"


def judge(
    check: Check,
    thing: Any,
    seed: str,
    *,
    source: LearnerSource | None = None,
    connect: Callable[[Any], Connection] = InProcess,
) -> Verdict:
    """Judge a function, class, value or dict of functions in this process.

    ``source`` has the notebook's cells, for a rule about forbidden names; None if unknown.
    ``connect`` makes the connection to ``thing``.
    """
    with usual_settings():
        key = answer_key(check, seed)
        return assess(key, ask(key, connect(thing)), source=source)


def first_failure(key: AnswerKey, connection: Connection, suspect: int = 0) -> int | None:
    """Play cases until the answer is wrong in a case; return the number of this case, or None.

    This function only finds out whether an answer earns full points. It explains nothing, and does
    not check the names in the answer. The errors are those of :func:`play`. ``suspect`` is the
    number of the case to play first.
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


def ask(key: AnswerKey, connection: Connection) -> list[CaseOutcome]:
    """Play the cases with the learner's code. The comparison comes later, in :func:`assess`.

    If the code's time is up, or if the code can no longer be called, the remaining cases are not
    played and count as failed. Return the outcome of each of the key's cases.
    """
    outcomes: list[CaseOutcome] = []
    around = Surroundings()
    try:
        if key.check.by_hand is not None:
            around = Surroundings.told_by(connection)
        for c in key.cases:
            outcomes.append(replace(play(key.check, connection, c), around=around))
        return outcomes
    except OutOfOutput as much:
        unplayed = CaseOutcome(unusable=f"nothing more: {much}", cause=Cause.TOO_MUCH_OUTPUT)
    except OutOfTime as late:
        said = f"{OUT_OF_TIME}; the limit is {late})" if str(late) else f"{OUT_OF_TIME})"
        unplayed = CaseOutcome(unusable=said, cause=Cause.TIMEOUT)
    except ConnectionLost as lost:
        unplayed = CaseOutcome(unusable=f"nothing more: {lost}", cause=Cause.NO_REPLY)
    return outcomes + [unplayed] * (len(key.cases) - len(outcomes))


def assess(
    key: AnswerKey,
    outcomes: list[CaseOutcome],
    *,
    source: LearnerSource | None = None,
    claims: tuple[str, ...] = (),
) -> Verdict:
    """Compare the learner's outcomes, which :func:`ask` returned, and return the verdict."""
    check = key.check
    not_run = {c.part: c.not_run for c in key.cases if c.not_run}
    pairs = zip(key.cases, outcomes, strict=True)
    played = [(c, got) for c, got in pairs if c.part not in not_run]
    look = RuleReader(check, source, next((got.around for got in outcomes), Surroundings()))
    attempted = not played or not all(_not_attempted(got) for _, got in played)
    diagnosis = Diagnosis(key, played)
    parts = []
    for name, points in check.parts.items():
        part = PartResult(name, points, 0.0, Status.NOT_RUN)
        if name in not_run:
            part = replace(part, cause=Cause.UNAVAILABLE, problem=not_run[name])
        elif attempted:
            of_part = [(c, got) for c, got in played if c.part == name]
            part = _judge_part(key, part, of_part, diagnosis, look)
        else:
            none, said = Status.NOT_ATTEMPTED, "not attempted yet"
            part = replace(part, status=none, cause=Cause.NOT_ATTEMPTED, problem=said)
        parts.append(part)
    named = {part.misconception for part in parts}
    return Verdict(
        check=check.name,
        points=check.points,
        parts=tuple(parts),
        status=_status(parts) if attempted else Status.NOT_ATTEMPTED,
        reads=check.reads,
        seed=key.seed,
        explanations={m.name: m.explanation for m in check.misconceptions if m.name in named},
        claims=claims,
    )


def claims_of(key: AnswerKey) -> tuple[str, ...]:
    """Return in words the facts that only the learner's own process reports.

    There are two kinds of such facts: facts about calls (but not the results of calls), and the
    claims of drivers that were recorded while the reference played. So a learner's process can't
    change the list.
    """
    check = key.check
    calls = [call for c in key.cases if not c.not_run for call in key.right(c).calls]
    said = {
        "which operators ran": check.by_hand is not None and check.by_hand.needs_trace,
        "which functions of torch were called": can_be_heard(check.by_hand),
        "that names refer to what cells and libraries define": check.by_hand is not None,
        INPUTS_KEPT: not check.changes_inputs and any(call.watched for call in calls),
        "that results share storage with the inputs": check.sharing,
    }
    shown = [claim for claim, is_made in said.items() if is_made]
    played = [claim for c in key.cases if not c.not_run for claim in key.right(c).claims]
    return tuple(dict.fromkeys(shown + played))


def _status(parts: list[PartResult]) -> Status:
    found = {part.status for part in parts}
    if Status.WRONG in found:
        return Status.PARTLY if Status.RIGHT in found else Status.WRONG
    return Status.RIGHT_AS_FAR_AS_RUN if Status.NOT_RUN in found else Status.RIGHT


def _judge_part(
    key: AnswerKey,
    part: PartResult,
    played: list[tuple[Case, CaseOutcome]],
    diagnosis: Diagnosis,
    look: RuleReader,
) -> PartResult:
    part = replace(part, status=Status.WRONG, reads=key.check.section(part.name))
    for c, got in played:
        if rule := _broken_rule(key.check, c, got, look):
            return replace(part, cause=Cause.RULE_BROKEN, problem=rule)
    part = replace(part, against=played[0][0].against)
    for c, got in played:
        if found := difference(key.check, got, key.right(c), c.places):
            break
    else:
        return replace(part, status=Status.RIGHT, earned=part.points, reads="")
    known, resembled = diagnosis.of(part.name)
    hint = ""
    if resembled:
        like = f"in most of the cases that fail, your code behaves like “{resembled.name}”"
        hint = f"{like}: {resembled.explanation}"
    return replace(
        part,
        cause=got.cause if got.cause is not Cause.NONE else Cause.WRONG_RESULT,
        problem=in_case(c, found),
        quoted=found.quoted,
        misconception=known.name if known else "",
        hint=hint,
        reads=key.check.section(part.name, known or resembled),
    )


def _not_attempted(outcome: CaseOutcome) -> bool:
    return outcome.raised is not None and outcome.raised.kinds[0] == "NotImplementedError"


def _broken_rule(check: Check, c: Case, got: CaseOutcome, look: RuleReader) -> str:
    rule = check.by_hand
    if rule is None or not rule.holds_for(c.part):
        return ""
    # first, because this sentence quotes the learner's code; operators have torch's names
    if said := look.refusal(c.of):
        return said
    who = f"`{c.of}`" if c.of else "your code"
    refused = rule.refused_ops(op for call in got.calls for op in call.ops)
    if refused:
        names = ", ".join(f"`{op.removeprefix('aten.')}`{CALLED_BY.get(op, '')}" for op in refused)
        return f"torch's own {names} ran in {who}; {rule.because}"
    return look.heard(c.of, got.called)
