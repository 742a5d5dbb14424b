"""Say in words what ``course.yml`` means, and what counts of a submission."""

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
    Withheld.COUNT: "Points that the grading machine could not ask for are lost until it can.",
    Withheld.CREDIT: "Points that the grading machine could not ask for are given.",
}
HAND_INS = {
    HandInRule.BEST: "Of several hand-ins the one that is worth most after lateness counts.",
    HandInRule.LAST: "Of several hand-ins the last one counts.",
    HandInRule.LAST_IN_TIME: "Of several hand-ins the last one in time counts.",
}


def moment(at: datetime) -> str:
    """Return a time in words: ``25 September 2026, 23:59``."""
    return f"{at:%-d %B %Y, %H:%M}"


def day_or_moment(at: datetime) -> str:
    """Return the beginning of a day as its date, any other time as :func:`moment` does."""
    return moment(at) if at.time() != time() else f"{at:%-d %B %Y}"


def why_not_out(file: ClassRules | None, lab: str, now: datetime) -> str:
    """Return why a lab is not for learners yet, in a sentence; empty where it is.

    Args:
        file: None for a class without rules, which has every lab.
        now: with a time zone.
    """
    if file is None:
        return ""
    if lab not in file.labs:
        known = ", ".join(file.labs) or "none"
        return (
            f"{lab} is no lab of this class: `labs` in {FILE} has {known}. Name it there to "
            "release it"
        )
    release = file.labs[lab].release
    if release is None or not file.is_too_early(lab, now):
        return ""
    return f"{FILE} says that {lab} goes out on {day_or_moment(release)}"


def days(number: int) -> str:
    """Return a number of days in words."""
    return "1 day" if number == 1 else f"{number} days"


def period(length: Period) -> str:
    """Return a period in words: ``30 min``, ``36 h``, ``2 days``, ``1 day 12 h``."""
    minutes = length.elapsed.total_seconds() / 60
    rest = f"{minutes / 60:g} h" if minutes % 60 == 0 else f"{minutes:g} min"
    said = [days(length.days)] if length.days else []
    return " ".join([*said, rest] if minutes or not said else said)


def percent(share: float) -> str:
    """Return a share in words: ``10 %``."""
    return f"{round(100 * share, 2):g} %"


def lab_sentences(
    file: ClassRules, lab: str, points: dict[str, float], people: bool = True
) -> Iterator[str]:
    """Yield what the rules of one lab mean, a sentence each.

    Args:
        points: of the lab's exercises, by name.
        people: whether to name who has an extension.
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
            yield f"{extension.who} has until {moment(extension.due)}{why}."


def due_words(rules: LabRules) -> str:
    """Return until when a lab may be handed in, with its grace; empty without a due date."""
    return f"{moment(rules.due)}{_with(rules.grace)}" if rules.due else ""


def _with(grace: Period) -> str:
    return f", with {period(grace)} of grace" if grace else ""


def dates_sentence(deadline: Deadline | None, came: datetime | None, zone: ZoneInfo) -> str:
    """Return until when a learner could hand a lab in, and when that was done.

    Args:
        came: with a time zone; None where it is not known.
        zone: in which the times are told.
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
    """Return a time in words; one that the clocks show twice has the name of its clock as well."""
    local = at.astimezone(zone)
    once = local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset()
    return f"{local:%-d %B %Y, %H:%M:%S}{'' if once else f' {local:%Z}'}"


def free_sentences(file: ClassRules) -> Iterator[str]:
    """Yield what of lateness is free in the whole term, if anything is."""
    if free := file.late.free_days:
        are, save = ("is", "it saves") if free == 1 else ("are", "they save")
        yield f"In the whole term {days(free)} of lateness {are} free, where {save} most points."


def late_sentence(policy: LatePolicy) -> str:
    """Return what a policy for lateness means."""
    said = []
    if policy.per_day:
        floor = f", but at least {percent(policy.floor)} of it stays" if policy.floor else ""
        said.append(f"each day begun takes {percent(policy.per_day)} of what was earned{floor}")
    if policy.last_day is not None:
        said.append(f"after {days(policy.last_day)} nothing counts")
    return f"Late: {'; '.join(said)}." if said else "Coming late costs nothing."


def policy_sentences(file: ClassRules, lab: str, lateness: Lateness) -> Iterator[str]:
    """Yield what a late submission costs in a lab, and what of that may still change."""
    policy = file.policy(lab)
    yield late_sentence(policy)
    if (
        lateness.days
        and file.late.free_days
        and policy.per_day
        and not policy.is_over(lateness.days)
    ):
        yield (
            "Your free days are spent where they save you most points, so what counts here can "
            "change when another lab of yours is graded."
        )


def no_time_sentence(file: ClassRules | None, lab: str, without: int, of: int) -> str:
    """Return what holds for submissions of a lab whose time is not known; empty where none is late.

    Args:
        without: how many they are; ``of``, how many submissions there are in all.
    """
    if not without or file is None or lab not in file.labs or not file.labs[lab].due:
        return ""
    some = f"{without} of {of} submissions" if of > 1 else "The submission"
    does = "has no time, and so counts" if without == 1 else "have no time, and so count"
    others = "the others are judged by theirs" if of > without + 1 else "the other is judged by its"
    return (
        f"{some} {does} as in time{f', while {others}' if without < of else ''}. A timestamp.txt "
        f"in submitted/LEARNER/{lab}/, such as “2026-04-05 10:00:00 UTC”, gives one; Moodle and "
        "Canvas can tell them: see docs/how-to/collect-from-an-lms.md"
    )


def counting_sentences(rules: LabRules, points: dict[str, float]) -> Iterator[str]:
    """Yield how a lab's exercises count, where it is not as the lab has it."""
    if rules.drop:
        dropped = in_points(sum(points[name] for name in rules.drop))
        yield f"Left out of what counts ({dropped} in the lab): {_named(rules.drop)}."
    for name, worth in rules.points.items():
        yield f"`{name}` counts {in_points(worth)} in place of {points[name]:g}."
    if rules.bonus:
        yield f"A bonus, which adds points and is no part of the maximum: {_named(rules.bonus)}."
    most = worth_of(rules, points)
    yield f"{in_points(most).capitalize()} in all, of {sum(points.values()):g} in the lab."
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
        yield f"Feedback shows the rubrics of answers that a person has marked{after}."
    if (most := feedback.attempts) is not None:
        many = "1 verdict" if most == 1 else f"{most or 'no'} verdicts"
        yield f"The service gives {many} on an exercise in a day."


def counted_sentences(counted: Counted) -> Iterator[str]:
    """Yield what counts of a submission and how it came about, for its learner."""
    yield from sum_sentences(counted)
    yield from filter(None, map(exercise_sentence, counted.marks))
    if said := lateness_sentence(counted):
        yield said


def sum_sentences(counted: Counted) -> Iterator[str]:
    """Yield what counts of a submission in all, and what of it has no mark."""
    so_far = "" if counted.is_final else " so far"
    yield f"{number(counted.counts)} of {number(counted.most)} points count{so_far}."
    if counted.waiting:
        yield f"Not marked yet: {in_points(counted.waiting)} that count."
    if counted.lost:
        yield f"Without a mark: {in_points(counted.lost)} that count."


def exercise_sentence(mark: CountedMark) -> str:
    """Return how an exercise counts; empty if as in the lab."""
    said = how(mark)
    return f"`{mark.raw.exercise}` {said}." if said else ""


def lateness_sentence(counted: Counted) -> str:
    """Return how late a submission came, and what that costs; empty if it came in time."""
    late = counted.lateness
    if not late.known:
        return "When it was handed in is not known."
    if not late.days:
        return ""
    handed_in = f"Handed in {days(late.days)} late"
    if not late.kept:
        return f"{handed_in}: nothing counts any more."
    if late.free == late.days:
        by = "a free day covers" if late.days == 1 else "your free days cover"
        return f"{handed_in}, which {by}."
    paid = f", {late.free} of them free" if late.free else ""
    cost = f": {percent(late.kept)} of {number(counted.earned)} points stay"
    return f"{handed_in}{paid}{cost if late.kept < 1 else ', at no cost'}."


def how(mark: CountedMark) -> str:
    """Return how an exercise counts, in words after its name; empty if as in the lab."""
    raw, said = mark.raw, []
    if mark.role is Role.DROPPED:
        return "does not count"
    if mark.worth != raw.points:
        said.append(f"counts {in_points(mark.worth)} in place of {raw.points:g}")
    if mark.role is Role.BONUS:
        said.append("is a bonus")
    if raw.withheld and mark.role is Role.NORMAL and mark.most < mark.worth:
        left = in_points(round(mark.worth - mark.most, 2))
        said.append(f"is without {left} that the grading machine could not ask for")
    return ", and ".join(said)


def number(points: float) -> str:
    """Return points in words, rounded as in every table."""
    return f"{rounded(points):g}"


def rounded(points: float) -> float:
    """Return points with two digits; a half goes up, as on paper."""
    return math.floor(points * 100 + 0.5 + 1e-9) / 100
