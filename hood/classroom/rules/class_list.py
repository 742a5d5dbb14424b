"""Decide who belongs to the class and who is skipped, from the roster and from ``left:``.

If there is a roster, the learners in it are the class. Without a roster, everybody who hands
something in belongs to the class. In both cases, learners in ``left:`` are skipped. All lists,
tables and pages use this module, so that they agree. No work of a skipped learner is deleted. If
the learner is added to the roster, or removed from ``left:``, all their work is shown again.
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
    """The list of the class in one course folder.

    Attributes:
        left: the ids of learners who left the class.
        members: the ids in the roster. Without a roster it is None, and everybody belongs to the
            class.
        roster: the path of the roster's file, as written in ``course.yml``.
    """

    left: frozenset[str] = frozenset()
    members: frozenset[str] | None = None
    roster: str = ""

    def why_not(self, student: str) -> str:
        """Return why a learner is skipped; empty if the learner belongs to the class."""
        if (name := nfc(student)) in self.left:
            return f"left, according to {FILE}"
        outside = self.members is not None and name not in self.members
        return f"not in {self.roster}" if outside else ""

    def passed_over(self, students: Iterable[str]) -> dict[str, str]:
        """Return which of these learners are skipped, sorted, each with the reason."""
        return {student: why for student in sorted(students) if (why := self.why_not(student))}

    def without_others(self, students: Iterable[str]) -> list[str]:
        """Return which of these learners belong to the class, in the same order."""
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
    """Return who belongs to the class, according to the rules in ``file``.

    Raises:
        UserError: when something is wrong in the roster.
    """
    left = frozenset(map(nfc, file.left))
    if file.roster is None:
        return ClassList(left)
    return ClassList(left, frozenset(read_roster(root, file)), file.roster.file)


def passed_over_sentence(found: dict[str, str]) -> str:
    """Return a sentence on who is skipped and why; empty if nobody is skipped.

    Args:
        found: the reasons, keyed by learner, from :meth:`ClassList.passed_over`.
    """
    if not found:
        return ""
    named = [f"{shown_id(student)} ({why})" for student, why in list(found.items())[:NAMED]]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"Skipped: {', '.join(named)}{more}. None of their work was deleted."
