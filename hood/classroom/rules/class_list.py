"""Who belongs to the class, and who is passed over: by the roster, and by ``left:``.

A roster, where there is one, is the class; without one, everybody who hands something in belongs to
it. Who left is passed over in both cases. All lists, tables and pages ask here, so they agree.
Nothing of a learner who is passed over is deleted: a line in the roster, or one less below
``left:``, brings it all back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hood.classroom.rules.reading import FILE, read_course_file
from hood.classroom.rules.roster import read_roster
from hood.classroom.rules.schema import ClassRules
from hood.grader.submission.names import nfc, shown_id

NAMED = 20  # learners in a sentence


@dataclass(frozen=True)
class ClassList:
    """The class of one course folder.

    Attributes:
        left: ids of those who left.
        members: ids in the roster; None without one, where everybody belongs to the class.
        roster: the roster's file, as ``course.yml`` names it.
    """

    left: frozenset[str] = frozenset()
    members: frozenset[str] | None = None
    roster: str = ""

    def why_not(self, student: str) -> str:
        """Return why a learner is passed over; empty for one who belongs to the class."""
        if (name := nfc(student)) in self.left:
            return f"left, says {FILE}"
        outside = self.members is not None and name not in self.members
        return f"not in {self.roster}" if outside else ""

    def passed_over(self, students: Iterable[str]) -> dict[str, str]:
        """Return which of some learners are passed over, sorted, and why."""
        return {student: why for student in sorted(students) if (why := self.why_not(student))}

    def without_others(self, students: Iterable[str]) -> list[str]:
        """Return those of some learners who belong to the class, in the same order."""
        return [student for student in students if not self.why_not(student)]


EVERYBODY = ClassList()


def class_list(root: Path) -> ClassList:
    """Return who belongs to the class of a course folder; everybody without a ``course.yml``.

    Raises:
        UserError: when something is wrong in ``course.yml``, or in the roster that it names.
    """
    file = read_course_file(root)
    return class_list_of(root, file) if file else EVERYBODY


def class_list_of(root: Path, file: ClassRules) -> ClassList:
    """Return who belongs to a class by its rules.

    Raises:
        UserError: when something is wrong in the roster.
    """
    left = frozenset(map(nfc, file.left))
    if file.roster is None:
        return ClassList(left)
    return ClassList(left, frozenset(read_roster(root, file)), file.roster.file)


def passed_over_sentence(found: dict[str, str]) -> str:
    """Return who is passed over and why, in a sentence; empty for nobody.

    Args:
        found: the reasons by learner, as :meth:`ClassList.passed_over` gives them.
    """
    if not found:
        return ""
    named = [f"{shown_id(student)} ({why})" for student, why in list(found.items())[:NAMED]]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"Passed over: {', '.join(named)}{more}. Nothing of theirs is deleted."
