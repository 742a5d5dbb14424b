"""Which of a learner's hand-ins to a lab may count by the rules of ``course.yml``.

Pure functions of times and rules. Where the rules leave several, the one that counts most after
lateness does, which only their marks tell: :mod:`hood.classroom.recording.contest` grades those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hood.classroom.rules.counting import Lateness, lateness_of
from hood.classroom.rules.schema import ClassRules, HandInRule
from hood.classroom.rules.sentences import days, moment, number, percent

MOST = 10  # hand-ins of one learner to one lab that are compared; each has to be graded
NAMED = 4  # hand-ins that a sentence names
TIMES = {2: "twice", 3: "three times", 4: "four times"}
Times = Mapping[str, datetime | None]


@dataclass(frozen=True)
class HandInTime:
    """A hand-in.

    Attributes:
        name: under which it is kept; a later one has a greater name.
        at: when it was handed in, with a time zone; None where that is not known.
    """

    name: str
    at: datetime | None


@dataclass(frozen=True)
class KnownHandIn:
    """A hand-in whose rank is known, for a sentence on it.

    Attributes:
        at: when it was handed in, with a time zone; None where that is not known.
        lateness: what that costs.
        stands: whether it is the one that counts.
        counts: the points that count of it, or would; None where it was not graded.
        seen: whether it had been handed in when the lab was graded last.
    """

    at: datetime | None
    lateness: Lateness
    stands: bool = False
    counts: float | None = None
    seen: bool = True


def lateness_at(
    file: ClassRules, lab: str, student: str, at: datetime | None, others: Times
) -> Lateness:
    """Return how late a hand-in of a time is, and what that costs.

    Args:
        others: when the learner's submissions to other labs came, which may get free days. Points
            do not decide here: those of this hand-in may not be known yet.
    """
    return lateness_of(file, student, {**others, lab: at}, {})[lab]


def choosing(file: ClassRules | None, lab: str) -> bool:
    """Return whether rules say which hand-in counts; without a due date the newest one does."""
    return file is not None and lab in file.labs and file.labs[lab].due is not None


def may_count(
    file: ClassRules | None, lab: str, student: str, found: Sequence[HandInTime], others: Times
) -> list[HandInTime]:
    """Return those of a learner's hand-ins of which one counts, the last first.

    Of those that lateness costs the same the last one replaced the others. What counts nothing for
    its lateness is left out where another one may count something. Of more than :data:`MOST` those
    are the last ones, and the one that lateness costs least.
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
    """Return hand-ins in the order in which they are worth keeping.

    The newest comes first, then the last one of each share that lateness leaves, then the others,
    the newest first.
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
    """Return which of several hand-ins counts and what became of the others; else nothing.

    Args:
        found: all hand-ins of a learner to a lab, in the order of time; one of them stands.
        you: whether the learner reads it.
    """
    if len(found) < 2:
        return ""
    often = TIMES.get(len(found), f"{len(found)} times")
    handed = f"You handed in {often}" if you else f"Handed in {often}"
    [one] = [one for one in found if one.stands]
    if rule is HandInRule.LAST and one is found[-1]:
        return f"{handed}: {_named(one)} counts; in this class the last one does."
    others = [_other(other, one, rule) for other in found if other is not one]
    if more := len(others[:-NAMED]):
        rest = "another one does not count" if more == 1 else f"{more} others do not count"
        others = [*others[-NAMED:], rest]
    return f"{handed}: {_named(one)} counts; {'; '.join(others)}."


def _named(hand_in: KnownHandIn) -> str:
    return (
        "the one of an unknown time" if hand_in.at is None else f"the one of {moment(hand_in.at)},"
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
        return f"{named} does not count: the last one in time does"
    if hand_in.counts is not None:
        return f"{named} would have counted {number(hand_in.counts)}"
    return f"{named} was replaced by a later one"


def so_far(file: ClassRules | None, lab: str, student: str, found: Sequence[HandInTime]) -> str:
    """Return which of several hand-ins counts before they are graded, for the learner; or nothing.

    It is empty where there is one, or no rules say which counts.
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
    return f"You handed in {often}: {which} counts: grading shows which is worth more."


def would_be(
    file: ClassRules | None,
    lab: str,
    student: str,
    before: datetime | None,
    now: datetime,
) -> str:
    """Return what one more hand-in at a time would mean for the newest one, in a sentence.

    Args:
        before: when the newest one came, with a time zone.
    """
    if file is None or lab not in file.labs:
        return "This one takes its place."
    late = lateness_at(file, lab, student, now, {})
    then = lateness_at(file, lab, student, before, {})
    own = f"This one comes {days(late.days)} late" if late.days else "This one comes in time"
    if not late.days or (late.kept, late.free) == (then.kept, then.free):
        return f"{own}, and takes its place."
    if file.hand_in_rule(lab) is HandInRule.LAST:
        return f"{own}, {_share(late)}, and takes its place: in this class the last one counts."
    if file.hand_in_rule(lab) is HandInRule.LAST_IN_TIME:
        place = "the last one counts" if then.days else "the last one in time counts"
        return f"{own}: {place}."
    if not late.kept:
        return f"{own}, and counts nothing any more: the earlier one stays."
    return f"{own}, {_share(late)}: the one that counts more will count."


def _share(late: Lateness) -> str:
    if not late.kept:
        return "so nothing of it counts"
    return f"so {percent(late.kept)} of what it earns counts" if late.kept < 1 else "at no cost"


def is_late(file: ClassRules | None, lab: str, student: str, at: datetime) -> bool:
    """Return whether a hand-in of a time is late; without rules for the lab none is."""
    deadline = file.deadline(lab, student) if file else None
    return deadline is not None and deadline.is_late(at)


def in_zone(file: ClassRules | None, at: datetime | None) -> datetime | None:
    """Return a time as the class's clock shows it."""
    return at and at.astimezone(file.zone if file else UTC)
