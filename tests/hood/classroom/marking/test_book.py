"""Marks are recorded or refused, and a changed answer is reported."""

import sqlite3
from dataclasses import replace

import pytest
from nbgrader.api import Gradebook

from hood import UserError
from hood.classroom.marking import book as book_module
from hood.classroom.marking.answer_reader import Answer, stamp
from hood.classroom.marking.book import Book, Marker, StaleError, Wanted
from hood.grader.course import open_course
from tests.hood.classroom.marking.classroom import (
    BOXES,
    LAB,
    STUB,
    hand_in,
    make_classroom,
    recorded,
    regraded,
)

MARTA, BEN = Marker("1", "marta"), Marker("2", "ben")
CLASS = {"ana_a": "Because of the rule.", "bo_b": STUB, "cy_c": "No idea.", "dee_d": "Shapes."}


@pytest.fixture
def book(tmp_path):
    return Book(make_classroom(tmp_path / "course", CLASS))


def question(book):
    [found] = book.questions()
    return found


def grade_of(book, student):
    with Gradebook(book.course.directory.db_url) as gradebook:
        return gradebook.find_grade("why", LAB, LAB, student).id


def seen(book, student):
    """What a marker sees: an answer, of which only the digest matters here."""
    grade = grade_of(book, student)
    path = book.location(grade).path
    answer = Answer(digest=str(hash(path.read_text())), stamp=stamp(path))
    return grade, answer, book.shown(grade, answer)


def give(book, student, score, remark="", boxes=(), marker=MARTA):
    grade, answer, shown = seen(book, student)
    return book.give(grade, shown.version, Wanted(score, remark, boxes), marker, answer)


def test_a_mark_and_its_remark_are_stored_as_nbgrader_stores_them(book):
    assert recorded(book.course, "ana_a") == (None, True, None)
    shown = give(book, "ana_a", 2.0, "Say which rule.", (0, 2))
    assert recorded(book.course, "ana_a") == (2.0, False, "Say which rule.")
    assert (shown.mark.state, shown.by, shown.boxes, shown.since) == ("marked", "marta", (0, 2), "")
    with Gradebook(book.course.directory.db_url) as gradebook:
        assert gradebook.find_submission(LAB, "ana_a").score == 4.0  # with 2 for the code
    assert recorded(book.course, "bo_b") == (None, True, None)


def test_0_points_are_a_mark_and_an_empty_remark_hides_no_automatic_one(book):
    with Gradebook(book.course.directory.db_url) as gradebook:
        gradebook.find_comment("why", LAB, LAB, "bo_b").auto_comment = "No response."
        gradebook.db.commit()
    give(book, "bo_b", 0.0)
    assert recorded(book.course, "bo_b") == (0.0, False, None)
    with Gradebook(book.course.directory.db_url) as gradebook:
        assert gradebook.find_comment("why", LAB, LAB, "bo_b").comment == "No response."


def test_the_list_counts_unmarked_answers(book):
    give(book, "ana_a", 1.0)
    give(book, "cy_c", 3.0)
    regraded(book.course, "cy_c", "Another idea.")
    found = question(book)
    assert (found.lab, found.name, found.points) == (LAB, "why", 3.0)
    assert found.title == "2 · Why did nothing complain?"
    assert found.states == {"marked": 1, "again": 1, "unmarked": 2}


def test_an_unreadable_answer_is_not_to_be_marked(book):
    with Gradebook(book.course.directory.db_url) as gradebook:
        gradebook.find_grade("twice", LAB, LAB, "dee_d").auto_score = None
        gradebook.db.commit()
    found = question(book)
    assert (found.states, found.lost) == ({"unmarked": 3}, 1)
    assert len(book.sheet(found.id).entries) == 3


def test_the_sheet_has_question_boxes_and_remarks_the_most_frequent_first(book):
    give(book, "ana_a", 1.0, "Once.\nOften.")
    give(book, "cy_c", 1.0, "Often.")
    sheet = book.sheet(question(book).id)
    assert "MARK SCHEME" not in sheet.text
    assert sheet.text.startswith("## 2 · Why")
    assert sheet.rubric.boxes == BOXES
    assert sheet.rubric.points == (1.0, 1.0, 1.0)
    assert sheet.remarks == ["Often.", "Once."]


def test_the_order_is_stable_and_differs_from_names_and_between_questions(tmp_path):
    names = [f"learner_{number:02}" for number in range(20)]
    book = Book(make_classroom(tmp_path / "course", dict.fromkeys(names, "words")))
    cell = question(book).id
    first = [one.grade for one in book.sheet(cell).entries]
    give(book, "learner_07", 2.0)
    assert [one.grade for one in book.sheet(cell).entries] == first
    whose = book.names(cell)
    assert sorted(whose.values()) == [f"Learner {number:02}" for number in range(20)]
    assert [whose[grade] for grade in first] != sorted(whose.values())
    told = str(book.sheet(cell))
    assert not any(name in told or name.replace("_", " ").title() in told for name in names)
    # the learners are in another order, so this gradebook is no copy of the first
    other = Book(make_classroom(tmp_path / "other", dict.fromkeys(reversed(names), "words")))
    key = (tmp_path / "course" / ".pseudonyms").read_text()
    (tmp_path / "other" / ".pseudonyms").write_text(key)
    theirs = [one.pseudonym for one in other.sheet(question(other).id).entries]
    ours = [one.pseudonym for one in book.sheet(cell).entries]
    assert set(theirs) == set(ours)
    assert theirs != ours


def test_the_second_of_two_markers_sees_the_first_mark(book):
    grade, answer, shown = seen(book, "ana_a")
    give(book, "ana_a", 3.0, "Good.")
    with pytest.raises(StaleError) as stale:
        book.give(grade, shown.version, Wanted(1.0), BEN, answer)
    assert recorded(book.course, "ana_a") == (3.0, False, "Good.")
    now = stale.value.now
    assert (now.by, now.mark.score, now.mark.remark) == ("marta", 3.0, "Good.")
    book.give(
        grade, now.version, Wanted(1.0), BEN, answer
    )  # a marker who has seen it may overwrite it
    assert recorded(book.course, "ana_a") == (1.0, False, None)


def test_a_mark_from_formgrader_is_not_overwritten_either(book):
    grade, answer, shown = seen(book, "ana_a")
    with Gradebook(book.course.directory.db_url) as gradebook:
        given = gradebook.find_grade("why", LAB, LAB, "ana_a")
        given.manual_score, given.needs_manual_grade = 2.5, False
        gradebook.db.commit()
    with pytest.raises(StaleError) as stale:
        book.give(grade, shown.version, Wanted(1.0), BEN, answer)
    assert (stale.value.now.by, stale.value.now.mark.score) == ("", 2.5)
    assert recorded(book.course, "ana_a")[0] == 2.5


def test_a_mark_for_a_replaced_answer_is_refused(book):
    """Two situations: the new answer was already read, or the batch has just written it."""
    grade, answer, shown = seen(book, "ana_a")
    hand_in(book.course, "ana_a", "Another answer.")
    with pytest.raises(StaleError):
        book.give(grade, shown.version, Wanted(3.0), MARTA, answer)
    _, new, _ = seen(book, "ana_a")
    with pytest.raises(StaleError):
        book.give(grade, shown.version, Wanted(3.0), MARTA, new)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_regrade_of_the_same_answer_is_no_conflict(book):
    grade, _, shown = seen(book, "ana_a")
    hand_in(book.course, "ana_a", CLASS["ana_a"])
    path = book.location(grade).path
    same = Answer(digest=seen(book, "ana_a")[1].digest, stamp=stamp(path))
    version = shown.mark.version(same.digest)
    book.give(grade, version, Wanted(3.0), MARTA, same)
    assert recorded(book.course, "ana_a")[0] == 3.0


@pytest.mark.parametrize(("later", "since"), [("Better words.", "changed"), (None, "same")])
def test_a_mark_stays_and_is_flagged_when_its_answer_has_changed(book, later, since, monkeypatch):
    grade, answer, _ = seen(book, "ana_a")
    first = give(book, "ana_a", 2.0, "So so.", (1,))
    regraded(book.course, "ana_a", later or CLASS["ana_a"])
    digest = "of other words" if later else answer.digest
    new = Answer(digest=digest, stamp=stamp(book.location(grade).path))
    shown = book.shown(grade, new)
    assert (shown.mark.state, shown.mark.score, shown.by) == ("again", 2.0, "marta")
    assert shown.since == since
    assert first.since == ""
    kept = book.give(grade, shown.version, Wanted(2.0, "So so.", (1,)), BEN, new)
    assert (kept.mark.state, kept.since) == ("marked", "")
    assert recorded(book.course, "ana_a") == (2.0, False, "So so.")


def test_a_mark_from_elsewhere_belongs_to_no_known_answer(book):
    with Gradebook(book.course.directory.db_url) as gradebook:
        given = gradebook.find_grade("why", LAB, LAB, "ana_a")
        given.manual_score, given.needs_manual_grade = 2.5, True
        gradebook.db.commit()
    assert seen(book, "ana_a")[2].since == "unknown"


def test_undo_takes_back_ones_own_marks_one_after_the_other(book):
    cell = question(book).id
    give(book, "ana_a", 1.0, "First.", (0,))
    give(book, "ana_a", 2.0, "Second.", (0, 1))
    give(book, "cy_c", 3.0)
    give(book, "dee_d", 3.0, marker=BEN)
    for student, score, remark in [
        ("cy_c", None, None),
        ("ana_a", 1.0, "First."),
        ("ana_a", None, None),
    ]:
        grade, answer, _ = seen(book, student)
        assert book.last(cell, MARTA) == grade
        shown = book.take_back(grade, MARTA, answer)
        assert recorded(book.course, student) == (score, score is None, remark)
        assert shown.boxes == ((0,) if score else ())
    assert book.last(cell, MARTA) == ""
    assert recorded(book.course, "dee_d")[0] == 3.0


def test_undo_leaves_later_marks_of_others(book):
    give(book, "ana_a", 1.0)
    give(book, "ana_a", 2.0, marker=BEN)
    grade, answer, _ = seen(book, "ana_a")
    with pytest.raises(StaleError) as stale:
        book.take_back(grade, MARTA, answer)
    assert stale.value.now.by == "ben"
    assert recorded(book.course, "ana_a")[0] == 2.0


@pytest.mark.parametrize("score", [-0.5, 3.5, float("nan"), float("inf")])
def test_a_mark_has_bounds(book, score):
    with pytest.raises(ValueError, match="expected points from 0 to 3"):
        give(book, "ana_a", score)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_remark_has_bounds(book):
    with pytest.raises(ValueError, match="at most 4,000"):
        give(book, "ana_a", 1.0, "x" * 4001)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_none_removes_a_mark(book):
    give(book, "ana_a", 1.0)
    give(book, "ana_a", None)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_locked_gradebook_is_reported_and_nothing_changes(book, monkeypatch):
    monkeypatch.setattr(book_module, "PATIENCE", 0.1)
    impatient = Book(book.course)
    grade, answer, shown = seen(impatient, "ana_a")
    with sqlite3.connect(book.course.database, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match=r"locked for 0\.1 s.*Nothing was recorded"):
            impatient.give(grade, shown.version, Wanted(1.0), MARTA, answer)
        other.execute("ROLLBACK")
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_missing_gradebook_is_reported(tmp_path):
    with pytest.raises(UserError, match="no gradebook"):
        Book(open_course(tmp_path)).questions()
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_the_gradebook_does_not_have_is_a_key_error(book):
    for ask in (book.sheet, book.location, lambda grade: book.shown(grade, Answer())):
        with pytest.raises(KeyError):
            ask("0" * 32)


def blank(book, *students):
    """What the page sends for confirmation: the blank answers of these learners."""
    answers = {}
    for student in students:
        grade, answer, _ = seen(book, student)
        answers[grade] = replace(answer, blank=True)
    return answers


def test_blank_answers_get_0_points_in_one_step_and_one_undo_takes_all_back(book):
    cell = question(book).id
    give(book, "ana_a", 2.0)
    given = book.give_blank(cell, blank(book, "bo_b", "cy_c"), MARTA)
    assert sorted(given) == sorted(grade_of(book, one) for one in ("bo_b", "cy_c"))
    for student in ("bo_b", "cy_c"):
        assert recorded(book.course, student) == (0.0, False, None)
        assert seen(book, student)[2].by == "marta"
    assert recorded(book.course, "dee_d")[0] is None
    last = book.last(cell, MARTA)
    assert last in given
    shown = book.take_back(last, MARTA, next(iter(blank(book, "cy_c").values())))
    assert (shown.grade, {last, *shown.others}) == (last, set(given))
    for student in ("bo_b", "cy_c"):
        assert recorded(book.course, student) == (None, True, None)
    assert recorded(book.course, "ana_a")[0] == 2.0  # that was a separate step
    assert book.last(cell, MARTA) == grade_of(book, "ana_a")


def test_a_blank_answer_with_a_newer_mark_remark_or_text_stays_unchanged(book):
    cell = question(book).id
    confirmed = blank(book, "ana_a", "bo_b", "cy_c", "dee_d")
    give(book, "ana_a", 1.0, marker=BEN)
    give(book, "bo_b", None, "Ask her.", marker=BEN)  # a remark without a mark
    hand_in(book.course, "cy_c", "Now there is something.")
    confirmed[grade_of(book, "dee_d")] = replace(confirmed[grade_of(book, "dee_d")], blank=False)
    assert book.give_blank(cell, confirmed, MARTA) == []
    assert [recorded(book.course, one)[0] for one in CLASS] == [1.0, None, None, None]


def test_undo_of_blank_answers_leaves_marks_that_were_changed_since(book):
    cell = question(book).id
    first, second = book.give_blank(cell, blank(book, "bo_b", "cy_c"), MARTA)
    other = {grade_of(book, one): one for one in CLASS}
    give(book, other[first], 3.0, marker=BEN)
    shown = book.take_back(second, MARTA, blank(book, other[second])[second])
    assert shown.others == ()
    assert recorded(book.course, other[first])[0] == 3.0
    assert recorded(book.course, other[second])[0] is None


def test_an_unreadable_notebook_is_no_blank_answer(book):
    with Gradebook(book.course.directory.db_url) as gradebook:
        gradebook.find_grade("twice", LAB, LAB, "dee_d").auto_score = None
        gradebook.db.commit()
    waiting = book.waiting(question(book).id)
    assert sorted(waiting) == sorted(grade_of(book, one) for one in ("ana_a", "bo_b", "cy_c"))
    given = book.give_blank(question(book).id, blank(book, "bo_b", "dee_d"), MARTA)
    assert given == [grade_of(book, "bo_b")]
