"""Answers in words are marked behind the service's login, in the same gradebook as in Jupyter."""

import json
import re
import urllib.parse

import pytest
from starlette.testclient import TestClient

from hood import UserError
from hood.classroom.marking.page import POLICY
from hood.classroom.service.app import make_app
from hood.classroom.service.command import own_origin
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.login import TOKEN
from hood.classroom.service.people import OfFile
from tests.hood.classroom.marking.classroom import recorded
from tests.hood.classroom.service.fake_hub import FORM, PREFIX, SCRIPT, TAB, FakeHub, fake_hub

HUB = "https://hub.example.org"
pytestmark = pytest.mark.slow(5)


@pytest.fixture(scope="module")
def people(classroom):
    return OfFile(classroom.root, ["marta", "ben"])


@pytest.fixture(scope="module")
def app(classroom, people):
    return make_app(Dispatcher(classroom, workers=0), people, PREFIX)


class Browser:
    """A browser with its cookies."""

    def __init__(self, app):
        self.client = TestClient(app, follow_redirects=False)
        self.base = f"{PREFIX}/marking/"

    def log_in(self, token, to="marking"):
        asked = {"token": token, "to": to}
        return self.client.post(f"{self.base}login", data=asked, headers=FORM)

    def page(self, path=""):
        return self.client.get(self.base + path, headers=TAB)

    def data(self, method, path, body=None, word=""):
        headers = SCRIPT | ({"X-XSRFToken": word} if word else {})
        content = None if body is None else json.dumps(body)
        return self.client.request(method, self.base + path, content=content, headers=headers)

    def opened(self):
        """The question's id, the page's secret word, and the grades' ids by learner."""
        [question] = re.findall(r"question/(\w+)", self.page().text)
        text = self.page(f"question/{question}").text
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
        self.word = data["xsrf"]
        names = self.data("GET", f"api/names/{question}", word=self.word).json()
        return question, self.word, {v.split()[0].lower(): k for k, v in names.items()}


@pytest.fixture
def browser(app, people):
    def enter(name):
        found = Browser(app)
        assert found.log_in(people.token(name)).status_code == 303
        return found

    return enter


def test_a_page_asks_for_a_token_and_accepts_only_an_instructors(app, people):
    someone = Browser(app)
    asked = someone.page()
    assert (asked.status_code, "<form" in asked.text) == (401, True)
    assert "form-action 'self'" in asked.headers["Content-Security-Policy"]
    for token, said in [
        ("x.y", "not a token of this course"),
        (people.token("ana"), "only teachers"),
    ]:
        refused = someone.log_in(token)
        assert (refused.status_code, TOKEN in refused.cookies) == (401, False)
        assert said in refused.text
    assert Browser(app).log_in(f"marta,{people.token('marta')}").status_code == 303  # as printed
    let_in = someone.log_in(people.token("marta"))
    assert (let_in.status_code, let_in.headers["Location"]) == (303, someone.base)
    for said in ("HttpOnly", "SameSite=lax", f"Path={PREFIX}/;"):
        assert said in let_in.headers["Set-Cookie"]
    listed = someone.page()
    assert "Why did nothing complain?" in listed.text
    assert listed.headers["Content-Security-Policy"] == POLICY
    assert someone.client.get(f"{PREFIX}/marking").headers["Location"] == someone.base


def test_a_learners_cookie_or_no_cookie_opens_nothing(app, people, browser):
    question, word, grades = browser("marta").opened()
    paths = ["", f"question/{question}", f"api/names/{question}", f"api/answer/{grades['ana']}"]
    for token in ("", people.token("ana"), people.token("marta")[:-1] + "x"):
        other = Browser(app)
        other.client.cookies.set(TOKEN, token)
        for path in paths:
            reply = other.page(path)
            assert reply.status_code in (401, 403), path
            assert "complain" not in reply.text
        save = {"version": "x", "score": 3}
        assert other.data("PUT", paths[-1], save, word).status_code == 403
        assert other.data("POST", f"api/undo/{question}", None, word).status_code == 403


def test_two_markers_do_not_overwrite_each_other_and_each_undoes_only_own_marks(browser, classroom):
    marta, ben = browser("marta"), browser("ben")
    question, word, grades = marta.opened()
    path = f"api/answer/{grades['ana']}"
    seen = marta.data("GET", path, word=word).json()
    assert (seen["html"], seen["notebook"]) == ("<p>Because.</p>\n", "")
    save = {"version": seen["version"], "score": 2, "remark": " Which rule? ", "boxes": [0, 2]}
    given = marta.data("PUT", path, save, word)
    assert (given.status_code, given.json()["by"]) == (200, "marta")
    assert recorded(classroom, "ana_a") == (2.0, False, "Which rule?")
    bens = ben.opened()[1]
    stale = ben.data("PUT", path, save | {"score": 3}, bens)
    assert (stale.status_code, stale.json()["mark"]["score"]) == (409, 2.0)
    assert stale.json()["by"] == "marta"
    assert ben.data("POST", f"api/undo/{question}", {}, bens).status_code == 404
    knows = save | {"version": stale.json()["version"], "score": 3}
    assert ben.data("PUT", path, knows, bens).status_code == 200
    assert marta.data("POST", f"api/undo/{question}", {}, word).status_code == 409
    assert recorded(classroom, "ana_a")[0] == 3.0
    assert ben.data("POST", f"api/undo/{question}", {}, bens).json()["mark"]["score"] == 2.0
    assert marta.data("POST", f"api/undo/{question}", {}, word).json()["mark"]["score"] is None
    assert recorded(classroom, "ana_a") == (None, True, None)


def test_a_save_needs_the_pages_own_word_and_is_bounded(browser, classroom):
    marta = browser("marta")
    _, word, grades = marta.opened()
    path = f"api/answer/{grades['bo']}"
    seen = marta.data("GET", path, word=word).json()
    assert "words" in seen["html"]
    assert not re.search(r"script|onerror|evil", seen["html"])
    save = {"version": seen["version"], "score": 1}
    for wrong in ("", "x" * 64, browser("ben").opened()[1]):
        assert marta.data("PUT", path, save, wrong).status_code == 403
    large = save | {"remark": "x" * (1 << 16)}
    refused = marta.data("PUT", path, large, word)
    assert (refused.status_code, bool(refused.json()["message"])) == (413, True)
    assert marta.data("PUT", path, [1], word).status_code == 400
    assert marta.data("PUT", path, {**large, "remark": "x" * (1 << 20)}, word).status_code == 413
    assert marta.data("POST", path, save, word).status_code == 405
    assert marta.page(f"question/{'0' * 32}").status_code == 404
    assert marta.page("../queue").status_code in (401, 404)
    assert recorded(classroom, "bo_b") == (None, True, None)


@pytest.fixture
def hub():
    """A hub that knows a teacher and a learner, and the object with which the service asks it."""
    pytest.importorskip("jupyterhub")
    with fake_hub(HUB) as people:
        yield people


def test_a_hubs_login_returns_to_the_pages(hub, classroom):
    someone = Browser(make_app(Dispatcher(classroom, workers=0), hub, PREFIX))
    to_hub = someone.page()
    address = urllib.parse.urlparse(to_hub.headers["Location"])
    said = dict(urllib.parse.parse_qsl(address.query))
    assert (to_hub.status_code, address.path) == (303, "/hub/api/oauth2/authorize")
    assert said["client_id"] == "service-course"
    assert said["code_challenge"]
    back = f"{PREFIX}/oauth_callback?code=good&state="
    assert someone.client.get(back + "another").status_code == 403
    stranger = TestClient(someone.client.app, follow_redirects=False)
    assert stranger.get(back + said["state"]).status_code == 403  # begun in another browser
    done = someone.client.get(back + said["state"])
    assert (done.status_code, done.headers["Location"]) == (303, someone.base)
    assert "Why did nothing complain?" in someone.page().text
    again = someone.client.get(back.replace("good", "bad") + said["state"])
    assert again.status_code == 503


@pytest.mark.parametrize("place", ["/", ""])
def test_the_hubs_link_to_the_service_opens_its_page(place, hub, classroom):
    someone = Browser(make_app(Dispatcher(classroom, workers=0), hub, PREFIX))
    asked = someone.client.get(PREFIX + place, follow_redirects=False)
    if not place:
        assert (asked.status_code, asked.headers["Location"]) == (308, f"{PREFIX}/")
        asked = someone.client.get(f"{PREFIX}/")
    said = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(asked.headers["Location"]).query))
    done = someone.client.get(f"{PREFIX}/oauth_callback?code=good&state={said['state']}")
    assert (done.status_code, done.headers["Location"]) == (303, f"{PREFIX}/")
    assert "You are marta" in someone.client.get(f"{PREFIX}/").text


def test_a_token_that_the_hub_has_revoked_is_refused_in_a_minute(hub, monkeypatch):
    assert hub.whose("hers").teaches
    assert not hub.whose("his").teaches
    assert hub.whose("elsewhere") is None  # a token without access to this service
    FakeHub.owners = {}
    now = hub._hub.cache.timestamps
    for key in now:
        now[key] -= 61  # seconds
    assert hub.whose("hers") is None


def test_if_the_hub_is_down_nobody_gets_in_and_the_page_says_so(hub, classroom, monkeypatch):
    client = TestClient(make_app(Dispatcher(classroom, workers=0), hub, PREFIX))
    monkeypatch.setattr(hub._hub, "api_url", "http://127.0.0.1:1/hub/api")
    reply = client.get(f"{PREFIX}/labs", headers={"Authorization": "Bearer hers"})
    assert (reply.status_code, "hub could not say" in reply.text) == (503, True)


def test_a_service_with_its_own_origin_needs_the_hub_to_redirect_there():
    own = "https://marking.example.org"
    for wrong in ("marking.example.org", f"{own}/course", "ftp://x"):
        with pytest.raises(UserError, match="expected a scheme and a host"):
            own_origin(wrong)
    with (
        fake_hub(),
        pytest.raises(UserError, match=f'"oauth_redirect_uri": "{own}{PREFIX}/oauth_callback"'),
    ):
        own_origin(own)
    with fake_hub(OAUTH_CALLBACK_URL=f"{own}{PREFIX}/oauth_callback"):
        assert own_origin(f"{own}/") == own
