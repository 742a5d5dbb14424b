"""Run a check against a learner's code and say what came of it, and why.

The reference and the learner's code play the same cases; a part earns its points when all its
cases agree. Where they do not, each misconception plays the failed cases too: one whose results
equal the learner's is what the learner did.
"""

from __future__ import annotations

import dataclasses
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
    """

    name: str
    points: float
    earned: float
    problem: str = ""
    misconception: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a check says of one learner's code.

    Attributes:
        status: ``right``, ``partly``, ``wrong`` or ``not attempted``.
        broken_rule: what the learner used that had to be done by hand, or empty.
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
    broken_rule: str = ""
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


def judge(check: Check, thing: Any, seed: str, *, source: str = "") -> Verdict:
    """Judge a learner's function, class, value or dict of functions.

    Args:
        check: what must hold.
        thing: what the learner wrote.
        seed: draws the cases.
        source: the learner's code, for the look at what may not be used; empty when unknown.
    """
    outcomes = _play_all(check, thing, check.draw_cases(seed))
    if all(_not_attempted(got) for _, got, _ in outcomes):
        return _without_points(check, seed, "not attempted", "not attempted yet")
    rule = _broken_rule(check, source, [got for _, got, _ in outcomes])
    if rule:
        verdict = _without_points(check, seed, "wrong", "")
        return dataclasses.replace(verdict, broken_rule=rule)
    parts, explanations = [], {}
    for name, points in check.parts.items():
        mine = [(c, got, want) for c, got, want in outcomes if c.part == name]
        failed = [(c, got, difference(check, got, want)) for c, got, want in mine]
        failed = [(c, got, wrong) for c, got, wrong in failed if wrong]
        if not failed:
            parts.append(PartResult(name, points, points))
            continue
        known = _recognise(check, [(c, got) for c, got, _ in failed], outcomes)
        if known:
            explanations[known.name] = known.explanation
        parts.append(
            PartResult(name, points, 0.0, failed[0][2], known.name if known else "")
        )
    earned = sum(part.earned for part in parts)
    status = "right" if earned == check.points else "partly" if earned else "wrong"
    return Verdict(
        check.name, check.points, tuple(parts), status, check.reads, seed,
        explanations=explanations,
    )


def _play_all(
    check: Check, thing: Any, cases: list[Case]
) -> list[tuple[Case, Outcome, Outcome]]:
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
        outcomes.append((c, got, play(check, check.right, c)))
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
        return f"expected a {kind}, came {got.raised}"
    if got.raised is not None:
        return f"raised {got.raised}"
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
    return place + wrong.summary + (f" (perhaps {wrong.guess})" if wrong.guess else "")


def _not_attempted(outcome: Outcome) -> bool:
    return outcome.raised is not None and outcome.raised.kinds[0] == "NotImplementedError"


def _broken_rule(check: Check, source: str, outcomes: list[Outcome]) -> str:
    rule = check.by_hand
    if rule is None:
        return ""
    refused = rule.refused_ops(op for o in outcomes for call in o.calls for op in call.ops)
    if refused:
        return f"your code reached {', '.join(refused)}; {rule.because}"
    named = rule.refused_names(source)
    if named:
        line, name = named[0]
        return f"line {line} of your cell uses `{name}`; {rule.because}"
    return ""


def _recognise(
    check: Check,
    failed: list[tuple[Case, Outcome]],
    outcomes: list[tuple[Case, Outcome, Outcome]],
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
            _alike(check, got, play(check, candidate.thing, c)) for c, got, _ in outcomes
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


def _without_points(check: Check, seed: str, status: str, problem: str) -> Verdict:
    parts = tuple(PartResult(n, p, 0.0, problem) for n, p in check.parts.items())
    return Verdict(check.name, check.points, parts, status, check.reads, seed)
