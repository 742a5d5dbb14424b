"""The number of verdicts that an exercise took, from the service's stored checks."""

from types import SimpleNamespace

import pytest

from hood.classroom.report import command as report
from hood.classroom.report.attempts import AT_ONCE, MANY, NOT_YET, SOME, attempts_of
from hood.classroom.service.queue import Queue
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.rules.book import hand_in, make_book


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/gradebook.db"


def ask(queue, learner, earned, *mistakes, exercise="twice", lab="99_tiny", teaches=False):
    queue.put(learner, lab, exercise, [], teaches)
    said = dict.fromkeys(mistakes, "A sentence.")
    queue.done(queue.take(), {"earned": earned, "most": 2.0, "explanations": said}, {})


def test_learners_are_counted_by_the_number_of_their_verdicts(url):
    queue = Queue(url)
    ask(queue, "ana", 2.0)
    ask(queue, "ana", 0.0, "squared")  # later, and so not counted
    for points in (0.0, 1.0, 2.0):
        ask(queue, "bo", points, *(["squared"] if points < 2 else []))
    for points in (0.0, 0.0, 0.0, 2.0):
        ask(queue, "cy", points, *(["half"] if points < 2 else []))
    ask(queue, "di", 0.0, "squared")
    ask(queue, "di", 2.0, lab="98_other", exercise="other")
    ask(queue, "marta", 0.0, "squared", teaches=True)
    found = attempts_of(url, "99_tiny")
    assert found.keys() == {"twice"}
    assert found["twice"].needed == {AT_ONCE: 1, SOME: 1, MANY: 1, NOT_YET: 1}
    assert found["twice"].misconceptions == {"squared": 2, "half": 1}


def test_without_checks_there_is_no_count(url):
    assert attempts_of(url, "99_tiny") == {}
    Queue(url)
    assert attempts_of(url, "99_tiny") == {}


@pytest.mark.parametrize("mistakes", [(), ("squared <it>",)])
def test_the_class_report_shows_it(tmp_path, mistakes):
    course = make_book(tmp_path / "course")
    hand_in(course, "ana", "01_one", {"first": 4.0, "second": 6.0, "third": 5.0, "why": 5.0}, None)
    queue = Queue(course.directory.db_url)
    (course.root / "course.yml").write_text("left: [eve]\nlabs: {one: {}}")
    ask(queue, "eve", 2.0, exercise="first", lab="01_one")  # left the class, and is not counted
    for earned in (0.0, 2.0):
        ask(queue, "ana", earned, *(() if earned else mistakes), exercise="first", lab="01_one")
    report.run(SimpleNamespace(lab="01_one", out=None, hide_names=False), course.root)
    page = (course.root / "reports" / "01_one" / "index.html").read_text()
    assert "first: 0 at once, 1 after 2 or 3, 0 after more, 0 not yet." in page
    told = "Mistakes on the way, and how many learners made them: first, “squared <it>” (1)."
    assert (told in words(page)) == bool(mistakes)
    assert ("Mistakes on the way" in page) == bool(mistakes)
