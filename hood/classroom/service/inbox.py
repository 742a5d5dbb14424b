"""Receipts for what learners hand in to the service, and what one more hand-in would mean."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hood.atomic_files import read_once
from hood.classroom.hand_ins.store import HandIns, Taken
from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.sentences import moment
from hood.classroom.rules.standing import in_zone, is_late, so_far, would_be
from hood.grader.course import Course
from hood.grader.submission.notebook import MAX_BYTES
from hood.lab_words import BLANK

# What stands in an answer that nobody has begun, as JSON writes it.
IN_JSON = tuple(json.dumps(blank)[1:-1].encode() for blank in BLANK)


@dataclass(frozen=True)
class Receipt:
    """What a learner gets for a submission.

    Attributes:
        sha256: of the notebook's bytes, in hexadecimal.
        late: whether the class's due date, with its grace, was over.
        said: what this hand-in means where there was one before, in a sentence; else empty.
        blank: how many answers are as they were released.
    """

    lab: str
    received: datetime  # in UTC
    bytes: int
    sha256: str
    late: bool
    said: str = ""
    blank: int = 0


@dataclass(frozen=True)
class Again:
    """What one more hand-in would mean now.

    Attributes:
        said: that there is one already and what would become of it, in sentences.
        late: whether the new one would come late.
    """

    said: str
    late: bool


class Inbox:
    """Takes in what comes by way of the service, and gives receipts."""

    def __init__(self, course: Course):
        self._course = course
        self._store = HandIns(course)
        self.arriving, self.finish = self._store.arriving, self._store.finish

    def take(self, rules: ClassRules | None, learner: str, lab: str, arrived: Path) -> Receipt:
        """Store a notebook, which is moved from ``arrived``, as a learner's newest hand-in.

        Raises TooManyError.
        """
        before, blank = self._store.newest(learner, lab), _blank(arrived)
        taken = self._store.take(rules, learner, lab, arrived)
        said = ""
        if taken.again:
            said = f"It is the same as what you handed in {_on(rules, taken.at)}, which stands."
        elif before:
            said = self.so_far(rules, learner, lab)
            said = said or f"It takes the place of the one {_on(rules, before.at)}."
        return _receipt(rules, learner, lab, taken, blank, said)

    def newest(self, rules: ClassRules | None, learner: str, lab: str) -> Receipt | None:
        """Return the receipt of a learner's newest submission; None without one."""
        if taken := self._store.newest(learner, lab):
            path = self._course.folder("submitted", learner, lab) / f"{lab}.ipynb"
            return _receipt(rules, learner, lab, taken, _blank(path))
        return None

    def so_far(self, rules: ClassRules | None, learner: str, lab: str) -> str:
        """Return which of several hand-ins counts before they are graded; else nothing."""
        came = [one.came for one in self._store.of(learner, lab)]
        return so_far(rules, lab, learner, came)


def again(rules: ClassRules | None, learner: str, newest: Receipt, now: datetime) -> Again:
    """Return what one more hand-in than the newest one would mean at a time."""
    lab, late = newest.lab, ", late" if newest.late else ""
    means = would_be(rules, lab, learner, newest.received, now)
    said = f"You handed in {lab} {_on(rules, newest.received)}{late}. {means}"
    return Again(said, is_late(rules, lab, learner, now))


def _receipt(
    rules: ClassRules | None, learner: str, lab: str, one: Taken, blank: int, said: str = ""
) -> Receipt:
    late = is_late(rules, lab, learner, one.at)
    return Receipt(lab, one.at, one.bytes, one.sha256, late, said, blank)


def _on(rules: ClassRules | None, at: datetime) -> str:
    shown = in_zone(rules, at) or at
    return f"on {moment(shown)} ({rules.course.time_zone if rules else 'UTC'})"


@read_once
def _blank(path: Path) -> int:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES)
    return sum(data.count(blank) for blank in IN_JSON)
