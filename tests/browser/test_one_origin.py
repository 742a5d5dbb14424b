"""A learner's page cannot mark, wherever this page and the pages for marking are served."""

import contextlib
import threading

import pytest
import uvicorn
from nbgrader.api import Gradebook
from playwright.sync_api import Page, expect
from starlette.responses import HTMLResponse, Response

from hood.classroom.marking import origin, page
from hood.classroom.service.app import make_app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.login import TOKEN
from tests.hood.classroom.marking.classroom import LAB, make_classroom, recorded
from tests.hood.classroom.service.fake_hub import PREFIX, fake_hub
from tests.patience import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow(20)]
MARKING = f"{PREFIX}/marking/"
# A page that gives full marks with the session of the person who opens it. The page's title says
# whether that worked.
ACT = """
const act = async (read) => {
  const [, question] = (await read("")).match(/question\\/(\\w+)/);
  const text = await read("question/" + question);
  const data = JSON.parse(text.match(/id="data">(.*?)<\\/script>/s)[1]);
  const grade = data.answers[0].grade;
  const path = at + "api/answer/" + grade;
  const headers = {"X-XSRFToken": data.xsrf, "Content-Type": "application/json"};
  const more = {credentials: "include", headers};
  const {version} = await (await fetch(path, more)).json();
  const body = JSON.stringify({version, score: 3, remark: "", boxes: []});
  const said = await fetch(path, {...more, method: "PUT", body});
  document.title = said.ok ? "marked" : "refused";
};
"""
WAYS = {
    "fetches": """(path) => fetch(at + path, {credentials: "include"}).then((one) => one.text())""",
    "frames": """(path) => new Promise((done, failed) => {
      const frame = document.createElement("iframe");
      frame.onload = () => {
        try {
          done(frame.contentDocument.documentElement.innerHTML);
        } catch (error) { failed(error); }
      };
      frame.src = at + path;
      document.body.append(frame);
    })""",
    "opens": """(path) => new Promise((done, failed) => {
      const other = open(at + path);
      const look = () => {
        try {
          const found = other.document;
          if (found.readyState !== "complete" || other.location.href === "about:blank") throw 0;
          done(found.documentElement.innerHTML);
        } catch (error) {
          const parted = error.name === "SecurityError" || other.closed;
          parted || tries++ > 300 ? failed(error) : setTimeout(look, 100);
        }
      };
      let tries = 0;
      setTimeout(look, 300);
    })""",
}


def script(way: str, at: str) -> str:
    ended = '.catch(() => { document.title = "refused"; });'
    return f"const at = {at!r};\n{ACT}\nact({WAYS[way]}){ended}"


@contextlib.contextmanager
def served(app):
    """Serve an application in a thread; yield the number of its port."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started, "the service's start")
    [bound] = server.servers[0].sockets
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def beside_a_learner(service, pages: dict[str, str]):
    """What a hub's proxy serves under one origin: the service, and a learner's server."""

    async def app(scope, receive, send):
        if scope["type"] == "http" and scope["path"].startswith("/user/eve/"):
            page = pages.get(scope["path"].rpartition("/")[2])
            # without this header, the browser separates this page from a tab that has the header
            headers = {"Cross-Origin-Opener-Policy": "same-origin"}
            reply = HTMLResponse(page, headers=headers) if page else Response(status_code=404)
            await reply(scope, receive, send)
        else:
            await service(scope, receive, send)

    return app


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    return make_classroom(tmp_path_factory.mktemp("origin") / "course", {"eve_e": "Because."})


@pytest.fixture
def teacher(profile):
    """The page of an instructor's browser, which is logged in at 127.0.0.1."""
    context = profile.browser.new_context()
    cookie = {"name": TOKEN, "value": "hers", "domain": "127.0.0.1", "path": f"{PREFIX}/"}
    context.add_cookies([{**cookie, "httpOnly": True, "sameSite": "Lax"}])
    yield context.new_page()
    context.close()


def attacked(page: Page, port: int, way: str) -> str:
    """Open the learner's page by its address, as a link does; return the result."""
    page.goto(f"http://127.0.0.1:{port}/user/eve/{way}.html")
    page.click("button")
    page.wait_for_function("document.title !== 'mine'")
    return page.title()


def pages_of_eve(at: str) -> dict[str, str]:
    begin = "<!DOCTYPE html><title>mine</title><button>my figure</button><script>onclick = () => {"
    return {f"{way}.html": f"{begin}{script(way, at)}}}</script>" for way in WAYS}


def service_of(people, classroom, own=""):
    return make_app(Dispatcher(classroom, workers=0), people, PREFIX, own)


@pytest.mark.parametrize("way", WAYS)
def test_on_a_hub_without_subdomains_a_learners_page_does_not_mark(teacher, classroom, way):
    with fake_hub() as people:
        one = beside_a_learner(service_of(people, classroom), pages_of_eve(MARKING))
        with served(one) as port:
            assert attacked(teacher, port, way) == "refused"
            assert recorded(classroom, "eve_e")[0] is None
            teacher.goto(f"http://127.0.0.1:{port}{MARKING}")
            expect(teacher.locator(".hint")).to_contain_text("c.JupyterHub.subdomain_host")
            teacher.goto(f"http://127.0.0.1:{port}{PREFIX}/")
            expect(teacher.get_by_role("heading", name="You are marta")).to_be_visible()
            expect(teacher.locator(".hint")).to_contain_text("c.JupyterHub.subdomain_host")
            assert teacher.get_by_role("link", name="Mark answers in words").count() == 0


@pytest.mark.parametrize("way", WAYS)
def test_if_the_service_has_its_own_origin_a_learners_page_does_not_mark(teacher, classroom, way):
    """The ports differ; a browser sends the cookie to both."""
    with fake_hub() as people, contextlib.ExitStack() as both:
        found = {}

        async def own(scope, receive, send):
            await found["service"](scope, receive, send)

        port = both.enter_context(served(own))
        address = f"http://127.0.0.1:{port}"
        found["service"] = service_of(people, classroom, address)
        for at in (address + MARKING, MARKING):
            pages = pages_of_eve(at)
            hub = both.enter_context(served(beside_a_learner(found["service"], pages)))
            assert attacked(teacher, hub, way) == "refused"
            assert recorded(classroom, "eve_e")[0] is None
        teacher.goto(f"http://127.0.0.1:{hub}{PREFIX}/")  # from the hub's menu
        assert teacher.url == f"{address}{PREFIX}/"
        teacher.get_by_role("link", name="Mark answers in words").click()
        teacher.get_by_role("link", name="Why did nothing complain?").click()
        expect(teacher.locator("#words")).to_have_text("Because.")
        teacher.keyboard.press("0")
        teacher.keyboard.press("j")
        expect(teacher.locator("#progress")).to_have_text("1 of 1 marked.")
        assert recorded(classroom, "eve_e")[0] == 0.0
        teacher.keyboard.press("u")
        expect(teacher.locator("#said")).to_contain_text("Undone")


@pytest.mark.parametrize("way", WAYS)
def test_the_same_script_marks_if_the_pages_are_open(teacher, classroom, way, monkeypatch):
    """The script itself works. The other tests rely on this. The browser's headers stop two of the
    script's three ways, but not a new tab. The protection against a
    new tab is that no learner's page has this origin.
    """
    monkeypatch.setattr(origin, "is_shared", lambda: False)
    if way != "opens":
        monkeypatch.setattr(origin, "problem", lambda *_: "")
        monkeypatch.setattr(page, "POLICY", page.POLICY.replace("; frame-ancestors 'none'", ""))
    with fake_hub() as people:
        one = beside_a_learner(service_of(people, classroom), pages_of_eve(MARKING))
        with served(one) as port:
            assert attacked(teacher, port, way) == "marked"
            assert recorded(classroom, "eve_e")[0] == 3.0
    with Gradebook(classroom.directory.db_url) as gradebook:
        grade = gradebook.find_grade("why", LAB, LAB, "eve_e")
        grade.manual_score, grade.needs_manual_grade = None, True
        gradebook.db.commit()
