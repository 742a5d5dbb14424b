"""Sixty answers are marked with the keyboard alone, and two markers keep each other's marks."""

import getpass
import random
import re
import sqlite3
import threading

import pytest
import uvicorn
from nbgrader.api import Gradebook
from playwright.sync_api import Page, expect

from hood.classroom.service.app import make_app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.people import OfFile
from tests.hood.classroom.marking.classroom import (
    LAB,
    STUB,
    hand_in,
    make_classroom,
    recorded,
    regraded,
)
from tests.hood.classroom.marking.server import TOKEN, Server
from tests.patience import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow(60)]
SENTENCES = [
    "The shapes align on the right, so `(B, 1)` and `(B,)` become (B, B).",
    "The mean then runs over all $B^2$ pairs.",
    "Each prediction is pulled towards all targets.",
    "# score\n\nIt was a scalar.",  # a heading with the id of a field of the page
    "<img src=x onerror=\"document.title = 'mine'\"><script>document.title = 'mine'</script> Ha.",
    "[all points](javascript:alert(1)) <form action=/marking><button>3</button></form>",
]
LEARNERS = [f"{first}_{last}" for first in ("ana", "bo", "cy") for last in map(str, range(20))]


DRAW = random.Random(60)
ANSWERS = {one: "\n\n".join(DRAW.sample(SENTENCES, DRAW.randint(1, 3))) for one in LEARNERS}


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    return make_classroom(tmp_path_factory.mktemp("marking") / "course", ANSWERS | {"ana_3": STUB})


@pytest.fixture(scope="module")
def server(classroom):
    found = Server(classroom.root, "teach")
    yield found
    found.close()


@pytest.fixture
def course(classroom):
    """The course before anybody has marked anything."""
    with sqlite3.connect(classroom.database) as book:
        book.execute("UPDATE grade SET manual_score = NULL, needs_manual_grade = 1")
        book.execute("UPDATE comment SET manual_comment = NULL")
        book.execute("DROP TABLE IF EXISTS open_the_hood_marks")
    return classroom


@pytest.fixture
def desk(page, server, course):
    """The page of the question, opened from the list."""
    return opened(page, server)


def opened(page: Page, server: Server) -> Page:
    page.goto(f"{server.address}marking?token={TOKEN}")
    page.get_by_role("link", name="Why did nothing complain?").click()
    expect(page.locator("#who")).to_contain_text("1 of 60 · learner ")
    expect(page.locator("#words")).not_to_have_text("…")
    return page


def whose(page: Page) -> str:
    """Look up whose answer is open, as a marker may do."""
    page.keyboard.press("w")
    shown = page.locator("#who")
    expect(shown).not_to_contain_text("learner ")
    name = shown.inner_text().partition(" · ")[2]
    page.keyboard.press("w")
    expect(shown).to_contain_text("learner ")
    return name.lower().replace(" ", "_")


def test_the_menu_of_jupyterlab_opens_the_list(page, server, course):
    page.goto(f"{server.address}lab?token={TOKEN}")
    page.get_by_role("menuitem", name="Marking").click()
    with page.expect_popup() as opened:
        page.get_by_role("menuitem", name="Answers in words").click()
    expect(opened.value.get_by_role("link", name="Why did nothing complain?")).to_be_visible()
    assert opened.value.url == f"{server.address}marking/"


def test_sixty_answers_are_marked_with_the_keyboard(desk, course):
    asked, said = [], []
    desk.on("request", lambda request: asked.append(request.url))
    desk.on("console", lambda message: said.append(message.text))
    keys, wanted = desk.keyboard, {}
    for number in range(60):
        expect(desk.locator("#who")).to_contain_text(f"{number + 1} of 60")
        if number < 4:
            wanted[whose(desk)] = number
        for box in range(1, number % 4 + 1):
            keys.press(str(box))
        if number % 4 == 0:
            keys.press("0")
        if number == 1:
            keys.press("Enter")
            keys.type("Say which rule.")
            keys.press("Enter")
        if number > 1:
            keys.press("a")
        keys.press("j")
    expect(desk.locator("#progress")).to_have_text("60 of 60 marked.")
    expect(desk.locator("#said")).to_have_text("This is the last answer.")
    with Gradebook(course.directory.db_url) as gradebook:
        grades = [gradebook.find_grade("why", LAB, LAB, one) for one in LEARNERS]
        assert sorted(one.manual_score for one in grades) == sorted([0.0, 1.0, 2.0, 3.0] * 15)
        assert not any(one.needs_manual_grade for one in grades)
        comments = [gradebook.find_comment("why", LAB, LAB, one).comment for one in LEARNERS]
        assert comments.count("Say which rule.") == 59
    for student, score in wanted.items():
        assert recorded(course, student)[0] == score
    # no answer ran, loaded anything, or replaced the page's own fields
    assert desk.title() == "2 · Why did nothing complain?: marking"
    assert [url for url in asked if "/marking/" not in url] == []
    assert [text for text in said if "Content Security Policy" in text or "Error" in text] == []


def test_all_blank_answers_get_0_points_after_a_question_and_undo_clears_them(desk, course):
    blank = ["ana_3", *LEARNERS[20:25]]
    for student in blank:
        hand_in(course, student, STUB)
    said, asks, keys = desk.locator("#said"), desk.locator("#blank"), desk.keyboard
    keys.press("x")
    expect(asks).to_contain_text("Answers that wait for a mark: 60. Blank answers among them: 6.")
    keys.press("j")  # only its buttons work now
    desk.get_by_role("button", name="Leave them").click()
    expect(asks).to_be_hidden()
    expect(desk.locator("#progress")).to_have_text("0 of 60 marked, 60 to go.")
    keys.press("x")
    desk.get_by_role("button", name="Give them 0 points").click()
    expect(said).to_have_text("6 blank answers got 0 of 3 points; press u to undo this.")
    expect(desk.locator("#progress")).to_have_text("6 of 60 marked, 54 to go.")
    marked = {one for one in LEARNERS if recorded(course, one)[:2] == (0.0, False)}
    assert marked == set(blank)
    assert whose(desk) not in marked  # the open answer waits
    keys.press("u")
    expect(said).to_have_text("Undone: 6 blank answers wait for a mark again.")
    expect(desk.locator("#progress")).to_have_text("0 of 60 marked, 60 to go.")
    assert all(recorded(course, one)[:2] == (None, True) for one in LEARNERS)
    for student in blank[1:]:
        hand_in(course, student, ANSWERS[student])
    keys.press("x")
    expect(asks).to_contain_text("Answers that wait for a mark: 60. Blank answers among them: 1.")
    keys.press("Escape")
    expect(asks).to_be_hidden()
    assert recorded(course, "ana_3")[0] is None


def test_typed_points_replace_the_boxes_and_each_undo_takes_back_one_mark(desk, course):
    keys = desk.keyboard
    first = whose(desk)
    keys.press("1")
    expect(desk.locator("#score")).to_have_value("1")
    keys.press("p")
    keys.type("2,5")
    keys.press("Enter")
    keys.press("j")
    expect(desk.locator("#who")).to_contain_text("2 of 60")
    second = whose(desk)
    assert recorded(course, first)[:2] == (2.5, False)
    keys.press("3")
    keys.press("u")  # not saved yet
    expect(desk.locator("#score")).to_have_value("")
    keys.press("3")
    keys.press("j")
    expect(desk.locator("#who")).to_contain_text("3 of 60")
    assert recorded(course, second)[0] == 1.0
    desk.reload()
    expect(desk.locator("#who")).to_contain_text("3 of 60")  # the first answer without a mark
    for place, student in [(2, second), (1, first)]:
        keys.press("u")
        expect(desk.locator("#who")).to_contain_text(f"{place} of 60")
        expect(desk.locator("#said")).to_have_text("Undone: the answer has no mark again.")
        assert recorded(course, student)[:2] == (None, True)
    keys.press("u")
    expect(desk.locator("#said")).to_contain_text("no mark of yours")


def test_invalid_points_are_not_saved_and_the_answer_stays_open(desk, course):
    student = whose(desk)
    for typed in ("7", "x", "-1"):
        desk.keyboard.press("p")
        desk.keyboard.type(typed)
        desk.keyboard.press("Enter")
        desk.keyboard.press("j")
        expect(desk.locator("#said")).to_contain_text(re.compile("points from 0 to 3"))
        expect(desk.locator("#who")).to_contain_text("1 of 60")
    assert recorded(course, student)[0] is None
    desk.keyboard.press("u")


def test_a_second_marker_is_asked_and_no_mark_is_lost(desk, course, server, profile):
    other = opened(profile.browser.new_context().new_page(), server)
    student = whose(desk)
    for key in ("1", "2", "j"):
        other.keyboard.press(key)
    expect(other.locator("#who")).to_contain_text("2 of 60")
    desk.keyboard.press("0")
    desk.keyboard.press("j")
    told = desk.get_by_role("alert")
    expect(told).to_contain_text("left 2 of 3 while you had this answer open")
    expect(told).to_contain_text("Your mark, not saved: 0 of 3")
    expect(desk.locator("#who")).to_contain_text("1 of 60")
    assert recorded(course, student)[0] == 2.0
    desk.keyboard.press("t")
    expect(told).to_be_hidden()
    expect(desk.locator("#score")).to_have_value("2")
    expect(desk.locator("#state")).to_contain_text("gave 2 of 3")
    other.keyboard.press("k")
    expect(other.locator("#who")).to_contain_text("1 of 60")
    expect(other.locator("#score")).to_have_value("2")
    desk.keyboard.press("3")
    desk.keyboard.press("j")
    expect(desk.locator("#who")).to_contain_text("2 of 60")
    other.keyboard.press("0")
    other.keyboard.press("j")
    expect(other.get_by_role("alert")).to_contain_text("left 3 of 3")
    assert recorded(course, student)[0] == 3.0
    other.keyboard.press("y")
    expect(other.get_by_role("alert")).to_be_hidden()
    expect(other.locator("#state")).to_contain_text("gave 0 of 3")
    assert recorded(course, student)[0] == 0.0
    other.context.close()


def test_an_answer_changed_since_its_mark_says_so(desk, course):
    student = whose(desk)
    for key in ("1", "2", "j"):
        desk.keyboard.press(key)
    expect(desk.locator("#who")).to_contain_text("2 of 60")
    regraded(course, student, "Because of the rule.")
    desk.reload()
    expect(desk.locator("#who")).to_contain_text("1 of 60")
    expect(desk.locator("#state")).to_contain_text("Changed since it was marked.")
    expect(desk.locator("#words")).to_have_text("Because of the rule.")
    expect(desk.locator("#score")).to_have_value("2")
    assert recorded(course, student)[:2] == (2.0, True)
    desk.keyboard.press("y")
    expect(desk.locator("#state")).not_to_contain_text("Changed")
    assert recorded(course, student)[:2] == (2.0, False)


def test_a_narrow_page_shows_everything_without_overflow(desk):
    desk.set_viewport_size({"width": 420, "height": 800})
    assert desk.evaluate("document.documentElement.scrollWidth") <= 420
    desk.get_by_role("button", name="next", exact=True).click()
    expect(desk.locator("#who")).to_contain_text("2 of 60")
    desk.set_viewport_size({"width": 1400, "height": 1000})


@pytest.fixture
def divided(course):
    """The user who runs the server has a section: the learners whose names begin with a."""
    rows = [f"{one},{one[0].upper()}" for one in LEARNERS]
    (course.root / "class.csv").write_text("\n".join(["Id,Group", *rows]))
    graders = f"A: {{graders: [{getpass.getuser()}]}}, B: {{graders: [ben]}}, C: {{graders: [cyd]}}"
    rules = f"sections: {{{graders}}}\nroster: {{file: class.csv, id: Id, section: Group}}\n"
    (course.root / "course.yml").write_text(rules)
    yield course
    (course.root / "course.yml").unlink()


def test_a_grader_sees_the_own_section_first_and_all_with_one_key(page, server, divided):
    page.goto(f"{server.address}marking?token={TOKEN}")
    expect(page.locator(".tasks")).to_contain_text("20 not marked")
    expect(page.locator(".tasks")).to_contain_text("other answers to mark: 40")
    page.get_by_role("link", name="Why did nothing complain?").click()
    expect(page.locator("#who")).to_contain_text("1 of 20")
    expect(page.locator("#share")).to_contain_text("You see section A, and learners who have no")
    expect(page.locator("#row button")).to_have_count(20)
    student = whose(page)
    assert student.startswith("ana_")
    page.keyboard.press("1")
    page.keyboard.press("s")  # saves, and stays at the same answer
    expect(page.locator("#progress")).to_have_text("1 of 60 marked, 59 to go.")
    expect(page.locator("#share")).to_have_text("You see the answers of all sections.")
    assert recorded(divided, student)[0] == 1.0
    assert whose(page) == student
    while whose(page).startswith("ana_"):
        page.keyboard.press("j")
    other = whose(page)
    page.keyboard.press("2")
    page.keyboard.press("s")
    expect(page.locator("#who")).to_contain_text("of 20")
    expect(page.locator("#share")).to_contain_text("Other answers to mark: 39.")
    assert recorded(divided, other)[0] == 1.0  # the second box is also worth a point
    page.keyboard.press("u")  # takes back a mark outside the share, and shows it
    expect(page.locator("#said")).to_have_text("Undone: the answer has no mark again.")
    expect(page.locator("#who")).to_contain_text("of 60")
    assert whose(page) == other
    assert recorded(divided, other)[0] is None


def test_an_empty_share_says_so(page, server, divided):
    roster = divided.root / "class.csv"
    roster.write_text(re.sub(",A$", ",B", roster.read_text(), flags=re.MULTILINE))
    page.goto(f"{server.address}marking?token={TOKEN}")
    page.get_by_role("link", name="Why did nothing complain?").click()
    expect(page.locator("#progress")).to_have_text("Nobody of your share has answered yet.")
    expect(page.locator("#one")).to_be_hidden()
    for expected in ("1 of 60", None, "1 of 60"):
        page.keyboard.press("s")
        if expected:
            expect(page.locator("#who")).to_contain_text(expected)
            expect(page.locator("#words")).not_to_have_text("…")
        else:
            expect(page.locator("#one")).to_be_hidden()


@pytest.fixture
def service(classroom):
    """The service's address, and the tokens of two instructors."""
    people = OfFile(classroom.root, ["marta", "ben"])
    app = make_app(Dispatcher(classroom, workers=0), people)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started, "the service's start")
    [bound] = server.servers[0].sockets
    tokens = {name: people.token(name) for name in ("marta", "ben")}
    yield f"http://127.0.0.1:{bound.getsockname()[1]}/marking/", tokens
    server.should_exit = True
    thread.join()


def test_the_service_has_the_same_pages(profile, service, course):
    address, tokens = service
    pages = {}
    for name, token in tokens.items():
        page = pages[name] = profile.browser.new_context().new_page()
        page.goto(address)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="Why did nothing complain?").click()
        expect(page.locator("#who")).to_contain_text("1 of 60 · learner ")
        expect(page.locator("#words")).not_to_have_text("…")
    marta, ben = pages.values()
    student = whose(marta)
    expect(marta.get_by_text("The whole notebook")).to_be_hidden()  # there is no formgrader
    for key in ("1", "2", "j"):
        marta.keyboard.press(key)
    expect(marta.locator("#who")).to_contain_text("2 of 60")
    assert recorded(course, student)[0] == 2.0
    for key in ("0", "j"):
        ben.keyboard.press(key)
    expect(ben.get_by_role("alert")).to_contain_text("marta left 2 of 3")
    ben.keyboard.press("t")
    expect(ben.locator("#score")).to_have_value("2")
    marta.keyboard.press("u")
    expect(marta.locator("#said")).to_have_text("Undone: the answer has no mark again.")
    assert recorded(course, student)[0] is None
    for page in pages.values():
        page.context.close()
