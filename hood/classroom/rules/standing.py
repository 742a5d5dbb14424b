"""Find which of a learner's hand-ins to a lab may count under the rules of ``course.yml``.

These are pure functions of times and rules. If several hand-ins may count, the hand-in with the
most points after the late penalty counts. To find this hand-in,
:mod:`hood.classroom.recording.contest` grades all hand-ins that may count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hood.classroom.rules.counting import Lateness, lateness_of
from hood.classroom.rules.schema import ClassRules, HandInRule
from hood.classroom.rules.sentences import days, moment, number, percent

MOST = 10  # hand-ins of one learner for one lab that are graded and compared
NAMED = 4  # hand-ins that a sentence names
TIMES = {2: "twice", 3: "three times", 4: "four times"}
Times = Mapping[str, datetime | None]


@dataclass(frozen=True)
class HandInTime:
    """The name and the time of a hand-in.

    Attributes:
        name: the name of the hand-in's file or folder. A later hand-in has a greater name.
        at: when it was handed in, with a time zone; None if that is not known.
    """

    name: str
    at: datetime | None


@dataclass(frozen=True)
class KnownHandIn:
    """The facts from which sentences about a hand-in are made.

    Attributes:
        at: when it was handed in, with a time zone; None if that is not known.
        lateness: how late it was, and what that costs.
        stands: whether it counts.
        counts: the hand-in's points after the late penalty; None if it was not graded.
        seen: whether the hand-in already existed when the lab was last graded.
    """

    at: datetime | None
    lateness: Lateness
    stands: bool = False
    counts: float | None = None
    seen: bool = True


def lateness_at(
    file: ClassRules, lab: str, student: str, at: datetime | None, others: Times
) -> Lateness:
    """Return how late a hand-in at this time is, and what that costs.

    Args:
        others: when the learner's submissions to other labs came, because free days may be spent on
            these labs. Here free days are spent without regard to points, because this hand-in may
            not be graded yet.
    """
    return lateness_of(file, student, {**others, lab: at}, {})[lab]


def choosing(file: ClassRules | None, lab: str) -> bool:
    """Return whether the rules choose a hand-in. If they don't, the newest hand-in counts."""
    return file is not None and lab in file.labs and file.labs[lab].due is not None


def may_count(
    file: ClassRules | None, lab: str, student: str, found: Sequence[HandInTime], others: Times
) -> list[HandInTime]:
    """Return a learner's hand-ins that may count, the latest first.

    If the lateness of several hand-ins costs the same, only the latest of these hand-ins may count.
    A hand-in that is too late to count is left out if another hand-in may count. If more than
    :data:`MOST` hand-ins remain, the result has the hand-in that loses least by lateness, and the
    latest other hand-ins, :data:`MOST` in all.
    """
    found = sorted(found, key=lambda one: one.name, reverse=True)
    if file is None or not choosing(file, lab) or file.hand_in_rule(lab) is HandInRule.LAST:
        return found[:1]
    late = {one.name: lateness_at(file, lab, student, one.at, others) for one in found}
    if file.hand_in_rule(lab) is HandInRule.LAST_IN_TIME:
        in_time = [one for one in found if not late[one.name].days]
        return (in_time or found)[:1]
    last = {(late[one.name].kept, late[one.name].free): one for one in reversed(found)}
    worth = [one for one in last.values() if late[one.name].kept]
    worth = sorted(worth or found[:1], key=lambda one: one.name, reverse=True)
    if len(worth) > MOST:
        cheapest = max(worth, key=lambda one: (late[one.name].kept, -late[one.name].free))
        worth = [*(one for one in worth if one is not cheapest)][: MOST - 1] + [cheapest]
    return worth


def by_weight(
    file: ClassRules | None, lab: str, student: str, found: Sequence[HandInTime]
) -> list[HandInTime]:
    """Return the hand-ins by importance: the hand-in at the end of the list is removed first.

    The newest hand-in comes first. Then comes the last hand-in of each day of lateness. Then come
    all other hand-ins, the newest first.
    """
    found = sorted(found, key=lambda one: one.name, reverse=True)
    if file is None or lab not in file.labs:
        return found
    late = {one.name: lateness_at(file, lab, student, one.at, {}) for one in found}
    last = {late[one.name].days: one.name for one in reversed(found)}

    def weight(hand_in: HandInTime) -> tuple[bool, bool, float]:
        own = late[hand_in.name]
        replaced = last[own.days] != hand_in.name
        return hand_in is not found[0], replaced, 0.0 if replaced else -own.kept

    return sorted(found, key=weight)


def hand_ins_sentence(found: Sequence[KnownHandIn], rule: HandInRule, you: bool = True) -> str:
    """Return which hand-in counts, and why other hand-ins don't; empty if there are no others.

    Args:
        found: all hand-ins of a learner to a lab, the oldest first. Exactly one of them ``stands``.
        you: whether the sentence addresses the learner.
    """
    if len(found) < 2:
        return ""
    often = TIMES.get(len(found), f"{len(found)} times")
    handed = f"You handed in {often}" if you else f"Handed in {often}"
    [one] = [one for one in found if one.stands]
    if rule is HandInRule.LAST and one is found[-1]:
        return f"{handed}: {_named(one)} counts; in this class the last one counts."
    others = [_other(other, one, rule) for other in found if other is not one]
    if more := len(others[:-NAMED]):
        rest = "one more does not count" if more == 1 else f"{more} others do not count"
        others = [*others[-NAMED:], rest]
    return f"{handed}: {_named(one)} counts; {'; '.join(others)}."


def _named(hand_in: KnownHandIn) -> str:
    return (
        "the hand-in without a known time"
        if hand_in.at is None
        else f"the hand-in of {moment(hand_in.at)},"
    )


def _other(hand_in: KnownHandIn, chosen: KnownHandIn, rule: HandInRule) -> str:
    late, named = hand_in.lateness, _named(hand_in).removesuffix(",")
    if not hand_in.seen:
        return f"{named} is not graded yet"
    if late.days:
        named += f" came {days(late.days)} late and"
    if (late.kept, late.free) == (chosen.lateness.kept, chosen.lateness.free):
        return f"{named} was replaced by it"
    if not late.kept:
        return f"{named} would have counted 0"
    if rule is HandInRule.LAST_IN_TIME:
        return f"{named} does not count: the last one that is in time counts"
    if hand_in.counts is not None:
        return f"{named} would have counted {number(hand_in.counts)}"
    return f"{named} was replaced by a later one"


def so_far(file: ClassRules | None, lab: str, student: str, found: Sequence[HandInTime]) -> str:
    """Return a sentence for the learner on which of several ungraded hand-ins may count.

    The result is empty if there is only one hand-in, or if no rules choose among them.
    """
    if file is None or len(found) < 2 or not choosing(file, lab):
        return ""
    often = TIMES.get(len(found), f"{len(found)} times")
    left = may_count(file, lab, student, found, {})
    named = [_named(KnownHandIn(in_zone(file, one.at), Lateness())) for one in reversed(left)]
    if len(named) == 1:
        return f"You handed in {often}: {named[0]} counts."
    *some, last = [one.removesuffix(",") for one in named]
    which = f"{', '.join(some)} or {last}"
    return f"You handed in {often}: {which} counts; grading will show which has more points."


def would_be(
    file: ClassRules | None,
    lab: str,
    student: str,
    before: datetime | None,
    now: datetime,
) -> str:
    """Return a sentence on what a further hand-in would change for the newest hand-in.

    Args:
        before: when the newest hand-in came, with a time zone; None if not known.
    """
    if file is None or lab not in file.labs:
        return "A new hand-in replaces it."
    late = lateness_at(file, lab, student, now, {})
    then = lateness_at(file, lab, student, before, {})
    when = f"{days(late.days)} late" if late.days else "in time"
    own = f"A new hand-in is {when}"
    if not late.days or (late.kept, late.free) == (then.kept, then.free):
        return f"{own}, and replaces the earlier one."
    if file.hand_in_rule(lab) is HandInRule.LAST:
        return (
            f"{own}, {_share(late)}, and replaces the earlier one: in this class the last one "
            "counts."
        )
    if file.hand_in_rule(lab) is HandInRule.LAST_IN_TIME:
        place = "the last one counts" if then.days else "the last one that is in time counts"
        return f"{own}: {place}."
    if not late.kept:
        return f"{own}, so it counts 0: the earlier one stays."
    return f"{own}, {_share(late)}: the hand-in with more points will count."


def _share(late: Lateness) -> str:
    if not late.kept:
        return "so it counts 0"
    return f"so {percent(late.kept)} of its points count" if late.kept < 1 else "at no cost"


def is_late(file: ClassRules | None, lab: str, student: str, at: datetime) -> bool:
    """Return whether a hand-in at this time is late. Without rules for the lab, none is late."""
    deadline = file.deadline(lab, student) if file else None
    return deadline is not None and deadline.is_late(at)


def in_zone(file: ClassRules | None, at: datetime | None) -> datetime | None:
    """Return a time as the class's clock shows it."""
    return at and at.astimezone(file.zone if file else UTC)
