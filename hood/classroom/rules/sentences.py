"""Make sentences on the rules of ``course.yml``, and on the points that count in a submission."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from zoneinfo import ZoneInfo

from hood.classroom.rules.counting import Counted, CountedMark, Lateness, Role
from hood.classroom.rules.deadline import Deadline, Period
from hood.classroom.rules.reading import FILE
from hood.classroom.rules.schema import (
    ClassRules,
    Feedback,
    HandInRule,
    LabRules,
    LatePolicy,
    Shown,
    Withheld,
)
from hood.classroom.rules.total import worth_of
from hood.verdict import in_points

WITHHELD = {
    Withheld.COUNT: "If the grading machine can't run a check, the check's points are lost "
    "until the machine can run the check.",
    Withheld.CREDIT: "If the grading machine can't run a check, the learner gets the check's "
    "points.",
}
HAND_INS = {
    HandInRule.BEST: "Of several hand-ins, the hand-in with the most points after the late penalty "
    "counts.",
    HandInRule.LAST: "Of several hand-ins, the last one counts.",
    HandInRule.LAST_IN_TIME: "Of several hand-ins, the last one that is in time counts.",
}


def moment(at: datetime) -> str:
    """Return a time as text, such as ``25 September 2026, 23:59``."""
    return f"{at:%-d %B %Y, %H:%M}"


def day_or_moment(at: datetime) -> str:
    """Return only the date if a time is the beginning of a day, otherwise the date and the time."""
    return moment(at) if at.time() != time() else f"{at:%-d %B %Y}"


def why_not_out(file: ClassRules | None, lab: str, now: datetime) -> str:
    """Return a sentence on why learners can't have a lab yet; empty if they can have it.

    Args:
        file: the rules; None for a class without rules, which has all labs.
        now: the current time, with a time zone.
    """
    if file is None:
        return ""
    if lab not in file.labs:
        known = ", ".join(file.labs) or "none"
        return (
            f"{lab} is not a lab of this class: `labs` in {FILE} has {known}. Add {lab} there to "
            "release it"
        )
    release = file.labs[lab].release
    if release is None or not file.is_too_early(lab, now):
        return ""
    return f"{FILE} releases {lab} only on {day_or_moment(release)}"


def days(number: int) -> str:
    """Return a number of days as text."""
    return "1 day" if number == 1 else f"{number} days"


def period(length: Period) -> str:
    """Return a period as text, such as ``30 min``, ``36 h``, ``2 days`` or ``1 day 12 h``."""
    minutes = length.elapsed.total_seconds() / 60
    rest = f"{minutes / 60:g} h" if minutes % 60 == 0 else f"{minutes:g} min"
    said = [days(length.days)] if length.days else []
    return " ".join([*said, rest] if minutes or not said else said)


def percent(share: float) -> str:
    """Return a share as text, such as ``10 %``."""
    return f"{round(100 * share, 2):g} %"


def lab_sentences(
    file: ClassRules, lab: str, points: dict[str, float], people: bool = True
) -> Iterator[str]:
    """Yield sentences on the rules of one lab.

    Args:
        points: the points of the lab's exercises, keyed by name.
        people: whether to name the learners with an extension.
    """
    rules = file.labs[lab]
    if rules.release:
        yield f"Released on {moment(rules.release)}."
    if rules.due:
        yield f"Due on {due_words(rules)}."
    else:
        yield "It has no due date."
    if rules.due:
        yield late_sentence(file.policy(lab))
        yield HAND_INS[file.hand_in_rule(lab)]
    yield from counting_sentences(rules, points)
    yield from _feedback(rules.feedback)
    for extension in file.extensions:
        if extension.lab == lab and people:
            why = f" ({extension.why})" if extension.why else ""
            yield f"{extension.who} has an extension until {moment(extension.due)}{why}."


def due_words(rules: LabRules) -> str:
    """Return a lab's due date and grace as text; empty without a due date."""
    return f"{moment(rules.due)}{_with(rules.grace)}" if rules.due else ""


def _with(grace: Period) -> str:
    return f", with {period(grace)} of grace" if grace else ""


def dates_sentence(deadline: Deadline | None, came: datetime | None, zone: ZoneInfo) -> str:
    """Return a sentence on a learner's due date, and on when they handed in.

    Args:
        came: when the submission came, with a time zone; None if not known.
        zone: the time zone in which the sentence gives both times.
    """
    said = []
    if deadline:
        own = " (your extension)" if deadline.extended else ""
        said.append(f"due on {_to_the_second(deadline.due, zone)}{own}{_with(deadline.grace)}")
    if came:
        said.append(f"handed in on {_to_the_second(came, zone)}")
    whole = "; ".join(said)
    return f"{whole[:1].upper()}{whole[1:]} (times of {zone.key})." if said else ""


def _to_the_second(at: datetime, zone: ZoneInfo) -> str:
    """Return a time as text, to the second.

    If the clocks show a time twice, the name of the clock is added, such as ``CET``.
    """
    local = at.astimezone(zone)
    once = local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset()
    return f"{local:%-d %B %Y, %H:%M:%S}{'' if once else f' {local:%Z}'}"


def free_sentences(file: ClassRules) -> Iterator[str]:
    """Yield a sentence on the term's free days, if the class has free days."""
    if free := file.late.free_days:
        are, save = ("is", "it saves") if free == 1 else ("are", "they save")
        said = f"{days(free)} of lateness {are} free, and {are} spent where {save} most points"
        yield f"In the whole term, {said}."


def late_sentence(policy: LatePolicy) -> str:
    """Return a sentence on what lateness costs."""
    said = []
    if policy.per_day:
        least = f", but at least {percent(policy.floor)} of these points count"
        floor = least if policy.floor else ""
        said.append(f"each begun day costs {percent(policy.per_day)} of the points earned{floor}")
    if policy.last_day is not None:
        said.append(f"after {days(policy.last_day)} nothing counts")
    return f"Late: {'; '.join(said)}." if said else "Lateness costs nothing."


def policy_sentences(file: ClassRules, lab: str, lateness: Lateness) -> Iterator[str]:
    """Yield sentences on what lateness costs in a lab, and on whether the cost may still change."""
    policy = file.policy(lab)
    yield late_sentence(policy)
    if (
        lateness.days
        and file.late.free_days
        and policy.per_day
        and not policy.is_over(lateness.days)
    ):
        yield (
            "Your free days are spent where they save you most points, so the points that count "
            "here can change when another of your labs is graded."
        )


def no_time_sentence(file: ClassRules | None, lab: str, without: int, of: int) -> str:
    """Return a sentence on the submissions without a known time; empty if all times are known.

    Args:
        without: how many submissions have no known time.
        of: how many submissions there are in all.
    """
    if not without or file is None or lab not in file.labs or not file.labs[lab].due:
        return ""
    some = f"{without} of {of} submissions" if of > 1 else "The submission"
    does = "has no time, so it counts" if without == 1 else "have no time, so they count"
    others = "the others have a time" if of > without + 1 else "the other has a time"
    return (
        f"{some} {does} as in time{f'; {others}' if without < of else ''}. To set a time, "
        f"write it into submitted/LEARNER/{lab}/timestamp.txt, such as “2026-04-05 10:00:00 UTC”. "
        "Or get the times from Moodle or Canvas: see docs/how-to/collect-from-an-lms.md"
    )


def counting_sentences(rules: LabRules, points: dict[str, float]) -> Iterator[str]:
    """Yield sentences on how exercises count in this class, if that differs from the lab."""
    if rules.drop:
        dropped = in_points(sum(points[name] for name in rules.drop))
        yield f"These exercises do not count ({dropped} in the lab): {_named(rules.drop)}."
    for name, worth in rules.points.items():
        yield f"`{name}` counts {in_points(worth)} in place of {points[name]:g}."
    if rules.bonus:
        yield f"Bonus (adds points, and is not in the maximum): {_named(rules.bonus)}."
    most = worth_of(rules, points)
    count = "counts" if most == 1 else "count"
    yield f"In all, {in_points(most)} {count}; the lab has {sum(points.values()):g}."
    if rules.withheld is not Withheld.EXCLUDE:
        yield WITHHELD[rules.withheld]


def _named(exercises: Sequence[str]) -> str:
    *others, last = (f"`{name}`" for name in exercises)
    return f"{', '.join(others)} and {last}" if others else last


def _feedback(feedback: Feedback) -> Iterator[str]:
    for does, what, when in (
        ("names", "misconceptions", feedback.misconceptions),
        ("shows", "failing calls", feedback.examples),
    ):
        if when is Shown.AFTER_DUE:
            yield f"Feedback {does} {what} only after the due date."
        elif when is Shown.NEVER:
            yield f"Feedback {does} no {what}."
    if feedback.rubrics is not Shown.NEVER:
        after = ", after the due date" if feedback.rubrics is Shown.AFTER_DUE else ""
        yield f"Feedback shows the rubrics of answers that a person marked{after}."
    if (most := feedback.attempts) is not None:
        many = "1 verdict" if most == 1 else f"{most or 'no'} verdicts"
        yield f"The service gives {many} per exercise and day."


def counted_sentences(counted: Counted) -> Iterator[str]:
    """Yield sentences for a learner on which points of a submission count, and why."""
    yield from sum_sentences(counted)
    yield from filter(None, map(exercise_sentence, counted.marks))
    if said := lateness_sentence(counted):
        yield said


def sum_sentences(counted: Counted) -> Iterator[str]:
    """Yield sentences on the points that count in a submission, and on points without a mark."""
    so_far = "" if counted.is_final else " so far"
    yield f"{number(counted.counts)} of {number(counted.most)} points count{so_far}."
    if counted.waiting:
        yield f"Not marked yet: {in_points(counted.waiting)}."
    if counted.lost:
        yield f"Without a mark: {in_points(counted.lost)}."


def exercise_sentence(mark: CountedMark) -> str:
    """Return a sentence on how an exercise counts; empty if the class does not change that."""
    said = how(mark)
    return f"`{mark.raw.exercise}` {said}." if said else ""


def lateness_sentence(counted: Counted) -> str:
    """Return a sentence on how late a submission came and on the cost; empty if it came in time."""
    late = counted.lateness
    if not late.known:
        return "The time of the hand-in is not known."
    if not late.days:
        return ""
    handed_in = f"Handed in {days(late.days)} late"
    if not late.kept:
        return f"{handed_in}, so nothing counts."
    if late.free == late.days:
        by = "a free day covers" if late.days == 1 else "your free days cover"
        return f"{handed_in}; {by} it."
    paid = f", {late.free} of them free" if late.free else ""
    cost = f": {percent(late.kept)} of {number(counted.earned)} points stay"
    return f"{handed_in}{paid}{cost if late.kept < 1 else ', at no cost'}."


def how(mark: CountedMark) -> str:
    """Return text after an exercise's name: how it counts; empty if the class changes nothing."""
    raw, said = mark.raw, []
    if mark.role is Role.DROPPED:
        return "does not count"
    if mark.worth != raw.points:
        said.append(f"counts {in_points(mark.worth)} in place of {raw.points:g}")
    if mark.role is Role.BONUS:
        said.append("is a bonus")
    if raw.withheld and mark.role is Role.NORMAL and mark.most < mark.worth:
        left = in_points(round(mark.worth - mark.most, 2))
        said.append(
            f"has a maximum that is {left} lower, because the grading machine could not run some "
            "checks"
        )
    return ", and ".join(said)


def number(points: float) -> str:
    """Return a number of points as text, rounded as in every table."""
    return f"{rounded(points):g}"


def rounded(points: float) -> float:
    """Return points rounded to two decimals; a half is rounded up."""
    return math.floor(points * 100 + 0.5 + 1e-9) / 100
