"""Compute totals of the term from the marks in the gradebook and the hand-ins on disk."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from hood import UserError
from hood.classroom.gradebook.graded import Results
from hood.classroom.results.counted_marks import CountedMarks
from hood.classroom.rules.class_list import class_list_of
from hood.classroom.rules.counting import Counted
from hood.classroom.rules.deadline import Period
from hood.classroom.rules.reading import worths
from hood.classroom.rules.schema import ClassRules, TotalPolicy
from hood.classroom.rules.total import LabWork, Total, total_of, weights_of
from hood.classroom.rules.total_words import term_sentences
from hood.grader.course import Course
from hood.grader.submission.names import nfc


def totals(
    course: Course,
    file: ClassRules,
    students: Collection[str],
    now: datetime,
    feedback_on: str = "",
) -> dict[str, Total]:
    """Return learners' totals under the rules in ``total:``, or else under default rules.

    Args:
        now: the current time, with a time zone.
        feedback_on: the lab whose feedback will show the total. If this lab is given, the total
            includes another lab's marks only if the learner has a feedback page on the other lab.

    Raises:
        UserError: when the roster has an error.
    """
    # The class list is read first, so that an error in the roster does not look like a lab without
    # grades.
    class_list_of(course.root, file)
    weights = weights_of(file, worths(course.root, file))
    labs = [lab for lab in file.labs if weights[lab]]
    alone = next(iter(students), "") if len(students) == 1 else ""
    marks = CountedMarks(course, file, alone)
    counted = {lab: _counted(marks, lab, students, alone) for lab in labs}
    on_disk = {lab: set(course.students("submitted", lab)) for lab in labs}
    collected = {lab: bool(on_disk[lab] or course.students("autograded", lab)) for lab in labs}
    found = {}
    for student in students:
        work = {
            lab: LabWork(
                counted[lab].get(student),
                nfc(student) in on_disk[lab],
                *_times(file, lab, student),
                collected[lab],
            )
            for lab in labs
        }
        shown = {lab: lab == feedback_on or _has_page(course, student, lab) for lab in labs}
        found[student] = total_of(
            file.total or TotalPolicy(),
            {lab: weights[lab] for lab in labs},
            work,
            now,
            shown if feedback_on else None,
        )
    return found


def term_words(course: Course, lab: str, student: str, now: datetime, file: ClassRules) -> str:
    """Return sentences on a learner's total, for feedback on a lab; empty without ``total:``."""
    if file.total is None or lab not in file.labs:
        return ""
    return " ".join(term_sentences(totals(course, file, [student], now, lab)[student]))


def _counted(
    marks: CountedMarks, lab: str, students: Collection[str], alone: str
) -> dict[str, Counted]:
    try:
        results = Results(marks.course, lab, alone)
    except UserError:  # the lab is not in the gradebook yet, so nothing counts
        return {}
    return {
        one.student: marks.of(lab, one, results.withheld(one.student))
        for one in results.read(only=students, runs=False)
    }


def _times(file: ClassRules, lab: str, student: str) -> tuple[datetime | None, datetime | None]:
    """Return when a hand-in to a lab becomes late (after the grace), and when it stops counting.

    The second time is None if a late hand-in always counts something.
    """
    deadline, last = file.deadline(lab, student), file.policy(lab).last_day
    if deadline is None:
        return None, None
    closes = None if last is None else deadline.after(Period(days=last))
    return deadline.after(deadline.grace), closes


def _has_page(course: Course, student: str, lab: str) -> bool:
    return any(course.folder("feedback", nfc(student), lab).glob("*.html"))
