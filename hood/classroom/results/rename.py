"""``python -m hood course rename OLD NEW``: give a learner another id, with all their work.

Folders are moved first, then the gradebook is changed in one transaction. Until both steps are
done, a file records the two ids. After an interruption, the same command finishes the renaming, and
nothing is graded before that. Marks, verdicts, seeds and times do not depend on an id, so recorded
grades stay valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nbgrader.api import Student, SubmittedAssignment
from sqlalchemy import Connection, insert, inspect, select, update

from hood import UserError
from hood.atomic_files import write_whole
from hood.classroom.gradebook.database import engine_of, errors_in_words, writing
from hood.classroom.gradebook.service_jobs import JOBS
from hood.classroom.hand_ins.store import RECEIVED, HandIns
from hood.classroom.rules.reading import FILE, read_course_file
from hood.classroom.rules.roster import roster_table
from hood.grader.course import Course, submissions
from hood.grader.submission.names import id_problem, nfc

JOURNAL = ".renaming.json"
STEPS = ("submitted", "autograded", "feedback")


def require_no_renaming(root: Path) -> None:
    """Raise UserError if a renaming was interrupted."""
    if begun := _begun(root):
        raise UserError(
            f"the renaming of {begun[0]} to {begun[1]} was interrupted: to finish it, run `python "
            f"-m hood course rename {begun[0]} {begun[1]}` again"
        )


def rename(course: Course, old: str, new: str) -> Iterator[str]:
    """Give a learner another id; yield sentences on what was moved and on what remains to be done.

    The caller makes sure that nobody grades at the same time.

    Raises:
        UserError: when nobody has the old id, or when somebody already has the new id. In both
            cases, nothing is changed.
    """
    old, new = nfc(old), nfc(new)
    if problem := id_problem(new):
        raise UserError(f"{new!a} can't be an id: {problem}")
    if old == new:
        raise UserError(f"expected two different ids, got {old!a} twice")
    begun = _begun(course.root)
    if begun and begun != (old, new):
        require_no_renaming(course.root)
    with HandIns(course).at_rest():
        theirs, taken = _folders(course, old), _folders(course, new)
        known = _ids(course)
        if begun is None and (taken or new in known):
            where = [str(path.relative_to(course.root)) for path in taken]
            where += ["the gradebook"] if new in known else []
            raise UserError(f"the id {new} is already used: it is in {', '.join(where)}")
        if begun is None and not theirs and old not in known:
            raise UserError(
                f"nobody has the id {old}: it is not in the gradebook, and no folder has that name"
            )
        if both := [path for path in theirs if path.with_name(new) in taken]:
            those = ", ".join(str(path.relative_to(course.root)) for path in both)
            raise UserError(
                f"{old} has handed in again since the renaming to {new} was interrupted: merge "
                f"{those} by hand into the folders called {new}, and run the same command again"
            )
        write_whole(course.root / JOURNAL, json.dumps([old, new]).encode())
        for path in theirs:
            path.rename(path.with_name(new))
            yield f"moved {path.relative_to(course.root)} to {new}"
        if old in known:
            for said in _in_gradebook(course, known[old], new):
                yield f"gradebook: {said}"
        (course.root / JOURNAL).unlink()
    yield from _left_to_do(course, old, new)


def _begun(root: Path) -> tuple[str, str] | None:
    try:
        old, new = json.loads((root / JOURNAL).read_text())
    except FileNotFoundError:
        return None
    return old, new


def _folders(course: Course, student: str) -> list[Path]:
    """Return the folders whose name is a learner's id, spelled as on the disk."""
    found = set((course.root / RECEIVED).glob("*/*"))
    for step in STEPS:
        name = getattr(course.directory, f"{step}_directory")
        for paths in submissions(course.directory, "*", [student], name).values():
            for path in paths:
                parts = path.relative_to(course.root).parts
                place = next(n for n, part in enumerate(parts) if n and nfc(part) == student)
                found.add(course.root.joinpath(*parts[: place + 1]))
    return sorted(path for path in found if nfc(path.name) == student)


def _ids(course: Course) -> dict[str, str]:
    """Return the ids in the gradebook, keyed by their NFC form; empty without a gradebook."""
    if not course.has_gradebook:
        return {}
    engine = engine_of(course.directory.db_url)
    with errors_in_words(course, "Nothing was renamed"), engine.connect() as connection:
        return {nfc(student): student for student in connection.scalars(select(Student.id))}


def _in_gradebook(course: Course, old: str, new: str) -> list[str]:
    then = f"The folders of {old} are already renamed to {new}: run the same command again"
    with (
        errors_in_words(course, then),
        writing(engine_of(course.directory.db_url)) as connection,
    ):
        return list(_renamed(connection, old, new))


def _renamed(connection: Connection, old: str, new: str) -> Iterator[str]:
    students = Student.__table__
    row = connection.execute(select(students).where(students.c.id == old)).mappings().one()
    connection.execute(insert(students).values({**row, "id": new}))
    of_them = SubmittedAssignment.student_id == old
    changed = connection.execute(
        update(SubmittedAssignment).where(of_them).values(student_id=new)
    ).rowcount
    connection.execute(students.delete().where(students.c.id == old))
    yield f"{old} is now {new}, with {changed} submission{'' if changed == 1 else 's'} and marks"
    if inspect(connection).has_table(JOBS.name):
        asked = connection.execute(
            update(JOBS).where(JOBS.c.learner == old).values(learner=new)
        ).rowcount
        if asked:
            yield f"{asked} verdict{'' if asked == 1 else 's'} of the service"


def _left_to_do(course: Course, old: str, new: str) -> Iterator[str]:
    named = re.compile(rf"(?<![\w.@+-]){re.escape(old)}(?![\w@+-]|\.\w)")
    with suppress(FileNotFoundError):
        text = (course.root / FILE).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if named.search(line):
                yield f"{FILE}:{number} still names {old}: write {new} there"
    try:
        file = read_course_file(course.root)
        if file and file.roster:
            table, columns = roster_table(course.root, file.roster)
            for row in table.rows:
                if row.cells[columns["id"]] == old:
                    yield f"{file.roster.file}:{row.line} still lists {old}: write {new} there"
    except UserError as error:
        yield f"the roster could not be searched for {old}: {error}"
    yield (
        f"a later hand-in under the id {old} would count as another learner's: make sure that the "
        f"learner's account, or the LMS, uses the id {new}. If the learner has a token of the "
        "service, give them a new token. New reports and exports have the new id, and a new "
        "pseudonym"
    )
