"""Pages can be used with a keyboard, a screen reader, chosen colours, large letters, and no motion.

axe-core finds faults against WCAG 2.1 AA that a program can find. The other tests are about what
a reader does.
"""

import io
import json
import re
from argparse import Namespace

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from playwright.sync_api import Page, expect
from rich.console import Console

from hood.classroom.feedback.page import About
from hood.classroom.report import command as report
from hood.classroom.service.app import make_app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.people import OfFile
from hood.metadata import KEY
from tests.browser.conftest import MILLISECONDS
from tests.browser.course_site import LAB, LESSON, START
from tests.browser.pictures import CHANGE, THEMES, verdict_notebook, view_notebook
from tests.browser.test_journeys import choose, opened, run
from tests.browser.test_one_origin import served
from tests.hood.classroom.feedback import test_page as feedback
from tests.hood.classroom.marking.classroom import make_classroom
from tests.hood.classroom.report import made_up

pytestmark = [pytest.mark.browser, pytest.mark.slow(90)]

DESKTOP, PHONE, SMALLEST = 1280, 420, 320
SITE = (START, LESSON, LAB, "glossary.html", "search.html?q=gradcheck", "docs/README.html")
SITE += ("docs/reference/commands.html", "docs/explanation/accessibility.html")
CLASS = ("feedback.html", "report.html")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
STRUCTURE = {"runOnly": TAGS, "rules": {"color-contrast": {"enabled": False}}}
COLOURS = {"runOnly": ["color-contrast"]}
# Faults of others: axe's rule, and the element.
OTHERS = {
    # Furo's fields for its drawers stand before all landmarks, as its skip link does.
    "region": ".sidebar-toggle",
    # JupyterLab's box around an output scrolls, and can't be focused.
    "scrollable-region-focusable": ".jp-OutputArea-output",
}
# Marks one element of each kind that has text. Code has thousands of words in a few colours.
MARK = """(within) => {
  const seen = new Set();
  for (const one of document.querySelectorAll(`${within} *`)) {
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    let kind = "";
    for (let each = one; each; each = each.parentElement) {
      kind += ` ${each.localName}.${each.className} ${each.getAttribute("style") ?? ""}`;
    }
    if (!seen.has(kind)) one.setAttribute("data-kind", "");
    seen.add(kind);
  }
}"""
UNFOLD = "document.querySelectorAll('details').forEach((fold) => (fold.open = true))"
MATCHES = "([found, other]) => document.querySelector(found).matches(other)"


def emulated(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)


def in_jupyterlab(page: Page, theme: str) -> None:
    page.evaluate(CHANGE, THEMES[theme])
    light = json.dumps(theme == "light")
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", light)


def faults(page: Page, within: str = "body", change=emulated) -> list[str]:
    """Return axe's findings in both themes and at both widths."""
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(UNFOLD)
    found = []
    for width in (DESKTOP, PHONE):
        page.set_viewport_size({"width": width, "height": 900})
        settled(page)
        for view in page.locator(".open-the-hood-live").all():  # not observed while out of sight
            view.scroll_into_view_if_needed()
            settled(page)
        found += [f"{width}: {one}" for one in told_at_rest(page, within)]
        page.evaluate(MARK, within)
        for theme in THEMES:
            change(page, theme)
            settled(page)
            found += [f"{width}, {theme}: {one}" for one in told(page, "[data-kind]", COLOURS)]
    return found


def settled(page: Page) -> None:
    """Wait until a changed size has reached the page's observers."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def told_at_rest(page: Page, within: str) -> list[str]:
    """Return what axe finds about the structure, once a page's observers had time to react."""
    for _ in range(5):
        if not (found := told(page, within, STRUCTURE)):
            break
        page.wait_for_timeout(1000)
    return found


def told(page: Page, within: str, options: dict) -> list[str]:
    everything = within == "body"
    options = {**options, "resultTypes": ["violations"]}
    result = Axe().run(page, context=None if everything else within, options=options)
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:300]}"
        for rule in result.response["violations"]
        for node in rule["nodes"]
        if not (
            (other := OTHERS.get(rule["id"])) and page.evaluate(MATCHES, [node["target"][0], other])
        )
    ]


@pytest.fixture(scope="module")
def sheet(profile):
    """A window whose size, theme and motion the tests change."""
    assert profile.browser is not None
    context = profile.browser.new_context()
    context.set_default_timeout(MILLISECONDS)
    yield context.new_page()
    context.close()


@pytest.fixture
def window(sheet):
    """The window as it is on a desktop."""
    sheet.set_viewport_size({"width": DESKTOP, "height": 900})
    sheet.emulate_media(color_scheme="light", reduced_motion="null", forced_colors="none")
    return sheet


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A feedback page and a class report, as files."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "feedback.html").write_text(feedback_page())
    course = made_up.make_course(folder / "course", made_up.crowd(40))
    words = Namespace(lab=made_up.LAB, out=folder / "report", hide_names=False)
    report.run(words, root=course, console=Console(file=io.StringIO()))
    (folder / "report" / "index.html").rename(folder / "report.html")
    return folder


def feedback_page() -> str:
    """Return a page with everything that such a page can have."""
    theirs = {KEY: {"by": "learner"}}
    stub = {"grade_id": "s", "solution": True, "grade": False, "locked": False, "task": False}
    table = "<table><tr><th>loss</th></tr><tr><td>1.2</td></tr></table><h1>mine</h1>"
    code = new_code_cell(
        "def f(x: int) -> str:\n    # why\n    return 'a' * 2",
        metadata={"nbgrader": stub | {"schema_version": 3}},
        outputs=[
            new_output("stream", text="hello\n" * 100),
            new_output("display_data", {"text/html": table}),
        ],
    )
    mine = "# Mine\n\n#### deep\n\n| a | b |\n|--|--|\n| 1 | 2 |"
    return feedback.page(
        *(code, feedback.cell("test", "views", score=1.0)),
        new_markdown_cell("## 2 · Why\n\n### Here"),
        feedback.cell("Why?", "why", task=True, score=2.0, by_person=True, comment="*Nearly.*"),
        new_markdown_cell(mine, metadata=theirs),
        about=About(
            *("ana", "lab", 2.0, 6.0),
            rubrics={"why": "# Points\n\n- one point for *that*"},
            verdicts={"views": feedback.verdict(*feedback.PARTS)},
            lessons=feedback.SITE,
        ),
    )


def test_axe_finds_faults(window):
    window.set_content(
        "<!doctype html><title>a</title><html lang=en><main><h1>a</h1><img src=a.png>"
        "<style>p { color: #777 } @media (prefers-color-scheme: dark) { p { color: #999 } }</style>"
        "<p>pale</p><pre style='width: 99vw; overflow: auto'>" + "wide " * 200
    )
    structure = ("image-alt", "scrollable-region-focusable")
    wanted = {f"{width}: {rule}" for width in (DESKTOP, PHONE) for rule in structure}
    wanted |= {f"{width}, {t}: color-contrast" for width in (DESKTOP, PHONE) for t in THEMES}
    assert {":".join(fault.split(":")[:2]) for fault in faults(window)} == wanted


@pytest.mark.parametrize("path", SITE)
def test_axe_finds_no_fault_on_the_site(window, site, path):
    window.goto(f"{site[0]}/{path}")
    window.wait_for_load_state("networkidle")
    assert faults(window) == []


@pytest.mark.parametrize("name", CLASS)
def test_axe_finds_no_fault_on_feedback_and_on_a_class_report(window, pages, name):
    window.goto((pages / name).as_uri())
    assert faults(window) == []


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The service of a class with answers to mark: its address, and two instructors' tokens."""
    answers = {"ana_a": "# Because\n\n#### of it\n\n| a |\n|--|\n| 1 |", "bo_b": "No.\n\n    code"}
    course = make_classroom(tmp_path_factory.mktemp("service") / "course", answers)
    people = OfFile(course.root, ["marta", "ben"])
    with served(make_app(Dispatcher(course, workers=0), people)) as port:
        yield f"http://127.0.0.1:{port}/", [people.token(name) for name in ("marta", "ben")]


def test_axe_finds_no_fault_on_the_pages_of_the_service(window, service):
    address, (marta, ben) = service
    window.goto(f"{address}marking/")
    assert faults(window) == []
    log_in(window, marta)
    assert faults(window) == []
    window.goto(address)
    assert faults(window) == []


def test_axe_finds_no_fault_while_an_answer_is_marked(window, service):
    address, (marta, ben) = service
    other = window.context.browser.new_context()
    try:
        pages = [window, other.new_page()]
        for page, token in zip(pages, (marta, ben), strict=True):
            page.context.clear_cookies()
            page.goto(f"{address}marking/")
            log_in(page, token)
            page.get_by_role("link", name="Why did nothing complain?").click()
            expect(page.locator("#words")).not_to_have_text("…")
        pages[1].keyboard.press("1")
        pages[1].keyboard.press("j")
        expect(pages[1].locator("#who")).to_contain_text("2 of 2")
        window.keyboard.press("0")
        window.keyboard.press("j")
        expect(window.get_by_role("alert")).to_contain_text("left 1 of 3")
        assert faults(window) == []
        window.keyboard.press("t")
        window.keyboard.press("?")
        expect(window.get_by_role("dialog")).to_be_visible()
        assert faults(window) == []
    finally:
        other.close()


def test_single_letters_can_be_switched_off_as_keys(window, service):
    address, (marta, _) = service
    window.context.clear_cookies()
    window.goto(f"{address}marking/")
    log_in(window, marta)
    window.get_by_role("link", name="Why did nothing complain?").click()
    score, switch = window.locator("#score"), window.get_by_label("are keys")
    keys = window.get_by_role("button", name="? keys")
    expect(window.locator("#words")).not_to_have_text("…")
    keys.click()
    switch.uncheck()
    window.keyboard.press("Escape")
    before = score.input_value()
    window.keyboard.press("3")
    window.keyboard.press("p")
    expect(score).to_have_value(before)
    expect(score).not_to_be_focused()
    keys.click()
    switch.check()
    window.keyboard.press("Escape")
    window.keyboard.press("p")
    expect(score).to_be_focused()


def log_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Answers in words")).to_be_visible()


@pytest.fixture(scope="module")
def notebook(profile, lab):
    """A notebook in JupyterLab that has run, with every kind of output of the course."""
    every = verdict_notebook()
    every.cells += view_notebook().cells
    every.cells += map(new_code_cell, CELLS)
    nbformat.write(every, lab.course / "every.ipynb")
    page = profile.new_page()
    page.set_viewport_size({"width": DESKTOP, "height": 900})
    page.goto(lab.url("every.ipynb"))
    panel = opened(page, "every.ipynb")
    if page.locator("#jp-left-stack").is_visible():
        page.keyboard.press("Control+b")  # on a phone, there would be no place for the notebook
    choose(page, "Run", "Run All Cells")
    panel.get_by_text("3 of 3").wait_for()
    yield panel
    page.close()


CELLS = (
    """from utils.notebook import drills
drills.number("How many bytes?", 7, why="Because.", unit="bytes", wrong={8: "One too many."})""",
    """drills.choice("Which of these?", {"`a`": "So it is.", "b": "No."}, "`a`")""",
    """from utils.views import dropout_modes, key_explorer, schedule_clip
dropout_modes(torch.nn.Dropout(0.5), torch.ones(4))""",
    """key_explorer("aten::mm", torch.ones(2, 2))""",
    """from hood.learner.contents import show_contents
from hood.learner.progress import show_next, show_progress
show_contents()
show_progress()
show_next()""",
    """from utils.notebook.progress_bar import progress_bar
list(progress_bar(range(3), "training"))""",
)


def test_axe_finds_no_fault_in_the_outputs_of_a_notebook(notebook):
    page = notebook.page
    assert notebook.locator(".jp-OutputArea [role=slider]").count() > 3
    assert faults(page, ".jp-OutputArea", in_jupyterlab) == []
    page.set_viewport_size({"width": DESKTOP, "height": 900})
    in_jupyterlab(page, "light")


# Removes the page's log, and notes with which text a new log comes into the page.
WATCH = """() => {
  document.getElementById("open-the-hood-log")?.remove();
  window.begun = [];
  new MutationObserver((records) => records.forEach((one) => one.addedNodes.forEach((node) => {
    if (node.id === "open-the-hood-log") window.begun.push(node.textContent);
  }))).observe(document.body, {childList: true});
}"""


def test_a_new_verdict_is_read_out_and_its_card_has_an_order(notebook):
    page = notebook.page
    graded = notebook.locator(".jp-CodeCell").filter(has_text='check("byte_offset")')
    page.evaluate(WATCH)
    run(page, graded)
    log = page.get_by_role("log").and_(page.locator("#open-the-hood-log"))
    expect(log).to_have_text(re.compile(r"^byte_offset: 0 of 3 points\. Not yet: contiguous"))
    assert page.evaluate("window.begun") == [""]  # a log is heard only if it is there before
    expect(graded.locator("[data-said]")).to_have_count(0)  # or the words would come again
    expect(graded).to_match_aria_snapshot(CARD)


CARD = r"""
- 'heading "byte_offset: 0 of 3 points" [level=3]'
- list:
  - listitem:
    - text: /^not yet contiguous tensors \(0 of 1\) “elements for bytes”.+ to paste:$/
    - code: /^byte_offset\(.+ expected \d+, got \d+$/
  - listitem:
    - text: not yet
    - group: /^views with an offset \(0 of 1\)/
- text: "To read:"
- link "lesson 01, “The address of one element”"
"""


def test_a_live_view_says_what_it_shows(notebook):
    view = notebook.locator(".open-the-hood-live").first
    slider = view.get_by_role("slider", name="dim 0")
    slider.focus()
    picture, said = view.get_by_role("img"), view.get_by_role("status").last
    expect(slider).to_have_attribute("aria-valuetext", "1")
    for place in ("0", "1"):
        slider.press("ArrowLeft" if place == "0" else "ArrowRight")
        expect(slider).to_have_attribute("aria-valuetext", place)
        expect(said).to_contain_text(f"Index [{place}, 2] is 0")
        expect(picture).to_have_attribute("alt", said.locator("div").inner_text())


def test_a_slider_over_words_and_buttons_say_what_is_chosen(notebook):
    views = notebook.locator(".open-the-hood-live")
    slider = views.last.get_by_role("slider", name="operator")
    expect(slider).to_have_attribute("aria-valuetext", "mm")
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("[a-z]{3,}"))
    expect(views.last.get_by_role("status").last).not_to_contain_text("Key explorer for aten::mm.")
    modes = views.nth(1).get_by_role("group", name="mode")
    train, evaluate = modes.get_by_role("button").all()
    expect(train).to_have_attribute("aria-pressed", "true")
    evaluate.click()
    expect(evaluate).to_have_attribute("aria-pressed", "true")
    expect(train).to_have_attribute("aria-pressed", "false")
    expect(views.nth(1).get_by_role("status").last).to_contain_text("In eval")


def test_the_reason_of_a_live_drill_is_read_out(notebook):
    drill = notebook.get_by_role("group", name="How many bytes?")
    said = drill.get_by_role("status")
    expect(said).to_have_text("")
    field = drill.get_by_role("textbox")
    field.fill("8")
    field.press("Enter")
    expect(said).to_contain_text("One too many.")


def test_the_first_key_reaches_the_link_to_the_text(window, site):
    window.goto(f"{site[0]}/{START}")
    window.keyboard.press("Tab")
    skip = window.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    window.keyboard.press("Enter")
    window.keyboard.press("Tab")
    assert window.evaluate("document.activeElement.closest('article') !== null")


# What has the focus: its kind, and whether it is seen, with a frame of its own or of its label.
FOCUSED = """() => {
  const one = document.activeElement;
  const framed = (element) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
  };
  const labels = [...(one.labels ?? [])].filter((label) => label.getClientRects().length);
  const shown = [one, ...labels].filter(framed);
  const { top, bottom } = (shown[0] ?? one).getBoundingClientRect();
  one.dataset.reached = "";
  return {
    what: `${one.localName}.${one.className} ${one.textContent.slice(0, 40)}`,
    framed: shown.length > 0,
    seen: top < innerHeight && bottom > 0,
    last: one === document.body,
  };
}"""
# What a mouse can use in the text and in the contents, that no key has reached.
MISSED = """() => [...document.querySelectorAll(
  ":is(article, .sidebar-drawer) :is(a[href], button, input, select, summary)")]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !("reached" in one.dataset))
  .map((one) => one.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_keys_reach_everything_in_a_lesson_and_the_focus_is_seen(window, site, width):
    window.set_viewport_size({"width": width, "height": 900})
    window.emulate_media(reduced_motion="reduce")
    window.goto(f"{site[0]}/{LESSON}")
    window.evaluate(UNFOLD)
    settled(window)
    unseen = []
    for _ in range(1000):
        window.keyboard.press("Tab")
        focused = window.evaluate(FOCUSED)
        if focused["last"]:
            break
        if not (focused["framed"] and focused["seen"]):
            unseen.append(focused["what"])
    assert focused["last"]
    assert unseen == []
    assert window.evaluate(MISSED) == []


@pytest.mark.parametrize(
    ("field", "drawer"), [("__navigation", "Contents"), ("__toc", "On this page")]
)
def test_keys_open_and_close_the_contents_on_a_phone(window, site, field, drawer):
    window.set_viewport_size({"width": PHONE, "height": 900})
    window.goto(f"{site[0]}/{LESSON}")
    contents = window.get_by_role("complementary", name=drawer)
    expect(contents).to_have_count(0)  # closed, no key reaches it
    window.locator(f"#{field}").focus()
    window.keyboard.press("Space")
    expect(contents).to_be_visible()
    assert window.evaluate("document.activeElement.closest('aside') !== null")
    window.keyboard.press("Escape")
    expect(contents).to_have_count(0)
    expect(window.locator(f"#{field}")).to_be_focused()


def test_a_view_of_the_site_says_what_it_shows(window, site):
    window.goto(f"{site[0]}/{LESSON}")
    window.evaluate(UNFOLD)
    view = window.locator(".view").first
    slider, said = view.get_by_role("slider", name="step"), view.get_by_role("status")
    expect(slider).to_have_attribute("aria-valuetext", "1")
    expect(view.get_by_role("img")).to_have_attribute("alt", re.compile("step 1 of 5"))
    for key, place in (("ArrowLeft", "0"), ("ArrowRight", "1")):
        slider.press(key)
        expect(view).to_have_attribute("data-at", place)
        expect(slider).to_have_attribute("aria-valuetext", place)
        expect(said).not_to_be_empty()
        expect(view.get_by_role("img")).to_have_attribute("alt", said.inner_text())


def test_the_reason_of_a_drill_is_read_out(window, site):
    window.goto(f"{site[0]}/{LESSON}")
    drill = window.locator("form.drill").filter(has_text="What is the adjoint of x")
    question = drill.locator(".question").inner_text()
    field = drill.get_by_role("group", name=question).get_by_role("textbox")
    said = drill.get_by_role("status")
    expect(said).to_be_empty()
    field.fill("7")
    field.press("Enter")
    expect(said).to_have_text("Not 7. The answer is larger.")


def test_each_header_of_a_table_says_what_it_heads(window, site, pages):
    headers = 0
    for address in (f"{site[0]}/{START}", f"{site[0]}/docs/reference/commands.html"):
        window.goto(address)
        headers += window.locator("article th").count()
        expect(window.locator("article th:not([scope])")).to_have_count(0)
        expect(window.locator("article table:not(:has(th))")).to_have_count(0)
    assert headers > 20


# Elements that make the page wider than the window, or scroll sideways in it, other than those that
# keep their lines: code, outputs, tables, figures and formulas.
WIDE = """(window) => {
  const kept = "pre, table, .shown, figure, .math, .drawing, .table-wrapper, .theirs, .question";
  const wide = [...document.querySelectorAll("body *")].filter((one) => {
    const { overflowX, position } = getComputedStyle(one);
    const scrolls = one.scrollWidth > one.clientWidth + 1 && ["auto", "scroll"].includes(overflowX);
    return scrolls && one.checkVisibility() && !one.closest(kept);
  });
  const page = document.documentElement;
  return [...(page.scrollWidth > page.clientWidth ? [page] : []), ...wide]
    .map((one) => one.outerHTML.slice(0, 200));
}"""


def test_at_400_percent_only_code_and_figures_scroll_sideways(window, site, pages, service):
    address, (marta, _) = service
    window.set_viewport_size({"width": SMALLEST, "height": 256})
    every = [f"{site[0]}/{path}" for path in SITE] + [(pages / name).as_uri() for name in CLASS]
    for place in every:
        window.goto(place)
        window.evaluate(UNFOLD)
        settled(window)
        assert window.evaluate(WIDE) == [], place
    window.context.clear_cookies()
    window.goto(f"{address}marking/")
    assert window.evaluate(WIDE) == []
    log_in(window, marta)
    assert window.evaluate(WIDE) == []
    window.get_by_role("link", name="Why did nothing complain?").click()
    expect(window.locator("#words")).not_to_have_text("…")
    assert window.evaluate(WIDE) == []


MOVING = """() => [...document.querySelectorAll("*")].filter((one) => {
  const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(one);
  const moves = transitionDuration.split(",").some((time) => parseFloat(time) > 0);
  return moves || animationName !== "none" || scrollBehavior === "smooth";
}).map((one) => one.outerHTML.slice(0, 100))"""


def test_feedback_is_heard_in_the_order_mark_status_mistake_call_and_link(window, pages):
    window.goto((pages / "feedback.html").as_uri())
    exercise = window.get_by_role("article").filter(has=window.get_by_text("sliced"))
    expect(exercise).to_match_aria_snapshot(EXERCISE)


EXERCISE = r"""
- heading "1 · Views of x views" [level=2]
- paragraph: 1 of 3 points
- list:
  - listitem:
    - text: right
    - paragraph: fresh (1 of 1)
  - listitem:
    - text: not yet
    - paragraph: sliced (0 of 1)
    - paragraph: "“a name”: a sentence about it."
    - paragraph: "For example, to paste into your notebook:"
    - code: /^views\(1\) .+expected 2, got/
  - listitem:
    - text: not yet
    - group: /^turned \(0 of 0.5\)/
- paragraph:
  - text: "To read again:"
  - link /lesson 01, /
"""


def test_nothing_moves_for_readers_who_ask_for_no_motion(window, site, pages):
    for place in (f"{site[0]}/{LESSON}", (pages / "feedback.html").as_uri()):
        window.emulate_media(reduced_motion="no-preference")
        window.goto(place)
        assert window.evaluate(MOVING)
        window.emulate_media(reduced_motion="reduce")
        assert window.evaluate(MOVING) == []


# The elements that show an amount or a state by their background alone, and have the page's own.
PALE = """(bars) => [...document.querySelectorAll(bars)].filter((bar) => {
  const colour = getComputedStyle(bar).backgroundColor;
  return colour === getComputedStyle(document.body).backgroundColor;
}).map((bar) => bar.outerHTML)"""


def test_bars_are_seen_in_chosen_colours(window, pages):
    window.emulate_media(forced_colors="active")
    for name, bars in (("feedback.html", ".bar i.some"), ("report.html", ".histogram i, i.all")):
        window.goto((pages / name).as_uri())
        assert window.locator(bars).count()
        assert window.evaluate(PALE, bars) == []
