"""``python -m grader course``: what ``course.yml`` means, the roster, ids, and what counts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Gradebook

from grader import UserError
from grader.course import Course, open_course
from grader.phase_paths import ROOT, lab_named
from grader.results.coursefile.exports import PLACES, WRITERS, Entry, Kind
from grader.results.coursefile.marks import CountedMarks, times_by_student
from grader.results.coursefile.reading import (
    FILE,
    exercises_of,
    other_id,
    read_course_file,
)
from grader.results.coursefile.rename import rename
from grader.results.coursefile.roster import Member, enter_roster, read_roster, roster_table
from grader.results.coursefile.schema import CourseFile, Roster
from grader.results.coursefile.sentences import free_sentences, lab_sentences, no_time_sentence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m grader course``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("check", help=f"say what {FILE} means, and who of the class is unknown")
    actions.add_parser("roster", help="enter the class in the gradebook, and say what changed")
    renaming = actions.add_parser("rename", help="give a learner another id, with all their work")
    renaming.add_argument("old", metavar="OLD")
    renaming.add_argument("new", metavar="NEW")
    export = actions.add_parser("export", help="write what counts, for a learning platform")
    export.add_argument("lab", nargs="*", help=f"labs: 01_tensors, 01 or tensors (all of {FILE})")
    export.add_argument("--to", type=Kind, choices=list(Kind), required=True)
    places = ", ".join(f"{place} for {kind}" for kind, place in PLACES.items())
    export.add_argument("--out", type=Path, help=f"where to write (default: {places})")


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Run one of the actions; 1 where ``check`` finds something that nobody may have meant.

    Raises:
        UserError: when there is no ``course.yml``, or something is wrong in it.
    """
    if args.action == "rename":
        return _rename(open_course(root), args.old, args.new)
    file = read_course_file(root)
    if file is None:
        raise UserError(f"there is no {root / FILE}; TEACHING.md shows one")
    course = open_course(root)
    if args.action == "check":
        return _check(course, file)
    if args.action == "roster":
        return _roster(course, file)
    return _export(course, file, [lab_named(root, word) for word in args.lab], args.to, args.out)


def _rename(course: Course, old: str, new: str) -> int:
    from grader.batch.command import only_one  # here, because no other action is so slow to load

    with only_one(course):
        for line in rename(course, old, new):
            print(line)
    return 0


def _check(course: Course, file: CourseFile) -> int:
    about = file.course
    print(f"{about.title or course.root.name}; times are those of {about.time_zone}.")
    if about.id:
        print(f"Learners fetch and submit under the course id {about.id}.")
    if about.lesson_url:
        print(f"Links to lessons lead to {about.lesson_url}.")
    for sentence in free_sentences(file):
        print(sentence)
    for name, group in file.sections.items():
        if group.graders:
            print(
                f"The answers in words of section {name} are marked by {', '.join(group.graders)}."
            )
    for lab in file.labs:
        print(f"\n{lab}")
        for sentence in lab_sentences(file, lab, exercises_of(course.root, lab) or {}):
            print(f"  {sentence}")
    members = read_roster(course.root, file)
    found = list(_doubtful(course, file, members))
    if members and file.roster:
        print(f"\n{len(members)} learners in {file.roster.file}.")
        _say_how_it_was_read(course, file.roster)
    for line in found:
        print(f"? {line}")
    return 1 if found else 0


def _doubtful(course: Course, file: CourseFile, members: dict[str, Member]) -> Iterator[str]:
    """Yield what may be a slip: learners that one list has and another has not."""
    known = set(members)
    if problem := other_id(course.root, file, course.directory.course_id):
        yield problem
    if course.has_gradebook:
        with Gradebook(course.directory.db_url) as gradebook:
            entered = {student.id for student in gradebook.students}
            own = {
                (one.student_id, lab.name)
                for lab in gradebook.assignments
                if lab.name in file.labs
                for one in lab.submissions
                if one.extension
            }
        for student in sorted(entered - known if members else ()):
            yield f"{student} is in the gradebook, and not in the roster"
        for student in sorted(known - entered):
            yield f"{student} is in the roster, and not in the gradebook: `course roster` enters it"
        for student, lab in sorted(own):
            yield (
                f"{student} has an extension of {lab} in the gradebook; by {FILE} only its own "
                "`extensions` hold"
            )
        known |= entered
    for one in file.extensions:
        if one.who not in known:
            yield f"{one.who}, who has an extension of {one.lab}, is nobody's id"
    times = times_by_student(course, list(file.labs)) if course.has_gradebook else {}
    for lab in file.labs:
        came = [of_labs[lab] for of_labs in times.values() if lab in of_labs]
        if said := no_time_sentence(file, lab, came.count(None), len(came)):
            yield f"{lab}: {said}"
        for student in course.students("submitted", lab):
            if members and student not in members:
                yield f"{student} handed {lab} in, and is not in the roster"


def _roster(course: Course, file: CourseFile) -> int:
    if file.roster is None:
        raise UserError(f"{FILE} names no roster: give it `roster: {{file: ..., id: ...}}`")
    members = read_roster(course.root, file)
    _say_how_it_was_read(course, file.roster)
    changed = list(enter_roster(course, members))
    for line in changed:
        print(line)
    lines = "1 line" if len(changed) == 1 else f"{len(changed) or 'no'} lines"
    print(f"{len(members)} learners; {lines} to read above.")
    return 0


def _say_how_it_was_read(course: Course, roster: Roster) -> None:
    if note := roster_table(course.root, roster)[0].note:
        print(f"{note}; `encoding` in `roster` names another, such as windows-1250.")


def entries(course: Course, file: CourseFile, labs: list[str], now: datetime) -> Iterator[Entry]:
    """Yield every learner of the class in every lab, with what counts where it was graded."""
    counted, members = CountedMarks(course, file), _entered(course)
    for student, one in read_roster(course.root, file).items():
        known = members.get(student, one)
        members[student] = replace(known, **{k: v for k, v in asdict(one).items() if v})
    for lab in labs:
        graded = {one.student: (one, what) for one, what in counted.read(lab)}
        for student, member in members.items():
            found, what = graded.get(student, (None, None))
            shown = file.shows("misconceptions", lab, student, now)
            yield Entry(member, lab, found, what, shown)


def _entered(course: Course) -> dict[str, Member]:
    """Return the gradebook's students: those that a roster does not have are exported, too."""
    with Gradebook(course.directory.db_url) as gradebook:
        return {
            one.id: Member(one.id, one.first_name or "", one.last_name or "", one.email or "")
            for one in gradebook.students
        }


def _export(course: Course, file: CourseFile, labs: list[str], to: Kind, out: Path | None) -> int:
    if unknown := [lab for lab in labs if lab not in file.labs]:
        raise UserError(f"{FILE} has no lab {', '.join(unknown)}; it has: {', '.join(file.labs)}")
    chosen = labs or [lab for lab in file.labs if course.students("autograded", lab)]
    if not chosen:
        raise UserError("no lab has been graded yet")
    found, path = (
        list(entries(course, file, chosen, datetime.now(UTC))),
        out or course.root / PLACES[to],
    )
    WRITERS[to](file, found, path)
    without = sum(one.score == "" for one in found)
    print(f"{path}: {len(found)} marks of {', '.join(chosen)}; {without} without a score yet.")
    return 0
