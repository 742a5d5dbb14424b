"""The server's responses: to whom, within which bounds, and under which policy."""

import json
import re
from urllib.parse import urljoin

import pytest

from hood.classroom.marking.page import POLICY
from tests.hood.classroom.marking.classroom import LAB, STUB, recorded, regraded
from tests.hood.classroom.marking.server import BASE, TOKEN, Server

pytestmark = pytest.mark.slow(30)


@pytest.fixture(scope="module")
def server(classroom):
    found = Server(classroom.root, "teach")
    yield found
    found.close()


@pytest.fixture(scope="module")
def entries(server):
    """The id of the question, and the id of each learner's grade."""
    status, text, _ = server.ask("marking")
    assert status == 200, text
    [question] = re.findall(rf'href="{BASE}marking/question/(\w+)"', text)
    names = json.loads(server.ask(f"marking/api/names/{question}")[1])
    return question, {name.split()[0].lower(): grade for grade, name in names.items()}


def test_the_list_links_the_question_which_names_no_learner(server, entries):
    question, grades = entries
    status, text, headers = server.ask(f"marking/question/{question}")
    assert status == 200
    assert "Why did nothing complain?" in text
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["Cache-Control"] == "no-store"
    assert all(grade in text for grade in grades.values())
    assert not re.search(r"\b(ana|bo|cy)\b", text, re.IGNORECASE)
    assert "MARK SCHEME" not in text
    inline = re.findall(r"<script(?! src=)([^>]*)>|<style|\son\w+=", text)
    assert inline == [' type="application/json" id="data"']


@pytest.mark.parametrize(
    "page", ["lab", "lab/tree/work/start.ipynb", "doc/tree/a", "lab/workspaces/w"]
)
def test_the_menu_entry_opens_the_list_from_every_page_of_jupyterlab(server, page):
    menu = server.data("lab/api/settings/@jupyterlab/mainmenu-extension:plugin")
    [entry] = re.findall(r"'url': '([^']*)'", str(menu["schema"]))
    assert not entry.startswith("/")
    opened = urljoin(server.address + page, entry).removeprefix(server.address)
    status, text, _ = server.ask(opened)
    assert (status, "<h1>Answers in words" in text) == (200, True)
    assert "Password or token" in server.ask(opened, headers={})[1]


def test_style_and_script_are_served_and_load_nothing_else(server):
    for name, kind in [("marking.css", "text/css"), ("marking.js", "text/javascript")]:
        status, text, headers = server.ask(f"marking/{name}")
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert len(text) > 3000
        assert not re.search(r"https?://|url\(|@import|\bimport\b", text)
    assert server.ask("marking/../marking/handlers.py")[0] == 404


def test_a_mark_is_recorded_and_a_stale_one_is_refused_with_the_current_one(
    server, entries, classroom
):
    grade = entries[1]["ana"]
    path = f"marking/api/answer/{grade}"
    seen = server.data(path)
    assert seen["html"] == "<p>Because.</p>\n"
    assert seen["notebook"].startswith(f"{BASE}formgrader/submissions/")
    save = {"version": seen["version"], "score": 2, "remark": " Which rule? ", "boxes": [0, 2]}
    given = server.data(path, save)
    assert (given["status"], given["state"]) == (200, "marked")
    assert recorded(classroom, "ana_a") == (2.0, False, "Which rule?")
    stale = server.data(path, save | {"score": 3})
    assert (stale["status"], stale["mark"]["score"], stale["boxes"]) == (409, 2.0, [0, 2])
    assert stale["html"] == "<p>Because.</p>\n"
    assert recorded(classroom, "ana_a")[0] == 2.0


def test_undo_takes_back_the_last_mark(server, entries, classroom):
    question, grades = entries
    path = f"marking/api/answer/{grades['cy']}"
    server.data(path, {"version": server.data(path)["version"], "score": 1})
    # with a token alone, each request counts as a new user, so keep one cookie
    assert recorded(classroom, "cy_c")[0] == 1.0
    nothing = server.data(f"marking/api/undo/{question}", {}, method="POST")
    assert nothing["status"] == 404
    cookie, token = logged_in(server)
    headers = {"Cookie": cookie, "X-XSRFToken": token}
    save = {"version": server.data(path)["version"], "score": 3}
    assert server.data(path, save, headers=headers)["status"] == 200
    undone = server.data(f"marking/api/undo/{question}", {}, method="POST", headers=headers)
    assert (undone["status"], undone["grade"], undone["mark"]["score"]) == (200, grades["cy"], 1.0)
    assert recorded(classroom, "cy_c")[0] == 1.0


def test_blank_answers_are_listed_and_only_confirmed_ones_get_0_points(server, entries, classroom):
    question, grades = entries
    notebook = classroom.folder("autograded", "bo_b", LAB) / f"{LAB}.ipynb"
    before = notebook.read_bytes()
    regraded(classroom, "bo_b", STUB)
    path = f"marking/api/blank/{question}"
    listed = json.loads(server.ask(path)[1])
    assert listed == [grades["bo"]]
    for body, status in (({"grades": []}, 400), ([1], 400), (b"[", 400), (b" " * (5 << 20), 413)):
        assert server.ask(path, body, method="POST")[0] == status
    assert json.loads(server.ask(path, [grades["ana"], grades["cy"]], method="POST")[1]) == []
    assert recorded(classroom, "bo_b")[:2] == (None, True)
    cookie, token = logged_in(server)
    headers = {"Cookie": cookie, "X-XSRFToken": token}
    given = json.loads(server.ask(path, listed, method="POST", headers=headers)[1])
    assert given == listed
    assert recorded(classroom, "bo_b")[:2] == (0.0, False)
    back = server.data(f"marking/api/undo/{question}", {}, method="POST", headers=headers)
    assert (back["grade"], back["others"]) == (grades["bo"], [])
    assert recorded(classroom, "bo_b")[:2] == (None, True)
    assert server.ask(path, [], method="PUT")[0] == 405
    assert server.ask(path, headers={})[0] in (302, 403)  # nobody is logged in
    notebook.write_bytes(before)


def logged_in(server) -> tuple[str, str]:
    """Return the cookies of a browser that has opened the list, and its XSRF token."""
    _, _, headers = server.ask(f"marking?token={TOKEN}", headers={})
    given = [one.partition(";")[0] for one in headers.get_all("Set-Cookie")]
    _, _, more = server.ask("lab/api/none", headers={"Cookie": "; ".join(given)})
    given += [one.partition(";")[0] for one in more.get_all("Set-Cookie", [])]
    cookies = dict(one.split("=", 1) for one in given)
    return "; ".join(f"{name}={value}" for name, value in cookies.items()), cookies["_xsrf"]


def test_a_foreign_page_cannot_mark_with_the_markers_cookie(server, entries, classroom):
    path = f"marking/api/answer/{entries[1]['bo']}"
    cookie, token = logged_in(server)
    save = {"version": server.data(path)["version"], "score": 3}
    assert server.ask(path, save, headers={"Cookie": cookie})[0] == 403
    away = {"Cookie": cookie, "X-XSRFToken": token, "Origin": "https://evil.example"}
    assert server.ask(path, save, headers=away)[0] == 404
    assert recorded(classroom, "bo_b") == (None, True, None)


def test_without_a_login_nothing_is_served(server, entries):
    question, grades = entries
    for path in ("marking", f"marking/question/{question}", "marking/marking.js"):
        status, text, _ = server.ask(path, headers={})
        assert "complain" not in text, path
        assert "Password or token" in text or status == 403, path
    for path in (f"marking/api/answer/{grades['ana']}", f"marking/api/names/{question}"):
        assert server.ask(path, headers={})[0] == 403
    assert server.ask(f"marking/api/answer/{grades['ana']}", {"score": 3}, headers={})[0] == 403


def test_a_hostile_answer_is_sent_as_data_without_active_markup(server, entries):
    status, text, headers = server.ask(f"marking/api/answer/{entries[1]['bo']}")
    assert status == 200
    assert headers["Content-Type"] == "application/json"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    html = json.loads(text)["html"]
    assert "words" in html
    assert not re.search(r"script|onerror|evil", html)


def test_an_answer_that_was_graded_again_says_so(server, entries, classroom):
    path = f"marking/api/answer/{entries[1]['ana']}"
    seen = server.data(path)
    server.data(path, {"version": seen["version"], "score": 2.5})
    regraded(classroom, "ana_a", "Because of the rule.")
    now = server.data(path)
    assert (now["state"], now["since"], now["mark"]["score"]) == ("again", "changed", 2.5)


@pytest.mark.parametrize(
    ("save", "status"),
    [
        ({"score": 4}, 400),
        ({"score": -1}, 400),
        ({"score": 10**400}, 400),
        ({"score": "3"}, 400),
        ({"score": True}, 400),
        ({"score": 1, "remark": "x" * 4001}, 400),
        ({"score": 1, "remark": ["x"]}, 400),
        ({"score": 1, "boxes": [1.5]}, 400),
        ({"score": 1, "boxes": list(range(200))}, 400),
        ({"score": 1, "version": 7}, 400),
        ({"score": 1, "remark": "x" * (1 << 16)}, 413),
        (b"[1]", 400),
        (b"not JSON", 400),
    ],
    ids=range(13),
)
def test_an_invalid_save_is_refused_with_a_message(server, entries, classroom, save, status):
    path = f"marking/api/answer/{entries[1]['bo']}"
    if isinstance(save, dict):
        save = {"version": server.data(path)["version"]} | save
    refused = server.data(path, save)
    assert refused["status"] == status, refused
    assert refused["message"]
    assert recorded(classroom, "bo_b") == (None, True, None)


def test_unknown_addresses_are_not_found(server):
    for path in (f"question/{'0' * 32}", f"api/answer/{'0' * 32}", "question/x", "api/answer/../x"):
        assert server.ask(f"marking/{path}")[0] == 404


def test_learners_do_not_have_these_pages(classroom):
    """`make lab` does not load these pages, although the same packages are installed."""
    server = Server(classroom.root, "lab")
    try:
        assert server.ask("formgrader/api/status")[0] == 200  # nbgrader's are installed for all
        assert server.ask("marking")[0] == 404
        assert "hood.classroom.marking" not in server.log.read_text()
    finally:
        server.close()


@pytest.mark.parametrize("said", [None, "cross-site", "same-site", "same-origin", "none"])
def test_a_page_is_served_to_a_tab_alone_and_an_answer_to_the_pages_script(server, entries, said):
    question, grades = entries
    cookie, _ = logged_in(server)
    site = {"Cookie": cookie, "Sec-Fetch-Site": said or "", "Sec-Fetch-Mode": "cors"}
    for path in ("marking", f"marking/question/{question}"):
        for to in ("empty", "iframe", "document"):
            mode = "cors" if to == "empty" else "navigate"
            headers = site | {"Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": to}
            status, text, _ = server.ask(path, headers=headers)
            opened = to == "document" and said is not None
            assert (status, "complain" in text) == ((200, True) if opened else (403, False))
    status, text, _ = server.ask(f"marking/api/answer/{grades['ana']}", headers=site)
    assert (status, "Because" in text) == ((200, True) if said == "same-origin" else (403, False))
    assert server.ask("marking/marking.css", headers=site)[0] == 200


def test_on_a_hub_without_subdomains_the_pages_are_closed_and_say_what_to_do(
    classroom, monkeypatch
):
    """On such a hub, a learner's server has the same origin as the instructor's."""
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "x")
    monkeypatch.setenv("JUPYTERHUB_HOST", "")
    server = Server(classroom.root, "teach", "closed")
    try:
        status, text, _ = server.ask("marking")
        assert status == 403
        assert "c.JupyterHub.subdomain_host" in text
        assert "complain" not in text
        assert server.ask(f"marking/api/names/{'0' * 32}")[0] == 403
    finally:
        server.close()
