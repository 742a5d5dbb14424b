"""A file of answers: edits of the lab's solution, separate code, and errors in both."""

import sys
from types import ModuleType

import pytest

from hood.judge.checks.answers import AnswersFile, Equivalent, WrongAnswers, with_edits

LAB = """# %%
import math

# %% solution="area"
def square(x: float) -> float:
    '''A docstring.'''
    return x * x


def area(radius: float) -> float:
    return math.pi * square(radius)
"""


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Write an answers' file of the exercise `area`, and read it as a check would."""
    (tmp_path / "lab.py").write_text(LAB)
    checks = ModuleType("checks_of_areas")
    checks.__file__ = str(tmp_path / "checks" / "area.py")
    monkeypatch.setitem(sys.modules, checks.__name__, checks)
    (tmp_path / "answers").mkdir()

    def write(text):
        (tmp_path / "answers" / "area.toml").write_text(text)
        return AnswersFile.beside(checks.__name__, "area")

    return write


def reference(radius):
    return 3 * radius**2


def read(file, kind="wrong"):
    return list(file.answers(kind, {"area": reference}))


def test_an_edit_changes_the_labs_solution_and_its_callers(beside):
    (cubed,) = read(beside("[wrong.cubed]\nsays = 's'\nearns = 1\nedits = [['x * x', 'x ** 3']]\n"))
    assert cubed.names["area"](2) == pytest.approx(25.1327, abs=1e-4)
    assert (cubed.sources, cubed.rest) == ({"square": "def square(x):\n    return x ** 3"}, True)
    assert (cubed.says, cubed.earns) == ("s", 1)


def test_separate_code_may_use_the_labs_imports_and_definitions(beside):
    (own,) = read(
        beside("[right.own]\ncode = '''\ndef area(r):\n    return square(r) + math.e\n'''\n"),
        "right",
    )
    assert own.names["area"](2) == pytest.approx(6.71828, abs=1e-5)
    assert list(own.sources) == ["area"]


def test_a_right_answer_or_the_reference_can_be_edited(beside):
    right = "[right.plain]\ncode = '''\ndef area(r):\n    return 3.14 * r * r\n'''\n"
    wrong = "[wrong.{}]\nof = '{}'\nedits = [['{}', '4']]\n"
    text = right + wrong.format("a", "plain", "3.14") + wrong.format("b", "reference", "3")
    a, b = read(beside(text))
    assert (a.names["area"](1), b.names["area"](1)) == (4, 4)
    assert (a.rest, b.rest) == (False, False)


def test_answers_do_not_see_each_other(beside):
    text = "[wrong.{}]\ncode = '''\ndef square(x):\n    return {}\n'''\n"
    one, two = read(beside(text.format("one", 1) + text.format("two", 2)))
    assert one.names["area"](1) < two.names["area"](1)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            "edits = [['y * y', '1']]",
            r"area\.toml:1: wrong 'w': ValueError: .* 0 times",
        ),
        ("edits = [['x', '1']]", "expected once in the solution, found 3 times"),
        ("code = 'def area(r): return ('", r"wrong 'w': SyntaxError"),
        (
            r'edits = [["return x * x", "y = x\n  return x * y"]]',
            r"not valid Python \(.*, line 3\)\. Indent each new line .*:\ndef square",
        ),
        ("of = 'nobody'\nedits = []", r"wrong 'w': KeyError"),
    ],
)
def test_an_error_in_an_entry_is_reported_with_its_place(beside, entry, says):
    with pytest.raises(ValueError, match=says):
        read(beside(f"[wrong.w]\n{entry}\n"))


def test_a_file_that_is_no_toml_is_named(beside):
    with pytest.raises(WrongAnswers, match=r"area\.toml:1: bad TOML: .*line 1"):
        beside("[wrong.w\n")


W = "[wrong.w]\nedits = [['a', 'b']]\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (W + "earn = 1\n", 3, "unknown key 'earn': expected one of says, earns, reads, breaks"),
        (W + "uses = 'a'\n", 3, "unknown key 'uses'"),
        (W + "code = 'x = 1'\n", 1, "expected either code or edits, got both"),
        ("[right.r]\nuses = 'a'\n", 1, "expected either code or edits, got neither"),
        (W + "earns = '1'\n", 3, "earns: expected points, such as 1, .* got '1'"),
        (W + "earns = -1\n", 3, "earns: expected points"),
        (W + "earns = {p = true}\n", 3, "earns: expected points"),
        (W + "breaks = ''\n", 3, "breaks: expected a text, or a list of texts, got ''"),
        (W + "[right.r]\nedits = ['a', 'b']\n", 4, "edits: expected a list of pairs"),
        (W + "[rong.r]\n", 3, "unknown table 'rong': expected one of told, wrong, right, same"),
        (W + "[wrong]\nsays = 'x'\n", 4, "expected a table with says, earns, .* got 'x'"),
        ("wrong = 1\n", 1, r'expected tables \[wrong."NAME"\], got 1'),
        ("told = 'x'\n" + W, 1, "told: expected a list of texts, got 'x'"),
        (W + "[[same]]\nedits = []\n", 3, "missing key 'because'"),
        (
            "[[same]]\nbecause = 'b'\nedits = []\n[[same]]\nbecause = 'b'\nedit = []\n",
            6,
            "unknown key 'edit'",
        ),
        (W + "[same]\nbecause = 'b'\n", 3, r"expected tables \[\[same\]\], got"),
        (f"[right.r]\ncode = \'\'\'\n{W}earn = 1\n\'\'\'\n{W}earn = 1\n", 9, "'earn'"),
    ],
)  # fmt: skip
def test_an_unused_key_is_refused_at_its_line(beside, text, line, says):
    with pytest.raises(WrongAnswers, match=says) as refused:
        beside(text)
    assert refused.value.line == line


def test_no_file_has_no_answers():
    assert read(AnswersFile.beside(__name__, "nothing")) == []


def test_equivalent_changes_are_pairs_and_free_choices_are_texts(beside):
    same = "[[same]]\nbecause = 'b'\nof = 'a sum'\nedits = [['x', 'y'], ['u', 'v']]\n"
    file = beside(same + "[[free]]\nbecause = 'f'\ntexts = ['0.1']\n")
    assert list(file.equivalents()) == [
        Equivalent("x", "y", "b", "a sum"),
        Equivalent("u", "v", "b", "a sum"),
        Equivalent("0.1", None, "f"),
    ]


def test_edits_are_made_one_after_the_other():
    assert with_edits({"f": "a b"}, [("a", "c"), ("c b", "d")]) == {"f": "d"}
