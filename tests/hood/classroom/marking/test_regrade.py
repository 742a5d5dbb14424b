"""The batch's writer keeps marks that were given on the page."""

import os

import pytest

from hood.audience import NBGRADER
from hood.classroom.marking.answer_reader import Reader
from hood.classroom.marking.book import Book, Marker, Wanted
from hood.classroom.recording.writer import Writer
from hood.grader.batch.grading import grade
from tests.hood.classroom.recording.small import HW, hand_in, job_of, make_small


def graded(course, why):
    """Hand in an answer in words, and grade and record it as the batch does."""
    hand_in(course, "ann", "score 2", why)
    job = job_of(course, "ann", sandbox=False)
    with Writer(course) as writer:
        writer.record(job, grade(job))
    assert NBGRADER not in os.environ  # else later notebooks of this process would have no verdicts


@pytest.mark.parametrize(("later", "since"), [("Better words.", "changed"), ("Words.", "same")])
def test_a_mark_stays_after_a_regrade_and_is_flagged_if_its_answer_changed(tmp_path, later, since):
    course = make_small(tmp_path / "course")
    graded(course, "Words.")
    book, reader = Book(course), Reader()
    [question] = book.questions()
    assert question.states == {"unmarked": 1}
    [entry] = book.sheet(question.id).entries
    place = book.location(entry.grade)
    answer = reader.answer(place.path, place.cell)
    assert "Words." in answer.html
    shown = book.shown(entry.grade, answer)
    wanted = Wanted(2.0, "Say more.")
    book.give(entry.grade, shown.version, wanted, Marker("1", "marta"), answer)

    graded(course, later)
    again = reader.answer(place.path, place.cell)
    assert later in again.html
    now = book.shown(entry.grade, again)
    assert (now.mark.score, now.mark.remark, now.mark.state) == (2.0, "Say more.", "again")
    assert (now.by, now.since) == ("marta", since)
    [question] = book.questions()
    assert question.states == {"again": 1}
    reader.close()
    assert question.lab == HW
