"""``python -m hood course``: check ``course.yml``, enter the roster, rename ids, export marks."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Gradebook

from hood import UserError
from hood.classroom.gradebook.run_lock import lock_grades
from hood.classroom.results.counted_marks import CountedMarks, times_by_student
from hood.classroom.results.exports import PLACES, WRITERS, ClassMarks, Entry, Kind
from hood.classroom.results.rename import rename
from hood.classroom.results.term import totals
from hood.classroom.rules.class_list import class_list_of, passed_over_sentence
from hood.classroom.rules.reading import FILE, exercises_of, other_id, read_course_file, worths
from hood.classroom.rules.roster import (
    Member,
    moodle_users,
    read_roster,
    roster_table,
)
from hood.classroom.rules.schema import ClassRules, Roster
from hood.classroom.rules.sentences import free_sentences, lab_sentences, no_time_sentence
from hood.classroom.rules.total import weights_of
from hood.classroom.rules.total_words import total_sentences
from hood.grader.course import Course, open_course
from hood.phase_paths import ROOT, lab_named
from hood.verdict import in_points

# The fields of nbgrader's Student, and our fields that fill them.
FIELDS = {
    "first_name": "first_name",
    "last_name": "last_name",
    "email": "email",
    "lms_user_id": "canvas",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m hood course``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("check", help=f"explain {FILE} in sentences, and list possible mistakes")
    actions.add_parser("roster", help="add the class to the gradebook, and print what changed")
    renaming = actions.add_parser(
        "rename", help="give a learner another id, and move all their work and marks to it"
    )
    renaming.add_argument("old", metavar="OLD", help="the id that the learner has")
    renaming.add_argument("new", metavar="NEW", help="the id that the learner gets")
    export = actions.add_parser(
        "export", help="write the points that count into files for a learning platform"
    )
    words = f"labs, such as 01_tensors, 01 or tensors (default: all graded labs of {FILE})"
    export.add_argument("lab", nargs="*", help=words)
    words = "the platform that the files are for; `total` writes the total of the term"
    export.add_argument("--to", type=Kind, choices=list(Kind), required=True, help=words)
    places = ", ".join(f"{place} for {kind}" for kind, place in PLACES.items())
    export.add_argument("--out", type=Path, help=f"the file or folder to write (default: {places})")


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Run one of the actions; return 1 if ``check`` finds a likely mistake.

    Raises:
        UserError: when there is no ``course.yml``, or it has an error.
    """
    if args.action == "rename":
        return _rename(open_course(root), args.old, args.new)
    file = read_course_file(root)
    if file is None:
        raise UserError(f"no file {root / FILE}; docs/how-to/rules.md shows an example")
    course = open_course(root)
    if args.action == "check":
        return _check(course, file)
    if args.action == "roster":
        return _roster(course, file)
    return _export(course, file, [lab_named(root, word) for word in args.lab], args.to, args.out)


def _rename(course: Course, old: str, new: str) -> int:
    with lock_grades(course):
        for line in rename(course, old, new):
            print(line)
    return 0


def _check(course: Course, file: ClassRules) -> int:
    about = file.course
    print(f"{about.title or course.root.name}; times are those of {about.time_zone}.")
    if about.id:
        print(f"Learners fetch and submit under the course id {about.id}.")
    if about.lesson_url:
        print(f"Links to lessons lead to {about.lesson_url}.")
    weights = weights_of(file, worths(course.root, file))
    for sentence in [*free_sentences(file), *total_sentences(file, weights)]:
        print(sentence)
    if file.left:
        print(f"Skipped, because they left the class: {', '.join(file.left)}.")
    for name, group in file.sections.items():
        if group.graders:
            print(
                f"The written answers of section {name} are marked by {', '.join(group.graders)}."
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
        with suppress(UserError):  # `found` has this error
            heading, _ = moodle_users(course.root, file) or ("", {})
            print(f"An export for Moodle identifies learners by the column {heading!r}.")
    for line in found:
        print(f"? {line}")
    return 1 if found else 0


def _doubtful(course: Course, file: ClassRules, members: dict[str, Member]) -> Iterator[str]:
    """Yield likely mistakes in the lists of learners, in extensions and in hand-in times."""
    known, left = set(members), set(file.left)
    if problem := other_id(course.root, file, course.directory.course_id):
        yield problem
    if course.has_gradebook:
        with Gradebook(course.directory.db_url) as gradebook:
            entered = {student.id for student in gradebook.students}
            own = {
                (submission.student_id, lab.name)
                for lab in gradebook.assignments
                if lab.name in file.labs
                for submission in lab.submissions
                if submission.extension
            }
        for student in sorted(entered - known - left if members else ()):
            yield f"{student} is in the gradebook but not in the roster: skipped"
        for student in sorted(known - entered - left):
            yield f"{student} is in the roster but not in the gradebook: `course roster` adds them"
        for student, lab in sorted(own):
            yield (
                f"{student} has an extension of {lab} in the gradebook, but only `extensions` in "
                f"{FILE} count"
            )
        known |= entered
    for extension in file.extensions:
        if extension.who not in known:
            yield (
                f"{FILE} gives {extension.who} an extension of {extension.lab}, but no learner has "
                "that id"
            )
    times = times_by_student(course, list(file.labs)) if course.has_gradebook else {}
    for lab in file.labs:
        came = [of_labs[lab] for of_labs in times.values() if lab in of_labs]
        if said := no_time_sentence(file, lab, came.count(None), len(came)):
            yield f"{lab}: {said}"
        for student in course.students("submitted", lab):
            known.add(student)
            if members and student not in members and student not in left:
                yield f"{student} handed in {lab} but is not in the roster: skipped"
    yield from _unlikely(course, file, set(members) - left)
    for student in file.left:
        if student not in known:
            yield f"{student} is listed in `left`, but no learner has that id"


def _unlikely(course: Course, file: ClassRules, members: set[str]) -> Iterator[str]:
    """Yield likely mistakes in the rules for labs, for the total, and for exports to Moodle."""
    worth_of_labs = worths(course.root, file)
    weights = weights_of(file, worth_of_labs)
    for lab, worth in worth_of_labs.items():
        if not worth:
            yield f"{lab} counts 0 points: every exercise is in `drop`, is a bonus, or counts 0"
        if file.total and weights[lab] and not file.labs[lab].due:
            yield (
                f"{lab} has no due date, so a learner's total is not final until the learner hands "
                "this lab in"
            )
        if file.labs[lab].feedback.attempts == 0:
            yield f"{lab}: with `attempts: 0` the service gives no verdicts"
    try:
        heading, users = moodle_users(course.root, file) or ("", {})
    except UserError as error:
        yield str(error)
        return
    for student in sorted(members):
        if not users.get(student):
            yield (
                f"{student} has an empty cell below {heading!r} in the roster, so an export for "
                "Moodle leaves this learner out"
            )


def _roster(course: Course, file: ClassRules) -> int:
    if file.roster is None:
        raise UserError(f"{FILE} names no roster: add `roster: {{file: ..., id: ...}}`")
    members = read_roster(course.root, file)
    _say_how_it_was_read(course, file.roster)
    changed = list(_enter(course, members, file.left))
    for line in changed:
        print(line)
    lines = "line" if len(changed) == 1 else f"{len(changed)} lines"
    said = f"see the {lines} above" if changed else "nothing changed"
    print(f"{len(members)} learners; {said}.")
    return 0


def _enter(course: Course, members: dict[str, Member], left: Collection[str] = ()) -> Iterator[str]:
    """Add the class to the gradebook, and yield a line for each learner whose data changed.

    Learners who are only in the gradebook are not removed, but a line names them. Learners who left
    the class are not added.
    """
    with Gradebook(course.directory.db_url) as gradebook:
        before = {student.id: student for student in gradebook.students}
        for member in members.values():
            value = {field: getattr(member, own) for field, own in FIELDS.items()}
            value = {field: text for field, text in value.items() if text}
            known = before.get(member.id)
            changed = [f for f, text in value.items() if known and getattr(known, f) != text]
            if known is None and member.id in left:
                yield f"{member.id}: left the class, so not added"
            elif known is None:
                gradebook.add_student(member.id, **value)
                yield f"{member.id}: new"
            elif changed:
                was = [f"{field} was {getattr(known, field) or 'empty'}" for field in changed]
                gradebook.update_or_create_student(member.id, **value)
                yield f"{member.id}: {'; '.join(was)}"
        for student in before:
            if student not in members:
                yield f"{student}: not in the roster, so skipped; stays in the gradebook"


def _say_how_it_was_read(course: Course, roster: Roster) -> None:
    if note := roster_table(course.root, roster)[0].note:
        print(f"{note}; to change that, set `encoding` in `roster`, for example to windows-1250.")


def entries(course: Course, file: ClassRules, labs: list[str], now: datetime) -> Iterator[Entry]:
    """Yield an entry for each learner and lab; for a graded lab, the entry has counted marks."""
    counted, members = CountedMarks(course, file), _entered(course)
    worth = worths(course.root, file)
    for student, one in read_roster(course.root, file).items():
        known = members.get(student, one)
        members[student] = replace(known, **{k: v for k, v in asdict(one).items() if v})
    belong = class_list_of(course.root, file).without_others(members)
    for lab in labs:
        graded = {one.student: (one, what) for one, what in counted.read(lab)}
        for student in belong:
            found, what = graded.get(student, (None, None))
            shown = file.shows("misconceptions", lab, student, now)
            yield Entry(members[student], lab, worth[lab], found, what, shown)


def _entered(course: Course) -> dict[str, Member]:
    """Return the gradebook's students, who are the class if there is no roster."""
    with Gradebook(course.directory.db_url) as gradebook:
        return {
            student.id: Member(
                student.id, student.first_name or "", student.last_name or "", student.email or ""
            )
            for student in gradebook.students
        }


def _export(course: Course, file: ClassRules, labs: list[str], to: Kind, out: Path | None) -> int:
    if unknown := [lab for lab in labs if lab not in file.labs]:
        raise UserError(f"{FILE} has no lab {', '.join(unknown)}; it has: {', '.join(file.labs)}")
    if labs and to is Kind.TOTAL:
        raise UserError("the total includes all labs: leave out the names of labs")
    chosen = labs or [lab for lab in file.labs if course.students("autograded", lab)]
    if not chosen:
        raise UserError("no lab has been graded yet")
    now, path = datetime.now(UTC), out or course.root / PLACES[to]
    found = list(entries(course, file, chosen, now))
    students = list(dict.fromkeys(one.member.id for one in found))
    in_all = to is Kind.TOTAL or (file.total is not None and not labs)
    made = totals(course, file, students, now) if in_all else {}
    users = moodle_users(course.root, file) if to is Kind.MOODLE else None
    named = file.export.moodle.identify or "Username", {student: student for student in students}
    marks = ClassMarks(file, found, made, users or named)
    WRITERS[to](marks, path)
    for sentence in _said_of(marks, to, path):
        print(sentence)
    known = {*_entered(course), *(s for lab in chosen for s in course.students("submitted", lab))}
    if said := passed_over_sentence(class_list_of(course.root, file).passed_over(known)):
        print(said)
    return 0


def _said_of(marks: ClassMarks, to: Kind, path: Path) -> Iterator[str]:
    """Yield sentences on what was exported, and on what the file does not show."""
    if to is Kind.TOTAL:
        final = sum(total.is_final for total in marks.totals.values())
        yield f"{path}: {len(marks.totals)} totals, {final} of them final."
        return
    without = sum(entry.score == "" for entry in marks.entries)
    so_far = sum(entry.score == "" and entry.in_proportion is not None for entry in marks.entries)
    so_far = so_far if to is Kind.GRADESCOPE else 0
    labs = ", ".join(marks.labs)
    scores = len(marks.entries) - without + so_far
    yield f"{path}: {scores} scores in {labs}; {without - so_far} are still missing."
    if so_far:
        are = "is" if so_far == 1 else "are"
        yield (
            f"{so_far} of these scores {are} not final: a mark is missing, so the file has the "
            "points so far, with a note."
        )
    for lab in marks.labs if to is not Kind.NBGRADER else ():
        scaled = [entry for entry in marks.entries if entry.lab == lab and entry.is_scaled]
        if scaled:
            learners = "1 learner" if len(scaled) == 1 else f"{len(scaled)} learners"
            yield (
                f"{lab}: the scores of {learners} are scaled to the lab's "
                f"{in_points(scaled[0].worth)}, because some checks could not run."
            )
        if none := [one.member.id for one in scaled if one.in_proportion is None]:
            yield f"{lab}: no score for {', '.join(none)}, because no check could run."
    if to is Kind.MOODLE:
        heading, ids = marks.moodle
        if out := [member.id for member in marks.members if not ids.get(member.id)]:
            those = ", ".join(out)
            yield f"Left out, because the cell below {heading!r} in the roster is empty: {those}."
    if to is Kind.CANVAS and marks.totals and not marks.file.export.canvas.total:
        yield (
            "The file has no column for the total. To add the column, name an assignment in "
            "`export.canvas.total`. That assignment must not count in Canvas's own total."
        )
