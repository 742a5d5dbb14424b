"""Drills answer in place when live, are complete on paper, and never wait."""

from __future__ import annotations

import re
from types import SimpleNamespace

import IPython
import pytest

from hood import audience
from utils.notebook import drills

WIDGET = "application/vnd.jupyter.widget-view+json"
WRONG = {64: "That is the number of elements."}


@pytest.fixture
def published(monkeypatch):
    """The mime bundles that drills display, as in a kernel with a notebook open."""
    bundles: list[dict] = []
    monkeypatch.delenv(audience.BUILD, raising=False)
    monkeypatch.setattr(drills, "in_ipython", lambda: True)
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr("IPython.display.publish_display_data", bundles.append)
    return bundles


@pytest.fixture
def widget(monkeypatch, published):
    """Runs a drill and returns the widget it made."""
    made = []
    keep = drills._stack
    monkeypatch.setattr(drills, "_stack", lambda *parts: made.append(keep(*parts)) or made[-1])

    def run(drill, *args, **kwargs):
        drill(*args, **kwargs)
        return made[-1]

    return run


def ask_bytes():
    drills.number("How many bytes?", 256, unit="bytes", why="64 times 4.", wrong=WRONG)


def ask_stride(answer="(1, 64)"):
    drills.choice(
        "Strides of `W.t()`?",
        {"(1, 64)": "The two strides swap.", "(600, 1)": "That would be a copy."},
        answer,
    )


def feedback(box):
    return box.children[2].value


def test_number_tells_right_from_wrong_and_why(widget):
    box = widget(ask_bytes)
    field, check = box.children[1].children
    field.value = "256"
    assert "Right: 256 bytes" in feedback(box)
    assert "64 times 4" in feedback(box)
    field.value = "64"
    assert "Not 64" in feedback(box)
    assert "number of elements" in feedback(box)
    field.value = "300"
    assert "smaller" in feedback(box)
    field.value = "many"
    assert "not a number I can read" in feedback(box)
    field.value = "256 bytes"
    check.click()
    assert "Right" in feedback(box)


def test_number_tolerance_is_a_difference(widget):
    box = widget(drills.number, "How much?", 0.5, why="A half.", tolerance=0.01)
    field = box.children[1].children[0]
    field.value = "0.505"
    assert "Right" in feedback(box)
    field.value = "0.52"
    assert "Not 0.52" in feedback(box)


def test_an_empty_field_is_no_answer(widget):
    box = widget(ask_bytes)
    box.children[1].children[1].click()
    assert feedback(box) == ""


def test_choice_explains_each_option(widget):
    box = widget(ask_stride)
    right, wrong = box.children[1].children
    wrong.click()
    assert "No." in feedback(box)
    assert "That would be a copy." in feedback(box)
    right.click()
    assert "Right." in feedback(box)
    assert right.style.button_color == drills.RIGHT_TINT
    assert wrong.style.button_color == drills.WRONG_TINT


@pytest.mark.parametrize("answer", [True, False])
def test_true_false(widget, answer):
    box = widget(drills.true_false, "A view owns bytes.", answer, "The storage does.")
    buttons = {button.description: button for button in box.children[1].children}
    buttons[str(answer)].click()
    assert "Right." in feedback(box)
    buttons[str(not answer)].click()
    assert "No." in feedback(box)
    assert "The storage does." in feedback(box)


def test_live_carries_its_paper_form(published):
    ask_stride()
    assert set(published[0]) >= {WIDGET, "text/html", "text/plain"}


def test_built_form_has_no_widget_and_folds_every_answer(monkeypatch, published):
    monkeypatch.setenv(audience.BUILD, "1")
    ask_stride()
    ask_bytes()
    for bundle in published:
        assert set(bundle) == {"text/html", "text/plain"}
        assert "open" not in re.findall(r"<details([^>]*)>", bundle["text/html"])
    choice, number = (bundle["text/html"] for bundle in published)
    assert choice.count("<details") == 2
    assert number.count("<details") == 1 + len(WRONG)
    outside = re.sub(r"<details.*?</details>", "", number)
    assert "256" not in outside
    assert "256" not in published[1]["text/plain"]


def test_an_ipython_terminal_gets_no_widget(monkeypatch, published):
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace())
    ask_stride()
    assert WIDGET not in published[0]


def test_outside_ipython_the_question_is_printed(capsys):
    ask_stride()
    assert capsys.readouterr().out == "Strides of `W.t()`?\n  - (1, 64)\n  - (600, 1)\n"


def test_text_is_escaped_and_code_is_formatted(monkeypatch, published):
    monkeypatch.setenv(audience.BUILD, "1")
    drills.true_false("`2**3 < 2**4` and **<b>**", True, "8 < 16.")
    assert "<code>2**3 &lt; 2**4</code>" in published[0]["text/html"]
    assert "<strong>&lt;b&gt;</strong>" in published[0]["text/html"]


def test_emphasis_is_formatted_and_a_product_is_not(monkeypatch, published):
    monkeypatch.setenv(audience.BUILD, "1")
    why = "To *run* it (*all of it*), **once**; 2 * 3 * 4, a*b*c and `*p`, `q*`."
    drills.true_false("?", True, why)
    set_words = "To <em>run</em> it (<em>all of it</em>), <strong>once</strong>; 2 * 3 * 4, a*b*c "
    page = published[0]["text/html"]
    assert set_words + "and <code>*p</code>, <code>q*</code>." in page


def test_a_button_shows_no_stars(widget):
    box = widget(drills.choice, "?", {"the *first* `a*b`": "yes", "2 * 3 * 4": "no"}, "2 * 3 * 4")
    shown = [button.description for button in box.children[1].children]
    assert shown == ["the first a*b", "2 * 3 * 4"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("153600", 153600),
        ("153,600", 153600),
        ("1,234,567.5", 1234567.5),
        ("153 600", 153600),
        ("153_600 bytes", 153600),
        ("0,5", 0.5),
        ("-1.5e3", -1500),
    ],
)
def test_read_number(text, value):
    assert drills.read_number(text, "bytes") == value


@pytest.mark.parametrize("text", ["", "x", "1,2,3", "nan", "inf", "__import__('os')", "2**3"])
def test_read_number_refuses(text):
    with pytest.raises(ValueError, match="not a number I can read"):
        drills.read_number(text)


@pytest.mark.parametrize(
    ("drill", "args", "kwargs"),
    [
        (drills.number, ("?", float("nan")), {"why": "."}),
        (drills.number, ("?", 4), {"why": ".", "tolerance": 1, "wrong": {5: "."}}),
        (drills.choice, ("?", {"a": "."}, "a"), {}),
        (drills.choice, ("?", {"a": ".", "b": ""}, "a"), {}),
        (drills.choice, ("?", {"a": ".", "b": "."}, "c"), {}),
        (drills.true_false, ("?", 1, "."), {}),
    ],
)
def test_a_broken_drill_is_refused_when_it_is_written(drill, args, kwargs):
    with pytest.raises(ValueError):  # noqa: PT011  each says what it expected
        drill(*args, **kwargs)
