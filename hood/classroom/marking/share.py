"""Find the answers that a person should mark, if ``course.yml`` divides the work by sections.

A share is not an access right: everybody who may mark may see and mark all answers.
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
    """One person's share of the class. If no section names the person, the share is everybody.

    Attributes:
        sections: the sections that name this person as a grader.
        others: the learners whom other graders mark. A learner who has no section, or whose section
            has no grader, is in everybody's share.
        members: the learners of the class. The answers of people outside the class are not shown.
        problem: why the work can't be divided; empty if there is no problem.
    """

    sections: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    members: ClassList = EVERYBODY
    problem: str = ""

    def has(self, student: str) -> bool:
        """Return whether a learner's answers are in this person's share."""
        return student not in self.others

    @property
    def words(self) -> str:
        """The sections as text, such as ``sections A and C``; empty if the work is not divided."""
        *some, last = self.sections or ("",)
        return f"sections {', '.join(some)} and {last}" if some else f"section {last}" * bool(last)


def share_of(root: Path, names: Collection[str]) -> Share:
    """Return a person's share in a course folder.

    Args:
        names: names that the sections may use for this person.
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
