"""The static site in a real browser: readable, interactive, and without foreign requests."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, expect

from hood.phase_paths import slug
from tests.browser.conftest import MILLISECONDS
from tests.browser.course_site import LAB, LESSON, START, Reader
from utils.notebook.drills import read_number

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow(30),
    pytest.mark.filterwarnings("ignore:.*Check CHANGES for Sphinx API"),
]

MEGABYTE = 1_000_000
RUN = "article a[href$='run.html']"
PAGES = (START, LESSON, LAB)


@pytest.fixture
def reader(request, profile, site):
    """A new window of a width and in a theme. At its end, it must have made no foreign request."""
    width, theme = getattr(request, "param", (1440, "light"))
    assert profile.browser is not None
    context = profile.browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme
    )
    context.set_default_timeout(MILLISECONDS)
    found = Reader(context, *site)
    yield found
    context.close()
    assert found.foreign == []
    assert found.errors == []


@pytest.mark.parametrize(
    "reader",
    [
        (1440, "light"),
        (380, "dark"),
        pytest.param((1440, "dark"), marks=pytest.mark.full),
        pytest.param((380, "light"), marks=pytest.mark.full),
    ],
    indirect=True,
)
def test_three_pages_can_be_read_on_desktop_and_phone_in_light_and_dark(reader):
    for path in PAGES:
        page = reader.open(path)
        assert 100_000 < reader.weight() < MEGABYTE, path
        seen = page.evaluate(LOOK)
        assert seen["overflow"] <= 0, path
        assert seen["contrast"] >= 7, path
        assert seen["dark"] == (page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"))
        assert seen["letters"] >= 16
        assert seen["fonts"], path
        assert page.locator(RUN).count(), path


# What a reader sees: whether the page is wider than the window; the contrast of text and
# background, by WCAG's formula; whether the background is dark; the size of letters; the site's own
# fonts.
LOOK = """async () => {
  await document.fonts.ready;
  const numbers = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const text = getComputedStyle(document.querySelector("article p"));
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const [high, low] = [light(text.color), ground].sort((a, b) => b - a);
  return {
    overflow: document.documentElement.scrollWidth - innerWidth,
    contrast: (high + 0.05) / (low + 0.05),
    dark: ground < 0.2,
    letters: parseFloat(text.fontSize),
    fonts: document.fonts.check("16px 'Source Serif 4'"),
  };
}"""


def test_a_drill_explains_its_answer_and_its_source_is_hidden(reader):
    page = reader.open(PAGES[1])
    drill = page.locator("form.drill").filter(has_text="What is the adjoint of x")
    field = drill.get_by_role("textbox")
    field.fill("5")
    field.press("Enter")
    expect(drill.locator("output")).to_contain_text("That is one of two paths")
    field.fill("7")
    drill.get_by_role("button", name="Check").click()
    expect(drill.locator("output")).to_have_text("Not 7. The answer is larger.")
    field.fill("ten")
    field.press("Enter")
    expect(drill.locator("output")).to_contain_text("is not a number I can read")
    field.fill(" 10,0 ")
    field.press("Enter")
    expect(drill.locator("output .right")).to_contain_text("Each use has the local derivative 5")

    choice = page.locator("form.drill").filter(has_text="Which of these orders")
    choice.get_by_role("button", name="a, b, c, d, L").click()
    expect(choice.locator("output .wrong")).to_contain_text("the order of the forward pass")
    choice.get_by_role("button", name="L, d, c, a, b").click()
    expect(choice.locator("output .right")).to_contain_text("Every node comes after all")
    text = page.content()
    assert "hide-input" not in text
    assert "number(" not in page.locator("article").inner_text()


def test_the_script_parses_numbers_as_a_live_drill_does(reader):
    page = reader.open(PAGES[1])
    typed = ["12", " -3.5 ", "153,600", "153 600", "1_000", "0,5", "1.5e3", "256 bytes", "1,2,3"]
    typed += ["", "x", "0x10", "1e999", "nan", ".5", "5.", "1,234.5", "12,34", "+7", "1e-3 BYTES"]
    for text in typed:
        try:
            wanted = read_number(text, "bytes")
        except ValueError:
            wanted = None
        got = page.evaluate("text => hood.readNumber(text, 'bytes')", text)
        assert (None if got != got or got in (float("inf"),) else got) == wanted, text


def drawn(picture: Locator) -> bytes:
    """Return a screenshot of a lazily loaded picture, after the picture has loaded."""
    picture.scroll_into_view_if_needed()
    picture.locator("img").evaluate("image => image.decode()")
    return picture.screenshot()


@pytest.mark.parametrize(
    "reader", [pytest.param((1440, "light"), marks=pytest.mark.full), (380, "dark")], indirect=True
)
def test_a_prediction_folds_and_its_view_moves(reader):
    page = reader.open(PAGES[1])
    view = page.locator(".view").first
    expect(view).to_be_hidden()
    pictures = view.get_attribute("data-src").removeprefix("..")
    assert not any(url.endswith(pictures) for url in sorted(reader.loaded))
    page.locator("details.prediction").filter(has=view).locator("> summary").click()
    expect(view).to_be_visible()
    slider = view.get_by_role("slider")
    last = int(slider.get_attribute("max"))
    picture = view.locator(".stage")
    first = drawn(picture)
    spoken = view.get_by_role("status")
    slider.focus()
    seen = {first}
    for key, places in (("ArrowLeft", [0]), ("ArrowRight", range(1, last + 1))):
        for at in places:
            slider.press(key)
            expect(view.locator(".value")).to_have_text(str(at))
            expect(view).to_have_attribute("data-at", str(at))
            expect(spoken).not_to_be_empty()
            seen.add(drawn(picture))
            box = picture.locator("img").bounding_box()
            assert at == 1 or picture.locator("canvas").bounding_box() == box
    assert len(seen) == last + 1
    for _ in range(last - 1):
        slider.press("ArrowLeft")
    expect(view).to_have_attribute("data-at", "1")  # where it begins
    expect(view.locator("canvas")).to_have_count(0)
    assert drawn(picture) == first
    assert any(url.endswith(pictures) for url in sorted(reader.loaded))


def test_an_exercise_links_its_section(reader):
    page = reader.open(PAGES[2])
    link = page.get_by_text("From the lesson:").first.get_by_role("link")
    heading = link.inner_text()
    link.click()
    page.wait_for_url(f"**/{PAGES[1]}#{slug(heading)}")
    expect(page.get_by_role("heading", name=heading, exact=False).first).to_be_in_viewport()


def test_contents_next_previous_and_search_lead_through_the_site(reader):
    page = reader.open(PAGES[0])
    page.get_by_role("complementary").first.get_by_role("link", name="Autograd by hand").click()
    page.wait_for_url(f"**/{PAGES[1]}")
    page.get_by_role("link", name="Next").click()
    page.wait_for_url(f"**/{PAGES[2]}")
    page.get_by_role("link", name="Previous").click()
    page.wait_for_url(f"**/{PAGES[1]}")
    page.get_by_placeholder("Search").fill("gradcheck")
    page.get_by_placeholder("Search").press("Enter")
    results = page.locator("#search-results li a").filter(has_text="Autograd by hand")
    found = results.filter(has_text="A Function of your own").first
    found.click()
    page.wait_for_url(f"**/{PAGES[1]}#a-function-of-your-own")
    heading = page.get_by_role("heading", name="A Function of your own", exact=False)
    expect(heading).to_be_in_viewport()


@pytest.mark.parametrize(
    ("words", "stem"),
    [("gradcheck", "gradcheck"), ("broadcasting", "broadcast"), ("saved tensors", "save")],
)
def test_a_search_result_is_a_section_or_shows_the_word(reader, words, stem):
    page = reader.open(f"search.html?q={words}")
    links = page.locator("#search-results li a").all()
    assert links
    leads = [urlsplit(link.evaluate("link => link.href")) for link in links]
    for lead in leads[:3]:
        reader.open(f"{lead.path}?{lead.query}#{lead.fragment}".lstrip("/"))
        if lead.fragment:
            section = page.locator(f"[id='{lead.fragment}']")
            expect(section.get_by_role("heading").first).to_be_in_viewport()
            assert stem in section.inner_text().lower()
        else:
            expect(page.locator("article span.highlighted").first).to_be_attached()
            page.wait_for_function(SEEN)
    assert any(lead.fragment for lead in leads)


# Whether a marked word is in the window.
SEEN = """() => [...document.querySelectorAll("article span.highlighted")].some((word) => {
  const { top, bottom } = word.getBoundingClientRect();
  return 0 <= top && bottom <= innerHeight;
})"""


def test_without_scripts_a_drill_has_no_button_and_its_answers_unfold(profile, site):
    context = profile.browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{site[0]}/{PAGES[1]}")
        drills = page.locator("form.drill")
        assert drills.count() > 5
        controls = drills.locator("button, input")
        assert not any(control.is_visible() for control in controls.all())
        for drill in drills.all():
            assert drill.locator("details").count() >= 1
        drill = drills.filter(has_text="What is the adjoint of x")
        # find the answer by selectors, because Playwright finds no text inside <noscript>
        answer = drill.locator("details").first
        answer.locator("summary").click()
        assert answer.locator("> div").is_visible()
        assert "Each use has the local derivative 5" in answer.locator("> div").inner_text()
    finally:
        context.close()


def test_a_page_without_a_kernel_tells_nobody_to_run_a_cell(reader):
    page = reader.open(PAGES[0])
    said = page.locator("article").inner_text()
    assert "come back" not in said
    assert "show_next" not in said
    assert "Run this cell" not in said


def test_spanish_text_is_marked_as_spanish(reader):
    for path in PAGES[:2]:
        page = reader.open(path)
        section = page.locator("section[lang=es]")
        expect(section).to_have_count(1)
        expect(section.get_by_role("heading")).to_contain_text("Resumen en español")
        assert page.locator("html").get_attribute("lang") == "en"


def test_a_page_says_where_to_run_its_cells(reader):
    page = reader.open(PAGES[1])
    assert "executed with Python 3.11, torch 2.13.0" in page.locator("article").inner_text()
    page.locator(RUN).first.click()
    page.wait_for_url("**/run.html")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Run it yourself")
