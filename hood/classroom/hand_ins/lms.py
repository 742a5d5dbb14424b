"""Whose a file is that was downloaded from Moodle or Canvas.

The LMS puts its own words before what a learner chose, so the first part of a path that has its
form decides: ``Full Name_1234567_assignsubmission_file_lab.ipynb`` of Moodle, where the number is
the participant's, or ``lastfirst_LATE_17_4711_lab.ipynb`` of Canvas, with those of user and file. A
learner is a student of the gradebook, found by number where the gradebook or a table of the LMS
knows it, otherwise by a name that only one student has.
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
# At each place: `_17_4711_lab.ipynb`, or `anon_aB3_4711_lab.ipynb` where Canvas hides who it is.
CANVAS = re.compile(r"(?=(?:_(\d+)|(?:^|_)(anon_[^\W_]+))_\d+_(.+))", re.DOTALL)
LATE = "_LATE"
# Columns that say who a row is about: of Moodle's grading worksheet, and of Canvas's gradebook.
NUMBERS = {"Identifier": "Full name", "ID": "Student"}  # and a column that lies beside it
KEYS = ("ID number", "Email address", "Username", "SIS User ID", "SIS Login ID")


@dataclass(frozen=True)
class LmsName:
    """What a name from an LMS says, in one way of reading it."""

    name: str  # the name that the LMS shows of the learner
    number: str  # the LMS's number; empty for a group of Moodle's without one
    file: str  # the learner's name for the file; empty if the name is a folder's
    canvas: bool = False  # whether it is Canvas's form, in which the number is the user's own
    late: bool = False  # whether Canvas says so


def lms_names(part: str) -> list[LmsName]:
    """Return every way to read a file's or folder's name as one from an LMS; none for others.

    The true one is first, unless a learner has put numbers into the name that Canvas shows.
    """
    part = nfc(part)
    moodle = MOODLE.fullmatch(part)
    names = [LmsName(moodle[1], moodle[2] or "", moodle[3] or "")] if moodle else []
    for one in CANVAS.finditer(part):
        name, late = part[: one.start()].removesuffix(LATE), part[: one.start()].endswith(LATE)
        names.append(LmsName(name, one[1] or one[2], one[3], canvas=True, late=late))
    return names


class Unmatched(Exception):
    """No student of the gradebook, or more than one, is the owner; says why."""


class Enrolled:
    """The gradebook's students, and the ids and addresses that tables give the LMS's numbers."""

    def __init__(self, students: Sequence[Student]):
        self.keys: dict[str, set[str]] = defaultdict(set)  # beside each number of a table
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
                for name in (first + last, last + first):  # languages have either order
                    self._by_name[_squeezed(name)].add(student.id)
        self._by_name.pop("", None)

    def add_table(self, table: Table) -> bool:
        """Read Moodle's grading worksheet or Canvas's gradebook; leave any other table alone.

        Return whether it is one of them.
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
        """Return the one student whom a name leads to, by its readings, and whether by number.

        The names of the lab's notebooks begin with ``stems``: before a file that begins so no
        number can be taken for one of the LMS's. Raises Unmatched when it leads to none, or to
        several.
        """
        one = found[0]
        if len(found) > 1 and not one.file.startswith(tuple(stems)):
            raise Unmatched("it can be read in several ways, and its file is not named as the lab")
        numbered = set(self._numbered(one))
        students = numbered or set(self._named(one))
        if len(students) > 1:
            raise Unmatched(f"it may be of {' or '.join(sorted(students))}")
        for student in students:
            return student, bool(numbered)
        if one.number in self.keys:
            raise Unmatched(f"nobody in the gradebook has the id or address of {one.number}'s row")
        raise Unmatched("nobody in the gradebook has its number or its name")

    def _numbered(self, one: LmsName) -> Iterable[str]:
        if one.canvas:
            yield from self._by_user.get(one.number, ())
        for key in self.keys.get(one.number, ()):
            yield from self._by_key.get(nfc(key).strip().casefold(), ())
            if not one.canvas:
                yield from self._by_user.get(key, ())

    def _named(self, one: LmsName) -> Iterable[str]:
        if one.number not in self.keys:  # where a table knows the number, no name does better
            for student in self._by_name.get(_squeezed(one.name), ()):
                if not (one.canvas and student in self._has_user):  # who has another number
                    yield student


def _squeezed(name: str) -> str:
    """Return a name's letters and digits: LMSs leave out different signs between them."""
    return "".join(c for c in nfc(name).casefold() if unicodedata.category(c)[0] in "LMN")
