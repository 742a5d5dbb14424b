"""What a learner is told of a lab: whether it is out, what came in, and later the marks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from grader import UserError
from grader.course import Course
from grader.results.coursefile.marks import told as told_of
from grader.results.coursefile.schema import CourseFile
from grader.results.gradebook import Graded, Request, Results
from grader.service.inbox import Again, Inbox, Receipt, again
from grader.submission.names import nfc


@dataclass(frozen=True)
class LabState:
    """A lab as one learner sees it.

    Attributes:
        due: until when this learner may hand it in; None where there is no such time.
        received: the receipt of what was handed in last.
        hand_ins: which of several hand-ins counts, in a sentence; else empty.
        again: what one more hand-in would mean now; None before the first one.
        points: what counts, as feedback says; None before there is feedback.
        most: what it is of.
        final: whether all of it is marked.
    """

    name: str
    due: datetime | None = None
    received: Receipt | None = None
    points: float | None = None
    most: float | None = None
    final: bool = False
    again: Again | None = None
    hand_ins: str = ""


def is_out(rules: CourseFile | None, lab: str, now: datetime) -> bool:
    """Return whether learners have a lab; without a ``course.yml`` they have all."""
    return rules is None or (lab in rules.labs and not rules.is_too_early(lab, now))


def feedback_page(course: Course, learner: str, lab: str) -> Path | None:
    """Return the page of feedback that was made for a learner; None where there is none yet."""
    path = course.folder("feedback", nfc(learner), lab) / f"{lab}.html"
    return path if path.is_file() else None


def requests_in(
    course: Course, lab: str, only: Collection[str] | None = None
) -> list[tuple[Graded, Request]]:
    """Return the requests for a regrade in a lab as it was graded; none before that.

    Args:
        only: the learners who are asked for; by default all.
    """
    try:
        return list(Results(course, lab).requests(only))
    except UserError:  # nothing is graded yet
        return []


def lab_state(
    course: Course, rules: CourseFile | None, inbox: Inbox, learner: str, lab: str
) -> LabState:
    """Return a lab as a learner sees it. Marks are shown when there is a page of feedback."""
    due = rules.due(lab, learner) if rules and lab in rules.labs else None
    state = LabState(lab, due, hand_ins=inbox.so_far(rules, learner, lab))
    if newest := inbox.newest(rules, learner, lab):
        more = again(rules, learner, newest, datetime.now(UTC))
        state = replace(state, received=newest, again=more)
    if feedback_page(course, learner, lab) is None:
        return state
    try:
        said = told_of(course.root, lab, learner, datetime.now(UTC))
        if counted := said.counted:
            state = replace(state, hand_ins=said.hand_ins)
            found = counted.counts, counted.most, counted.is_final
        else:
            [one] = Results(course, lab).read(only=[nfc(learner)])
            most = sum(cell.points for cell in one.cells.values())
            found = one.points, most, not (one.waiting or one.lost or one.unmarked)
    except (UserError, ValueError):  # the grades were taken away after the page was made
        return state
    points, most, final = found
    return replace(state, points=points, most=most, final=final)
