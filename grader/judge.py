"""Run a check against a learner's code and say what came of it, and why.

The reference and the learner's code play the same cases; a part earns its points when all its
cases agree. Where they do not, each misconception plays the failed cases too: one whose results
equal the learner's is what the learner did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from grader.subject import NotByValue, Subject, SubjectRaised
from utils.checks import Candidate, Case, Check
from utils.compare import Difference, compare

OUT_OF_TIME = "nothing before the cell's time was up (a loop that never ends?)"


@dataclasses.dataclass(frozen=True)
class PartResult:
    """One part of an exercise.

    Attributes:
        name: as the check has it.
        points: what it can earn.
        earned: all of them, or 0.
        problem: what went wrong in the first failed case, without inputs or values; or empty.
        misconception: name of the misconception that explains every failed case, or empty.
        broken_rule: whether the problem is that something was used which had to be done by hand.
    """

    name: str
    points: float
    earned: float
    problem: str = ""
    misconception: str = ""
    broken_rule: bool = False


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a check says of one learner's code.

    Attributes:
        status: ``right``, ``partly``, ``wrong`` or ``not attempted``.
        explanations: misconception name to the sentence that the learner reads.
        reads: heading of the lesson section to read again.
        seed: what the cases were drawn from.
    """

    check: str
    points: float
    parts: tuple[PartResult, ...]
    status: str
    reads: str
    seed: str
    explanations: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def earned(self) -> float:
        """Points earned, over all parts."""
        return float(sum(part.earned for part in self.parts))

    @property
    def misconceptions(self) -> list[str]:
        """Names of the misconceptions that were recognised, each once."""
        return list(self.explanations)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one case came to: a value or an exception, and what the calls did besides."""

    value: Any
    raised: SubjectRaised | None
    calls: tuple
    unusable: str = ""


Played = tuple[Case, Outcome, Outcome]  # the case, the learner's outcome, the reference's


def judge(
    check: Check, thing: Any, seed: str, *, source: str | Mapping[str, str] = ""
) -> Verdict:
    """Judge a learner's function, class, value or dict of functions.

    Args:
        check: what must hold.
        thing: what the learner wrote.
        seed: draws the cases.
        source: the learner's code, for the look at what may not be used; for an exercise of
            several functions the code of each, by name. Empty when unknown.
    """
    played = _play_all(check, thing, check.draw_cases(seed))
    if all(_not_attempted(got) for _, got, _ in played):
        parts = [PartResult(n, p, 0.0, "not attempted yet") for n, p in check.parts.items()]
        return Verdict(check.name, check.points, tuple(parts), "not attempted", check.reads, seed)
    parts = tuple(
        _judge_part(check, name, [p for p in played if p[0].part == name], played, source)
        for name in check.parts
    )
    earned = sum(part.earned for part in parts)
    named = {part.misconception for part in parts}
    return Verdict(
        check=check.name,
        points=check.points,
        parts=parts,
        status="right" if earned == check.points else "partly" if earned else "wrong",
        reads=check.reads,
        seed=seed,
        explanations={m.name: m.explanation for m in check.misconceptions if m.name in named},
    )


def _judge_part(
    check: Check,
    name: str,
    mine: list[Played],
    every: list[Played],
    source: str | Mapping[str, str],
) -> PartResult:
    points = check.parts[name]
    for c, got, _ in mine:
        rule = _broken_rule(check, c, got, source)
        if rule:
            return PartResult(name, points, 0.0, rule, broken_rule=True)
    wrong = [(c, got, said) for c, got, want in mine if (said := difference(check, got, want))]
    if not wrong:
        return PartResult(name, points, points)
    known = _recognise(check, [(c, got) for c, got, _ in wrong], every)
    c, _, said = wrong[0]
    problem = f"{c.shown}: {said}" if c.shown else said
    return PartResult(name, points, 0.0, problem, known.name if known else "")


def _play_all(check: Check, thing: Any, cases: list[Case]) -> list[Played]:
    """Each case with the learner's outcome and the reference's.

    An interrupt (the cell's time limit) leaves the rest unplayed, which decides against them.
    """
    outcomes, out_of_time = [], False
    for c in cases:
        got = Outcome(None, None, (), unusable=OUT_OF_TIME)
        if not out_of_time:
            try:
                got = play(check, thing, c)
            except KeyboardInterrupt:
                out_of_time = True
        want = play(check, check.right, c)
        if want.unusable:
            raise ValueError(f"check {check.name!r}: its reference returned {want.unusable}")
        outcomes.append((c, got, want))
    return outcomes


def play(check: Check, thing: Any, c: Case) -> Outcome:
    """Let ``thing`` play one case."""
    subject = Subject(thing, trace=check.by_hand is not None and check.by_hand.needs_trace)
    try:
        value = c.play(subject)
    except SubjectRaised as error:
        return Outcome(None, error, tuple(subject.calls))
    except NotByValue as error:
        return Outcome(None, None, tuple(subject.calls), unusable=str(error))
    except Exception:  # the case looks into what came back, which may be anything
        other = "something of another kind than was asked for"
        return Outcome(None, None, tuple(subject.calls), unusable=other)
    return Outcome(value, None, tuple(subject.calls))


def difference(check: Check, got: Outcome, want: Outcome) -> str:
    """Why ``got`` is not what the reference did, in words without values; empty when it is."""
    if got.unusable:
        return f"returned {got.unusable}"
    if want.raised is not None:
        kind = want.raised.kinds[0]
        if got.raised is None:
            return f"expected a {kind}, but something was returned"
        if kind in got.raised.kinds:
            return ""
        return f"expected a {kind}, came {got.raised.in_words()}"
    if got.raised is not None:
        return f"raised {got.raised.in_words()}"
    if not check.changes_inputs and any(call.changed for call in got.calls):
        return "the function changed one of its inputs; work on a new tensor"
    wrong = compare(got.value, want.value, tolerance=check.tolerance, strides=check.strides)
    if wrong is not None:
        return _in_words(wrong)
    if check.sharing and [c.shares for c in got.calls] != [c.shares for c in want.calls]:
        if any(s is None for c in got.calls for s in c.shares):
            return "right values, but in a storage of its own: a copy, where a view is asked for"
        return "right values, but a view of the input, where a storage of its own is asked for"
    return ""


def _in_words(wrong: Difference) -> str:
    place = f"at {wrong.where}: " if wrong.where else ""
    if wrong.kind == "strides":  # they may be what was asked for
        return f"{place}right values, wrong strides"
    return place + wrong.summary + (f" (perhaps {wrong.guess})" if wrong.guess else "")


def _not_attempted(outcome: Outcome) -> bool:
    return outcome.raised is not None and outcome.raised.kinds[0] == "NotImplementedError"


def _broken_rule(
    check: Check, c: Case, got: Outcome, source: str | Mapping[str, str]
) -> str:
    rule = check.by_hand
    if rule is None:
        return ""
    who = f"`{c.of}`" if c.of else "your code"
    refused = rule.refused_ops(op for call in got.calls for op in call.ops)
    if refused:
        names = ", ".join(f"`{op.removeprefix('aten.')}`" for op in refused)
        return f"{who} used torch's own {names}; {rule.because}"
    named = rule.refused_names(source if isinstance(source, str) else source.get(c.of or "", ""))
    if named:
        return f"{who} uses `{named[0]}`; {rule.because}"
    return ""


def _recognise(
    check: Check,
    failed: list[tuple[Case, Outcome]],
    every: list[Played],
) -> Candidate | None:
    """The misconception that does what the learner did in every failed case of a part.

    Two can fail a part in the same way; the one that also agrees elsewhere is the likelier.
    """
    fitting = [
        candidate
        for candidate in check.misconceptions
        if all(_alike(check, got, play(check, candidate.thing, c)) for c, got in failed)
    ]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    return max(
        fitting,
        key=lambda candidate: sum(
            _alike(check, got, play(check, candidate.thing, c)) for c, got, _ in every
        ),
    )


def _alike(check: Check, got: Outcome, candidate: Outcome) -> bool:
    if got.raised is not None or candidate.raised is not None:
        return (
            got.raised is not None
            and candidate.raised is not None
            and got.raised.kinds == candidate.raised.kinds
            and got.raised.message == candidate.raised.message
        )
    if got.unusable or candidate.unusable:
        return got.unusable == candidate.unusable
    same_effects = [(c.changed, c.shares) for c in got.calls] == [
        (c.changed, c.shares) for c in candidate.calls
    ]
    same = compare(got.value, candidate.value, tolerance=check.tolerance, strides=check.strides)
    return same_effects and same is None
