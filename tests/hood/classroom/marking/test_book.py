"""What marks are recorded, which are refused, and what is told of an answer that has changed."""

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
    """What a marker has on the screen: the answer (of whose text a digest is all that counts)."""
    grade = grade_of(book, student)
    path = book.location(grade).path
    answer = Answer(digest=str(hash(path.read_text())), stamp=stamp(path))
    return grade, answer, book.shown(grade, answer)


def give(book, student, score, remark="", boxes=(), marker=MARTA):
    grade, answer, shown = seen(book, student)
    return book.give(grade, shown.version, Wanted(score, remark, boxes), marker, answer)


def test_a_mark_and_its_remark_are_where_nbgrader_has_them(book):
    assert recorded(book.course, "ana_a") == (None, True, None)
    shown = give(book, "ana_a", 2.0, "Say which rule.", (0, 2))
    assert recorded(book.course, "ana_a") == (2.0, False, "Say which rule.")
    assert (shown.mark.state, shown.by, shown.boxes, shown.since) == ("marked", "marta", (0, 2), "")
    with Gradebook(book.course.directory.db_url) as gradebook:
        assert gradebook.find_submission(LAB, "ana_a").score == 4.0  # with 2 for the code
    assert recorded(book.course, "bo_b") == (None, True, None)


def test_no_point_is_a_mark_and_an_empty_remark_hides_no_automatic_one(book):
    with Gradebook(book.course.directory.db_url) as gradebook:
        gradebook.find_comment("why", LAB, LAB, "bo_b").auto_comment = "No response."
        gradebook.db.commit()
    give(book, "bo_b", 0.0)
    assert recorded(book.course, "bo_b") == (0.0, False, None)
    with Gradebook(book.course.directory.db_url) as gradebook:
        assert gradebook.find_comment("why", LAB, LAB, "bo_b").comment == "No response."


def test_the_list_counts_what_waits(book):
    give(book, "ana_a", 1.0)
    give(book, "cy_c", 3.0)
    regraded(book.course, "cy_c", "Another idea.")
    found = question(book)
    assert (found.lab, found.name, found.points) == (LAB, "why", 3.0)
    assert found.title == "2 · Why did nothing complain?"
    assert found.states == {"marked": 1, "again": 1, "unmarked": 2}


def test_what_could_not_be_read_is_nothing_to_mark(book):
    with Gradebook(book.course.directory.db_url) as gradebook:
        gradebook.find_grade("twice", LAB, LAB, "dee_d").auto_score = None
        gradebook.db.commit()
    found = question(book)
    assert (found.states, found.lost) == ({"unmarked": 3}, 1)
    assert len(book.sheet(found.id).entries) == 3


def test_the_sheet_has_question_boxes_and_remarks_the_frequent_first(book):
    give(book, "ana_a", 1.0, "Once.\nOften.")
    give(book, "cy_c", 1.0, "Often.")
    sheet = book.sheet(question(book).id)
    assert "MARK SCHEME" not in sheet.text
    assert sheet.text.startswith("## 2 · Why")
    assert sheet.rubric.boxes == BOXES
    assert sheet.rubric.points == (1.0, 1.0, 1.0)
    assert sheet.remarks == ["Often.", "Once."]


def test_the_order_stays_and_is_neither_that_of_names_nor_the_same_for_all_questions(tmp_path):
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
    # in another order, it is no copy of the first one's gradebook
    other = Book(make_classroom(tmp_path / "other", dict.fromkeys(reversed(names), "words")))
    key = (tmp_path / "course" / ".pseudonyms").read_text()
    (tmp_path / "other" / ".pseudonyms").write_text(key)
    theirs = [one.pseudonym for one in other.sheet(question(other).id).entries]
    ours = [one.pseudonym for one in book.sheet(cell).entries]
    assert set(theirs) == set(ours)
    assert theirs != ours


def test_the_second_of_two_markers_is_told_what_the_first_gave(book):
    grade, answer, shown = seen(book, "ana_a")
    give(book, "ana_a", 3.0, "Good.")
    with pytest.raises(StaleError) as stale:
        book.give(grade, shown.version, Wanted(1.0), BEN, answer)
    assert recorded(book.course, "ana_a") == (3.0, False, "Good.")
    now = stale.value.now
    assert (now.by, now.mark.score, now.mark.remark) == ("marta", 3.0, "Good.")
    book.give(grade, now.version, Wanted(1.0), BEN, answer)  # who was told may insist
    assert recorded(book.course, "ana_a") == (1.0, False, None)


def test_a_mark_of_formgrader_is_not_overwritten_either(book):
    grade, answer, shown = seen(book, "ana_a")
    with Gradebook(book.course.directory.db_url) as gradebook:
        given = gradebook.find_grade("why", LAB, LAB, "ana_a")
        given.manual_score, given.needs_manual_grade = 2.5, False
        gradebook.db.commit()
    with pytest.raises(StaleError) as stale:
        book.give(grade, shown.version, Wanted(1.0), BEN, answer)
    assert (stale.value.now.by, stale.value.now.mark.score) == ("", 2.5)
    assert recorded(book.course, "ana_a")[0] == 2.5


def test_a_mark_for_an_answer_that_was_replaced_meanwhile_is_refused(book):
    """Whether the new one was read already, or the batch has just put it there."""
    grade, answer, shown = seen(book, "ana_a")
    hand_in(book.course, "ana_a", "Another answer.")
    with pytest.raises(StaleError):
        book.give(grade, shown.version, Wanted(3.0), MARTA, answer)
    _, new, _ = seen(book, "ana_a")
    with pytest.raises(StaleError):
        book.give(grade, shown.version, Wanted(3.0), MARTA, new)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_regrade_of_the_same_answer_that_replaced_the_file_is_no_conflict(book):
    grade, _, shown = seen(book, "ana_a")
    hand_in(book.course, "ana_a", CLASS["ana_a"])
    path = book.location(grade).path
    same = Answer(digest=seen(book, "ana_a")[1].digest, stamp=stamp(path))
    version = shown.mark.version(same.digest)
    book.give(grade, version, Wanted(3.0), MARTA, same)
    assert recorded(book.course, "ana_a")[0] == 3.0


@pytest.mark.parametrize(("later", "since"), [("Better words.", "changed"), (None, "same")])
def test_a_mark_survives_and_is_flagged_when_its_answer_has_changed(
    book, later, since, monkeypatch
):
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


def test_of_a_mark_from_elsewhere_nobody_knows_for_which_answer_it_was(book):
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


def test_undo_leaves_what_somebody_else_gave_since(book):
    give(book, "ana_a", 1.0)
    give(book, "ana_a", 2.0, marker=BEN)
    grade, answer, _ = seen(book, "ana_a")
    with pytest.raises(StaleError) as stale:
        book.take_back(grade, MARTA, answer)
    assert stale.value.now.by == "ben"
    assert recorded(book.course, "ana_a")[0] == 2.0


@pytest.mark.parametrize("score", [-0.5, 3.5, float("nan"), float("inf")])
def test_a_mark_has_bounds(book, score):
    with pytest.raises(ValueError, match="a number from 0 to 3"):
        give(book, "ana_a", score)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_remark_has_bounds(book):
    with pytest.raises(ValueError, match="at most 4,000"):
        give(book, "ana_a", 1.0, "x" * 4001)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_mark_is_taken_away_again_by_none(book):
    give(book, "ana_a", 1.0)
    give(book, "ana_a", None)
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_a_locked_gradebook_is_told_and_changes_nothing(book, monkeypatch):
    monkeypatch.setattr(book_module, "PATIENCE", 0.1)
    impatient = Book(book.course)
    grade, answer, shown = seen(impatient, "ana_a")
    with sqlite3.connect(book.course.database, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match=r"locked for 0\.1 s.*Nothing was recorded"):
            impatient.give(grade, shown.version, Wanted(1.0), MARTA, answer)
        other.execute("ROLLBACK")
    assert recorded(book.course, "ana_a") == (None, True, None)


def test_without_a_gradebook_there_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="no gradebook"):
        Book(open_course(tmp_path)).questions()
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_the_gradebook_does_not_have_is_a_key_error(book):
    for ask in (book.sheet, book.location, lambda grade: book.shown(grade, Answer())):
        with pytest.raises(KeyError):
            ask("0" * 32)


def blank(book, *students):
    """What the page confirms: these learners' answers, read as blank."""
    answers = {}
    for student in students:
        grade, answer, _ = seen(book, student)
        answers[grade] = replace(answer, blank=True)
    return answers


def test_blank_answers_get_no_point_in_one_step_and_are_taken_back_in_one(book):
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
    assert recorded(book.course, "ana_a")[0] == 2.0  # that was a step of its own
    assert book.last(cell, MARTA) == grade_of(book, "ana_a")


def test_a_blank_answer_that_has_something_by_now_stays_as_it_is(book):
    cell = question(book).id
    confirmed = blank(book, "ana_a", "bo_b", "cy_c", "dee_d")
    give(book, "ana_a", 1.0, marker=BEN)
    give(book, "bo_b", None, "Ask her.", marker=BEN)  # a remark without a mark
    hand_in(book.course, "cy_c", "Now there is something.")
    confirmed[grade_of(book, "dee_d")] = replace(confirmed[grade_of(book, "dee_d")], blank=False)
    assert book.give_blank(cell, confirmed, MARTA) == []
    assert [recorded(book.course, one)[0] for one in CLASS] == [1.0, None, None, None]


def test_what_somebody_has_changed_since_is_not_taken_back_with_the_others(book):
    cell = question(book).id
    first, second = book.give_blank(cell, blank(book, "bo_b", "cy_c"), MARTA)
    other = {grade_of(book, one): one for one in CLASS}
    give(book, other[first], 3.0, marker=BEN)
    shown = book.take_back(second, MARTA, blank(book, other[second])[second])
    assert shown.others == ()
    assert recorded(book.course, other[first])[0] == 3.0
    assert recorded(book.course, other[second])[0] is None


def test_a_notebook_that_could_not_be_read_is_none_of_the_blank_answers(book):
    with Gradebook(book.course.directory.db_url) as gradebook:
        gradebook.find_grade("twice", LAB, LAB, "dee_d").auto_score = None
        gradebook.db.commit()
    waiting = book.waiting(question(book).id)
    assert sorted(waiting) == sorted(grade_of(book, one) for one in ("ana_a", "bo_b", "cy_c"))
    given = book.give_blank(question(book).id, blank(book, "bo_b", "dee_d"), MARTA)
    assert given == [grade_of(book, "bo_b")]
