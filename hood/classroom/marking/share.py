"""Whose answers a person marks, where ``course.yml`` divides the work by sections.

It is a division of work and no access right: everybody who may mark may see and mark all answers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from hood import UserError
from hood.classroom.rules.class_list import EVERYBODY, ClassList, class_list_of
from hood.classroom.rules.reading import read_course_file
from hood.classroom.rules.roster import read_roster


@dataclass(frozen=True)
class Share:
    """What of a class one person marks: all of it where no section names them.

    Attributes:
        sections: that name them as a grader.
        others: the learners whom other graders mark. Whoever is in no section, or in one without a
            grader, is everybody's.
        members: the class. Answers of others are not marked, and not shown.
        problem: why the work can't be divided, or empty.
    """

    sections: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    members: ClassList = EVERYBODY
    problem: str = ""

    def has(self, student: str) -> bool:
        """Return whether a learner's answers are among those that this person marks."""
        return student not in self.others

    @property
    def words(self) -> str:
        """The sections, such as ``sections A and C``; empty where the work is not divided."""
        *some, last = self.sections or ("",)
        return f"sections {', '.join(some)} and {last}" if some else f"section {last}" * bool(last)


def share_of(root: Path, names: Collection[str]) -> Share:
    """Return what somebody marks in a course folder.

    Args:
        names: under which the sections may list this person.
    """
    try:
        file = read_course_file(root)
        graders = {name: one.graders for name, one in file.sections.items()} if file else {}
        own = tuple(name for name, those in graders.items() if not set(those).isdisjoint(names))
        if file is None:
            return Share()
        belong = class_list_of(root, file)
        if not own:
            return Share(members=belong)
        members = read_roster(root, file).values()
    except UserError as error:
        return Share(problem=str(error))
    others = (m.id for m in members if m.section not in own and graders.get(m.section))
    return Share(own, frozenset(others), belong)
