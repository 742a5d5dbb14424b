"""``course.yml`` divides the marking by sections."""

from types import SimpleNamespace

import pytest

from hood.classroom.marking.book import Book
from hood.classroom.marking.handlers import _Jupyter
from hood.classroom.marking.page import index_page
from hood.classroom.marking.share import Share, share_of
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.marking.classroom import make_classroom, recorded
from tests.hood.classroom.marking.test_book import give

CLASS = ("ana_a", "bo_b", "cy_c", "dee_d", "eve_e")
RULES = """\
sections: {A: {graders: [marta]}, B: {graders: [ben, marta]}, C: {graders: [ben]}, D: {}}
roster: {file: class.csv, id: Id, section: Group}
"""
# Every grader marks the learners without a section or without a grader.
ROSTER = "Id,Group\nana_a,A\nbo_b,B\ncy_c,C\ndee_d,D\neve_e,\n"


@pytest.fixture
def book(tmp_path):
    course = make_classroom(tmp_path / "course", {one: f"I am {one}." for one in CLASS})
    (course.root / "course.yml").write_text(RULES)
    (course.root / "class.csv").write_text(ROSTER)
    return Book(course)


@pytest.mark.parametrize(
    ("name", "words", "marks"),
    [
        ("marta", "sections A and B", {"ana_a", "bo_b", "dee_d", "eve_e"}),
        ("ben", "sections B and C", {"bo_b", "cy_c", "dee_d", "eve_e"}),
        ("an instructor", "", set(CLASS)),
    ],
)
def test_graders_mark_their_sections_and_learners_without_a_grader(book, name, words, marks):
    share = share_of(book.course.root, {name})
    assert share.words == words
    assert {one for one in CLASS if share.has(one)} == marks


@pytest.mark.parametrize(
    ("user", "display", "section"),
    [
        ("marta", "Marta M.", "sections A and B"),  # as a hub names her
        ("d41d8cd9", "Anonymous Carme", "section O"),  # with a token alone
        ("d41d8cd9", "Ben", ""),
    ],
)
def test_the_server_names_the_marker(book, monkeypatch, user, display, section):
    monkeypatch.setattr("getpass.getuser", lambda: "owner")
    rules = RULES.replace("D: {}", "D: {}, O: {graders: [owner]}")
    (book.course.root / "course.yml").write_text(rules)
    who = SimpleNamespace(username=user, display_name=display)
    handler = SimpleNamespace(current_user=who, base_url="/", base="/marking/")
    assert share_of(book.course.root, _Jupyter.visitor(handler).names).words == section


def test_without_a_course_file_or_sections_each_grader_marks_all(book):
    root = book.course.root
    (root / "course.yml").write_text("course: {title: A course}\n")
    assert share_of(root, {"marta"}) == Share()
    (root / "course.yml").unlink()
    assert share_of(root, {"marta"}) == Share()


@pytest.mark.parametrize("name", ["course.yml", "class.csv"])
def test_an_unusable_file_is_reported_and_marking_goes_on(book, name):
    (book.course.root / name).write_text("sections: [")
    share = share_of(book.course.root, {"marta"})
    assert share.words == ""
    assert all(map(share.has, CLASS))
    assert name in share.problem
    page = words(index_page(book.questions(share), share, "/"))
    assert f"everybody sees all answers: {share.problem.split()[0]}" in page
    assert "5 not marked" in page


def test_the_list_counts_each_graders_remaining_answers(book):
    give(book, "ana_a", 2.0)

    def counted(name):
        share = share_of(book.course.root, {name})
        return words(index_page(book.questions(share), share, "/")).replace(" ,", ",")

    assert "3 not marked, 1 of 4 marked; other answers to mark: 1." in counted("marta")
    assert "You mark sections A and B, and the learners who have no grader" in counted("marta")
    assert "4 not marked, 0 of 4 marked; other answers to mark: 0." in counted("ben")
    assert "4 not marked, 1 of 5 marked." in counted("an instructor")
    assert "You mark" not in counted("an instructor")


def test_a_questions_page_has_all_answers_and_marks_the_graders_own(book):
    [question] = book.questions()
    share = share_of(book.course.root, {"ben"})
    entries = book.sheet(question.id, share).entries
    assert sorted(one.own for one in entries) == [False, True, True, True, True]
    assert all(one.own for one in book.sheet(question.id).entries)


@pytest.mark.parametrize("rules", [RULES + "left: [eve_e]\n", "left: eve_e\n"])
@pytest.mark.parametrize("name", ["ben", "an instructor"])
def test_answers_of_learners_who_left_are_not_listed(book, rules, name):
    (book.course.root / "course.yml").write_text(rules)
    share = share_of(book.course.root, {name})
    [question] = book.questions(share)
    assert question.states == {"unmarked": 4}
    assert len(book.sheet(question.id, share).entries) == 4
    (book.course.root / "course.yml").write_text(RULES)  # nothing was deleted
    assert book.questions(share_of(book.course.root, {name}))[0].states == {"unmarked": 5}


def test_a_share_is_no_access_right(book):
    """Ben may mark a learner from Marta's section."""
    assert not share_of(book.course.root, {"ben"}).has("ana_a")
    give(book, "ana_a", 1.0)
    assert recorded(book.course, "ana_a")[0] == 1.0
