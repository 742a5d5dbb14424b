"""Find the state of a lab for a learner: its release, the learner's hand-in, and the marks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from hood import UserError
from hood.classroom.gradebook.graded import Graded, Request, Results
from hood.classroom.results.counted_marks import CountedMarks
from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.standing import hand_ins_sentence
from hood.classroom.service.inbox import Again, Inbox, Receipt, again
from hood.grader.course import Course
from hood.grader.submission.names import nfc


@dataclass(frozen=True)
class LabState:
    """A lab as one learner sees it.

    Attributes:
        name: the lab's folder.
        due: the learner's due date without the grace; None if there is no due date.
        zone: the class's time zone, in which all times are given.
        received: the receipt for the newest hand-in; None without a hand-in.
        hand_ins: a sentence on which of several hand-ins counts; empty if there is at most one.
        again: what would happen if the learner handed in again now; None before the first hand-in.
        points: the counted points, as the feedback page shows them; None without such a page.
        most: the maximum of the points.
        final: whether every exercise has its mark.
    """

    name: str
    due: datetime | None = None
    zone: str = "UTC"
    received: Receipt | None = None
    points: float | None = None
    most: float | None = None
    final: bool = False
    again: Again | None = None
    hand_ins: str = ""


def is_out(rules: ClassRules | None, lab: str, now: datetime) -> bool:
    """Return whether learners may have a lab; without a ``course.yml`` they may have all labs."""
    return rules is None or (lab in rules.labs and not rules.is_too_early(lab, now))


def feedback_page(course: Course, learner: str, lab: str) -> Path | None:
    """Return the path of a learner's feedback page; None if there is no page yet."""
    path = course.folder("feedback", nfc(learner), lab) / f"{lab}.html"
    return path if path.is_file() else None


def requests_in(
    course: Course, lab: str, only: Collection[str] | None = None
) -> list[tuple[Graded, Request]]:
    """Return the requests for a regrade in a graded lab; empty before grading.

    Args:
        only: the learners whose requests are returned; by default, all learners.
    """
    try:
        return list(Results(course, lab).requests(only))
    except UserError:  # nothing is graded yet
        return []


def by_clock(rules: ClassRules | None, receipt: Receipt) -> Receipt:
    """Return a receipt with its time in the class's time zone; without rules, in UTC."""
    zone = rules.zone if rules else UTC
    return replace(receipt, received=receipt.received.astimezone(zone))


def lab_states(
    course: Course, rules: ClassRules | None, inbox: Inbox, learner: str, labs: Collection[str]
) -> list[LabState]:
    """Return the state of labs for a learner. Marks are included if a feedback page exists."""

    @cache  # one lab's points can depend on all labs, so this object is made once
    def marks() -> CountedMarks | None:
        return CountedMarks(course, rules, nfc(learner)) if rules else None

    return [_lab_state(course, rules, inbox, learner, lab, marks) for lab in labs]


def _lab_state(
    course: Course,
    rules: ClassRules | None,
    inbox: Inbox,
    learner: str,
    lab: str,
    marks: Callable[[], CountedMarks | None],
) -> LabState:
    deadline, zone = (rules.deadline(lab, learner), rules.zone.key) if rules else (None, "UTC")
    so_far = inbox.so_far(rules, learner, lab)
    state = LabState(lab, deadline.due if deadline else None, zone, hand_ins=so_far)
    if newest := inbox.newest(rules, learner, lab):
        more = again(rules, learner, newest, datetime.now(UTC))
        state = replace(state, received=by_clock(rules, newest), again=more)
    if feedback_page(course, learner, lab) is None:
        return state
    try:
        counts = marks()
        if counts and lab in counts.file.labs:
            [(one, counted)] = counts.read(lab, [nfc(learner)])
            said = hand_ins_sentence(counts.hand_ins(lab, one), counts.file.hand_in_rule(lab))
            state = replace(state, hand_ins=said)
            found = counted.counts, counted.most, counted.is_final
        else:
            [one] = Results(course, lab).read(only=[nfc(learner)])
            most = sum(cell.points for cell in one.cells.values())
            found = one.points, most, not (one.waiting or one.lost or one.unmarked)
    except (UserError, ValueError):  # the grades were removed after the page was made
        return state
    points, most, final = found
    return replace(state, points=points, most=most, final=final)
