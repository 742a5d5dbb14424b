"""The service's own page names its user, and shows each user their own data."""

import re

import nbformat
import pytest
from starlette.testclient import TestClient

from hood.classroom.gradebook.graded import Graded, Request
from hood.classroom.marking.page import POLICY
from hood.classroom.service import home
from hood.classroom.service.app import make_app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.inbox import Inbox
from hood.classroom.service.login import TOKEN
from hood.classroom.service.people import OfFile
from hood.grader.course import open_course
from tests.hood.classroom.service.fake_hub import FORM
from tests.hood.classroom.service.serving import make_served
from tests.hood.tiny import LAB, released, source_notebook

PREFIX = "/services/course"
pytestmark = pytest.mark.slow(5)
RULES = """
course: {{title: "Inside <b>", time_zone: Europe/Madrid}}
labs: {{{lab}: {{due: {due}, release: {release}}}}}
"""
OUT = RULES.format(lab=LAB, due="2026-09-25", release="2026-09-01")
NOT_OUT = RULES.format(lab=LAB, due="2099-09-25", release="2099-09-01")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return open_course(make_served(tmp_path_factory.mktemp("home") / "course"))


@pytest.fixture
def people(course):
    return OfFile(course.root, ["marta"])


@pytest.fixture(params=[PREFIX, ""])
def prefix(request):
    return request.param


@pytest.fixture
def opened(course, people, prefix):
    """Open the page as a user, or without a login."""
    app = make_app(Dispatcher(course, workers=0), people, prefix)

    def get(name):
        client = TestClient(app, follow_redirects=False, headers=FORM)
        if name:
            client.cookies.set(TOKEN, people.token(name))
        return client.get(f"{prefix}/")

    return get


def text_of(reply):
    return " ".join(re.sub(r"<[^>]*>", " ", reply.text).split())


def test_without_a_login_the_page_asks_for_one_and_returns(course, people, prefix):
    app = make_app(Dispatcher(course, workers=0), people, prefix)
    client = TestClient(app, follow_redirects=False, headers=FORM)
    asked = client.get(f"{prefix}/")
    assert (asked.status_code, 'name="to" value=""' in asked.text) == (401, True)
    wrong = client.post(f"{prefix}/marking/login", data={"token": "x.y", "to": ""})
    assert (wrong.status_code, "not a token of this course" in wrong.text) == (401, True)
    for to in ("", "https://example.org/"):
        let_in = client.post(
            f"{prefix}/marking/login", data={"token": people.token("ana"), "to": to}
        )
        assert (let_in.status_code, let_in.headers["Location"]) == (303, f"{prefix}/")
    assert "You are ana" in client.get(f"{prefix}/").text
    assert client.get(f"{prefix}/marking/").status_code == 403


def test_a_learner_sees_only_their_own_labs(opened, course):
    (course.root / "course.yml").write_text(OUT)
    inbox = Inbox(course)
    arrived = inbox.arriving()
    arrived.write_bytes(nbformat.writes(released(source_notebook())).encode())
    inbox.take(None, "ana", LAB, arrived)
    reply = opened("ana")
    said = text_of(reply)
    assert reply.headers["Content-Security-Policy"] == POLICY
    assert "Inside &lt;b&gt;" in reply.text
    assert "You are ana" in said
    assert f"{LAB} Handed in on " in said
    assert "Due 25 September 2026, 23:59 (Europe/Madrid)." in said
    assert 'marking/"' not in reply.text
    assert str(course.root) not in reply.text
    ben = text_of(opened("ben"))
    assert f"{LAB} Not handed in." in ben
    assert "ana" not in ben


def test_an_unreleased_lab_is_hidden_from_learners(opened, course):
    (course.root / "course.yml").write_text(NOT_OUT)
    assert "No lab is released yet." in text_of(opened("ana"))
    assert LAB in text_of(opened("marta"))


def test_an_instructor_sees_the_open_tasks(opened, course, monkeypatch, prefix):
    (course.root / "course.yml").write_text(OUT)
    asked = [
        (Graded("ana", "Ana <i>", {}, {}), Request("twice", "it is <u>right</u>", answered=False)),
        (Graded("ben", "Ben", {}, {}), Request("boxes", "long ago", answered=True)),
    ]
    assert "There are no open requests for a regrade." in text_of(opened("marta"))
    monkeypatch.setattr(home, "requests_in", lambda *_: asked)
    reply = opened("marta")
    said = text_of(reply)
    assert f'href="{prefix}/marking/"' in reply.text
    assert "You teach this course. Its folder is " + str(course.root) in said
    assert "it is &lt;u&gt;right&lt;/u&gt;" in said
    assert "long ago" not in said
    assert "Due 25 September 2026, 23:59 (Europe/Madrid)." in said


def test_errors_in_the_settings_are_shown_to_instructors_only(opened, course):
    (course.root / "course.yml").write_text("labs: [")
    for name, shown in (("marta", True), ("ana", False)):
        reply = opened(name)
        assert reply.status_code == 503
        assert ("course.yml" in reply.text) is shown
    (course.root / "course.yml").unlink()


def test_a_name_that_cannot_be_a_folder_sees_nothing(opened):
    reply = opened("../ana")
    assert (reply.status_code, reply.text.startswith("your name")) == (403, True)


def test_everything_on_the_page_comes_from_the_service(opened):
    for name in ("ana", "marta"):
        text = opened(name).text
        assert "<script" not in text
        assert not re.search(r'(src|href)="(https?:)?//', text)
