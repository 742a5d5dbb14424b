"""Give receipts for hand-ins to the service, and say what a further hand-in would mean."""

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

# The text of an untouched answer, in JSON.
IN_JSON = tuple(json.dumps(blank)[1:-1].encode() for blank in BLANK)


@dataclass(frozen=True)
class Receipt:
    """The receipt that a learner gets for a hand-in.

    Attributes:
        lab: the name of the lab.
        received: when the submission came.
        bytes: the size of the notebook.
        sha256: the hash of the notebook's bytes, in hexadecimal.
        late: whether the submission came after the learner's due date and its grace.
        said: a sentence about what this hand-in changes; empty for the first hand-in.
        blank: how many answers the learner has not changed since the lab was released.
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
    """What would happen if the learner handed the lab in again now.

    Attributes:
        said: sentences about the earlier hand-in, and about what would happen to it.
        late: whether the new hand-in would be late.
    """

    said: str
    late: bool


class Inbox:
    """Stores hand-ins that come through the service, and gives receipts."""

    def __init__(self, course: Course):
        self._course = course
        self._store = HandIns(course)
        self.arriving, self.finish = self._store.arriving, self._store.finish

    def take(self, rules: ClassRules | None, learner: str, lab: str, arrived: Path) -> Receipt:
        """Move a notebook from the path ``arrived``, and store it as a learner's newest hand-in.

        Raises TooManyError if the learner hands in too often.
        """
        before, blank = self._store.newest(learner, lab), _blank(arrived)
        taken = self._store.take(rules, learner, lab, arrived)
        said = ""
        if taken.again:
            said = f"This notebook is the same as your hand-in {_on(rules, taken.at)}, which stays."
        elif before:
            said = self.so_far(rules, learner, lab)
            said = said or f"It replaces your hand-in {_on(rules, before.at)}."
        return _receipt(rules, learner, lab, taken, blank, said)

    def newest(self, rules: ClassRules | None, learner: str, lab: str) -> Receipt | None:
        """Return the receipt for a learner's newest hand-in; None without a hand-in."""
        if taken := self._store.newest(learner, lab):
            path = self._course.folder("submitted", learner, lab) / f"{lab}.ipynb"
            return _receipt(rules, learner, lab, taken, _blank(path))
        return None

    def so_far(self, rules: ClassRules | None, learner: str, lab: str) -> str:
        """Return a sentence on which of several hand-ins may count; empty for a single hand-in."""
        came = [one.came for one in self._store.of(learner, lab)]
        return so_far(rules, lab, learner, came)


def again(rules: ClassRules | None, learner: str, newest: Receipt, now: datetime) -> Again:
    """Return what a further hand-in at the time ``now`` would mean."""
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
