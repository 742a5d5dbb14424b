"""The tables of docs/how-to/keyboard.md: each key is pressed, and the focus is where they say."""

import argparse
import re
from collections.abc import Iterator
from typing import NamedTuple

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from playwright.sync_api import Locator, Page, expect

from hood.classroom.service.app import make_app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.people import OfFile
from hood.learner import copies
from hood.learner.contents import PHASES
from hood.learner.lab_file import read_lab
from hood.phase_paths import ROOT
from tests.browser import course_site
from tests.browser.test_journeys import opened
from tests.browser.test_one_origin import served
from tests.hood.classroom.marking.classroom import make_classroom, recorded

pytestmark = [pytest.mark.browser, pytest.mark.slow(60)]

HELLO = PHASES[0].name
START, LESSON = "work/start.ipynb", f"work/lesson_{HELLO}.ipynb"
LAB = f"{HELLO}/{HELLO}.ipynb"
PAGE = ROOT / "docs" / "how-to" / "keyboard.md"
ROW = re.compile(r"^\| (`.+?|type .+?) \|(?: (\w+) \*(.+?)\*)? \| (.*?) ?\|$", re.MULTILINE)
PRESSED = re.compile(r"(type )?`([^`]+)`( until)?")
SEEN = re.compile(r"(?:(\w+) )?\*(.+?)\*")
ROLES = {"link": "link", "button": "button", "slider": "slider", "field": "textbox"}
ROLES |= {"box": "checkbox"}
PLACES = {"cell": ".jp-Cell", "code": ".cm-content", "fold": "summary"}
MOST = 60  # of one key, until the focus is there


class Row(NamedTuple):
    """A row of a table: keys; the kind and the name of what has the focus, if any; what happens."""

    keys: str
    kind: str
    name: str
    happens: str


def rows(heading: str) -> list[Row]:
    """Return the table below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    found = [Row(*one) for one in ROW.findall(section)]
    assert len(found) == section.count("\n|") - 2  # without the table's two lines of headers
    return found


def named(page: Page, kind: str, name: str) -> Locator:
    """Return what the page calls so; words without a kind are any text."""
    if kind in ROLES:
        return page.get_by_role(ROLES[kind], name=name, exact=True)
    return page.locator(PLACES[kind], has_text=name) if kind in PLACES else page.get_by_text(name)


def follow(page: Page, table: list[Row], token: str = "") -> None:
    """Press the keys of a table. After each row, look at the focus, and for what is in italics."""
    for row in table:
        there = named(page, row.kind, row.name).and_(page.locator(":focus"))
        for typed, key, until in PRESSED.findall(row.keys):
            if typed:
                page.keyboard.type(token if key == "your token" else key)
                continue
            page.keyboard.press(key)
            for _ in range(MOST if until else 0):
                page.wait_for_timeout(30)  # JupyterLab draws cells and moves the focus
                if there.count():
                    break
                page.keyboard.press(key)
        found = [named(page, *one).filter(visible=True).first for one in SEEN.findall(row.happens)]
        if row.kind:
            expect(there, str(row)).to_have_count(1)
        if "Wait" in row.happens:  # the foot of the window still shows the notebook before
            page.wait_for_timeout(2000)
        for one in found:
            expect(one, str(row)).to_be_visible()
        for one in found if "window shows" in row.happens else [there] * bool(row.kind):
            expect(one, str(row)).to_be_in_viewport()


@pytest.fixture(scope="module")
def desk(profile, learners) -> Iterator[Page]:
    """The start page of the course in JupyterLab, with a learner's settings and trusted copies."""
    assert copies.run(argparse.Namespace(), learners.course) == 0
    notary = NotebookNotary(data_dir=str(learners.course.parent / "jupyter_data_dir"))
    for page in (START, LESSON):
        notary.sign(nbformat.read(learners.course / page, 4))
    page = profile.new_page()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(learners.url(START))
    opened(page, "start.ipynb")
    yield page
    page.close()


def test_keys_lead_through_a_lesson_and_its_lab_in_jupyterlab(desk, learners):
    follow(desk, rows("A lesson in JupyterLab"))
    follow(desk, rows("A lab in JupyterLab"))
    expect(desk.locator(".jp-mod-current.jp-mod-dirty")).to_have_count(0)
    saved = read_lab(PHASES[0], learners.course / "work" / LAB)
    assert [one.passing for one in saved.exercises] == [True, False]


def test_keys_lead_through_the_site(profile, site):
    context = profile.browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{site[0]}/{course_site.START}")
    follow(page, rows("The site"))
    page.goto(f"{site[0]}/{course_site.LESSON}")
    follow(page, rows("A lesson on the site"))
    context.close()


def test_keys_lead_through_the_marking_of_two_answers(profile, tmp_path):
    course = make_classroom(tmp_path / "course", {"ana_a": "Because.", "bo_b": "No."})
    people = OfFile(course.root, ["marta"])
    context = profile.browser.new_context(viewport={"width": 1280, "height": 900})
    with served(make_app(Dispatcher(course, workers=0), people)) as port:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/marking/")
        follow(page, rows("Marking"), people.token("marta"))
    context.close()
    assert sorted(recorded(course, one)[0] for one in ("ana_a", "bo_b")) == [1.0, 2.5]
