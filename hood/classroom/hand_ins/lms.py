"""Find the learner to whom a file from Moodle or Canvas belongs.

The LMS puts its own text before the learner's file name. An example from Moodle, with the
participant's number, is ``Full Name_1234567_assignsubmission_file_lab.ipynb``. An example from
Canvas, with the numbers of user and file, is ``lastfirst_LATE_17_4711_lab.ipynb``. In a path,
the first part with such a form identifies the learner. The learner must be a student in the
gradebook. If the gradebook or a table of the LMS contains the number, the number identifies the
student. Otherwise the name identifies the student, if only one student has this name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nbgrader.api import Student

from hood.classroom.formats.tables import Table
from hood.grader.submission.names import nfc

MOODLE = re.compile(r"([^_]*)(?:_(\d+))?_assignsubmission_[a-z]+(?:_(.*))?", re.DOTALL)
# Every match of `_17_4711_lab.ipynb`, or of `anon_aB3_4711_lab.ipynb` if Canvas hides names.
CANVAS = re.compile(r"(?=(?:_(\d+)|(?:^|_)(anon_[^\W_]+))_\d+_(.+))", re.DOTALL)
LATE = "_LATE"
# Columns that identify a learner, in Moodle's grading worksheet and in Canvas's gradebook, each
# with a second column that must exist too.
NUMBERS = {"Identifier": "Full name", "ID": "Student"}
KEYS = ("ID number", "Email address", "Username", "SIS User ID", "SIS Login ID")


@dataclass(frozen=True)
class LmsName:
    """One way to read a file name from an LMS."""

    name: str  # the learner's name in the LMS
    number: str  # the LMS's number; empty for some groups in Moodle
    file: str  # the learner's file name; empty if this is a folder's name
    canvas: bool = False  # whether the name has Canvas's form, with the user's number
    late: bool = False  # whether Canvas calls the hand-in late


def lms_names(part: str) -> list[LmsName]:
    """Return all ways to read a file's or folder's name as a name from an LMS, possibly none.

    The first reading is the correct one, unless a learner's name on Canvas contains numbers.
    """
    part = nfc(part)
    moodle = MOODLE.fullmatch(part)
    names = [LmsName(moodle[1], moodle[2] or "", moodle[3] or "")] if moodle else []
    for one in CANVAS.finditer(part):
        name, late = part[: one.start()].removesuffix(LATE), part[: one.start()].endswith(LATE)
        names.append(LmsName(name, one[1] or one[2], one[3], canvas=True, late=late))
    return names


class Unmatched(Exception):
    """No student, or more than one student, matches a file's name; the message gives the reason."""


class Enrolled:
    """The gradebook's students, and their numbers, ids and addresses in the LMS's tables."""

    def __init__(self, students: Sequence[Student]):
        self.keys: dict[str, set[str]] = defaultdict(set)  # ids and addresses, by number
        self._by_key: dict[str, set[str]] = defaultdict(set)
        self._by_name: dict[str, set[str]] = defaultdict(set)
        self._by_user: dict[str, set[str]] = defaultdict(set)
        self._has_user = {student.id for student in students if student.lms_user_id}
        for student in students:
            self._by_user[student.lms_user_id or ""].add(student.id)
            for key in filter(None, (student.id, student.email)):
                self._by_key[nfc(key).casefold()].add(student.id)
            first, last = student.first_name or "", student.last_name or ""
            if first and last:
                for name in (first + last, last + first):  # the order depends on the language
                    self._by_name[_squeezed(name)].add(student.id)
        self._by_name.pop("", None)

    def add_table(self, table: Table) -> bool:
        """Read Moodle's grading worksheet or Canvas's gradebook; ignore any other table.

        Return whether the table is one of these two.
        """
        known = [one for one, beside in NUMBERS.items() if {one, beside} <= {*table.columns}]
        for column in known:
            for _, cells in table.rows:
                number = re.search(r"\d+$", cells[column])
                found = {cells[key] for key in KEYS if cells.get(key)}
                if number and found:
                    self.keys[number[0]] |= found
        return bool(known)

    def owner(self, found: Sequence[LmsName], stems: Sequence[str]) -> tuple[str, bool]:
        """Return the only student who matches a file's name, and whether the number matched.

        Raises Unmatched when no student matches, or when several students match.

        Args:
            found: all ways to read the file's name.
            stems: the beginnings of the names of the lab's notebooks. These beginnings show where
                the LMS's numbers end.
        """
        one = found[0]
        if len(found) > 1 and not one.file.startswith(tuple(stems)):
            raise Unmatched(
                "the file's name can be read in several ways, and does not contain the lab's file "
                "name"
            )
        numbered = set(self._numbered(one))
        students = numbered or set(self._named(one))
        if len(students) > 1:
            raise Unmatched(f"the file may belong to {' or '.join(sorted(students))}")
        for student in students:
            return student, bool(numbered)
        if one.number in self.keys:
            raise Unmatched(
                f"the LMS's table has an id or address for the number {one.number} in the file's "
                "name, but no student in the gradebook has this id or address"
            )
        raise Unmatched("no student in the gradebook has the number or the name in the file's name")

    def _numbered(self, one: LmsName) -> Iterable[str]:
        if one.canvas:
            yield from self._by_user.get(one.number, ())
        for key in self.keys.get(one.number, ()):
            yield from self._by_key.get(nfc(key).strip().casefold(), ())
            if not one.canvas:
                yield from self._by_user.get(key, ())

    def _named(self, one: LmsName) -> Iterable[str]:
        if one.number not in self.keys:  # if a table has the number, the name is not needed
            for student in self._by_name.get(_squeezed(one.name), ()):
                # a student with a known Canvas number did not match this number
                if not (one.canvas and student in self._has_user):
                    yield student


def _squeezed(name: str) -> str:
    """Return only the letters and digits of a name, because LMSs drop other characters."""
    return "".join(c for c in nfc(name).casefold() if unicodedata.category(c)[0] in "LMN")
