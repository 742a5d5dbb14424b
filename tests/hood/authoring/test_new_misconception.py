"""`hood wrong` judges a wrong answer and drafts the misconception, or says why it doesn't."""

import argparse
import tomllib

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from hood import UserError
from hood.authoring import new_misconception, steps
from hood.authoring.answer_draft import SAYS
from hood.authoring.notebooks.text import Refused
from hood.judge.catalogue import load_checks
from hood.phase_paths import pages
from tests.hood.authoring.example import ANSWERS

ANSWERS_FILE = "phases/01_rows/answers/tensor_bytes.toml"
RIGHT = """
def tensor_bytes(shape, itemsize):
    return math.prod(shape) * itemsize
"""
ZERO_BYTES = """
def tensor_bytes(shape: tuple[int, ...], itemsize: int) -> int:
    '''Bytes of a tensor.'''
    count = math.prod(shape)  # all of them
    return max(count, 1) * itemsize + 1
"""
LOOP = """
import functools
import operator

LESS = 3


def size(shape):
    return functools.reduce(operator.mul, shape, 1)


def tensor_bytes(shape, itemsize):
    return size(shape) * itemsize - LESS
"""


@pytest.fixture
def wrong(project, tmp_path, monkeypatch, capsys):
    """A function that hands an answer in, and returns the status and what is printed. The answer is
    judged in this process, because a sandbox would use the course of this process.
    """

    def no_sandbox(*_):
        raise UserError("no sandbox in this test")

    monkeypatch.setattr(new_misconception, "_in_sandbox", no_sandbox)

    def hand_in(code, name=None, file="one_more.py", exercise="tensor_bytes"):
        load_checks.cache_clear()
        new_misconception.find_check.cache_clear()
        path = tmp_path / file
        path.write_text(code)
        args = argparse.Namespace(exercise=exercise, file=path, name=name)
        status = new_misconception.run(args, project.root)
        said = capsys.readouterr()
        return status, said.out + said.err

    return hand_in


def entries(project):
    return tomllib.loads((project.root / ANSWERS_FILE).read_text())


def test_a_small_mistake_becomes_edits_of_the_solution(project, wrong):
    status, said = wrong(ZERO_BYTES)
    assert status == 0
    assert "tensor_bytes: 0 of 2 points" in said
    assert "in this process, without a sandbox: no sandbox in this test" in said
    assert f"{ANSWERS_FILE}:10: added “one more”, as edits of the lab's solution" in said
    assert "2. python -m hood build 01\n" in said
    assert entries(project)["wrong"]["one more"] == {
        "says": SAYS,
        "edits": [["max(count, 1) * itemsize", "max(count, 1) * itemsize + 1"]],
    }


def test_another_program_becomes_code_with_all_that_it_uses(project, wrong, monkeypatch):
    status, said = wrong(LOOP, name="three bytes less")
    assert status == 0
    assert "as its code" in said
    content = (project.root / ANSWERS_FILE).read_text()
    assert content.index('[wrong."three bytes less"]') < content.index('[right."a loop"]')
    # in the draft, only the sentence about the mistake is missing
    monkeypatch.setattr(steps, "build_page", lambda *_: None)
    with pytest.raises(Refused) as refused:
        steps.build(pages(project.root), print)
    [problem] = refused.value.problems
    assert "replace the TODO" in str(problem)
    project.write(ANSWERS_FILE, content.replace(SAYS, "three bytes are missing."))
    load_checks.cache_clear()
    steps.build(pages(project.root), print)


def test_an_answer_to_an_exercise_without_answers_makes_the_file(project, wrong):
    (project.root / ANSWERS_FILE).unlink()
    assert wrong(ZERO_BYTES)[0] == 0
    assert list(entries(project)) == ["wrong"]


def test_a_comment_of_a_right_answer_stays_with_it(project, wrong):
    told = ANSWERS.replace('[right."a', '# It needs no count.\n[right."a')
    project.write(ANSWERS_FILE, told)
    wrong(ZERO_BYTES)
    assert '# It needs no count.\n[right."a loop"]' in (project.root / ANSWERS_FILE).read_text()


def test_a_line_that_looks_like_an_answer_is_no_place_for_another(project, wrong):
    inside = 'code = \'\'\'\n"""\n[right.\n"""\ndef tensor_bytes(shape, itemsize):'
    project.write(
        ANSWERS_FILE, ANSWERS.replace("code = '''\ndef tensor_bytes(shape, itemsize):", inside)
    )
    before = entries(project)
    project.write(
        ANSWERS_FILE, (project.root / ANSWERS_FILE).read_text().replace('[right."a', ' [right."a')
    )
    assert wrong(ZERO_BYTES)[0] == 0
    after = entries(project)
    assert after["wrong"].pop("one more")
    assert after == before


REFUSED = {
    "a right answer": (RIGHT, "the answer earns all 2 points"),
    "a known mistake": (
        "def tensor_bytes(shape, itemsize):\n    return max(math.prod(shape), 1)",
        "the answer does exactly what “elements” does, and the exercise already has this "
        "misconception",
    ),
    "an empty answer": (
        "def tensor_bytes(shape, itemsize):\n    raise NotImplementedError",
        "the code raises NotImplementedError, so it is no answer yet",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_new_mistake_is_not_added(project, wrong, case):
    code, why = REFUSED[case]
    status, said = wrong(code)
    assert status == 1
    assert f"nothing was added: {why}" in said
    assert (project.root / ANSWERS_FILE).read_text() == ANSWERS


def test_a_mistake_that_the_numbers_decide_is_not_added(project, wrong):
    check = (project.phase / "checks.py").read_text()
    flip = check.replace("def _(draw):\n", "def _(draw):\n    draw.integer(0, 1)\n")
    project.write(
        "phases/01_rows/checks.py", flip.replace('    yield case("any shape", (), 8)\n', "")
    )
    chance = "def tensor_bytes(shape, itemsize):\n    return 4 * math.prod(shape) + shape[0] % 2"
    found = {wrong(chance, name=f"odd {k}") for k in range(12)}
    said = " ".join(words for status, words in found if status == 1)
    assert "the points of any shape in some runs but not in others" in said


USER_ERRORS = {
    "no such exercise": (
        {"code": RIGHT, "exercise": "tensor_byte"},
        "no check is named 'tensor_byte'.*did you mean tensor_bytes",
    ),
    "no such function": ({"code": "def g(): ..."}, "expected code that defines tensor_bytes"),
    "not Python": ({"code": "def tensor_bytes(:"}, r"one_more.py:1: not valid Python"),
    "not a notebook": (
        {"code": "{", "file": "a.ipynb", "name": "a"},
        "a.ipynb can't be read",
    ),
    "a name that is taken": (
        {"code": ZERO_BYTES, "name": "a loop"},
        r'has an answer \[right."a loop"\]: add --name',
    ),
    "a notebook without a name": ({"code": "{}", "file": "a.ipynb"}, "add --name"),
    "a name from elsewhere": (
        {"code": "def tensor_bytes(shape, itemsize):\n    return numel(shape)"},
        "uses numel. Define it in one_more.py",
    ),
}


@pytest.mark.parametrize("case", USER_ERRORS)
def test_a_file_that_can_not_be_used_is_refused(project, wrong, case):
    how, why = USER_ERRORS[case]
    with pytest.raises(UserError, match=why):
        wrong(**how)
    assert (project.root / ANSWERS_FILE).read_text() == ANSWERS


def test_a_cell_that_is_not_python_is_named(project, wrong):
    cell = new_code_cell("def tensor_bytes(shape, itemsize):\nreturn 1", metadata={})
    notebook = new_notebook(cells=[new_code_cell("1 +"), cell])
    with pytest.raises(UserError, match="the cell that defines tensor_bytes is not valid Python"):
        wrong(nbformat.writes(notebook), file="a.ipynb", name="a")


def test_an_answer_that_does_not_end_is_refused(project, wrong, monkeypatch):
    monkeypatch.setattr("hood.authoring.new_misconception.MOST_SECONDS", 0.3)
    with pytest.raises(UserError, match="the answer does not end within 0.3 s"):
        wrong("def tensor_bytes(shape, itemsize):\n    while True:\n        pass\n")
    assert "while True" not in (project.root / ANSWERS_FILE).read_text()


def test_a_notebook_gives_the_learners_own_cells(project, wrong):
    def owned(source, **marks):
        return new_code_cell(source, metadata={"nbgrader": {"grade_id": "a", **marks}})

    notebook = new_notebook(
        cells=[
            owned("import math", locked=True),
            new_markdown_cell("def tensor_bytes(): ..."),
            new_code_cell("%matplotlib inline\ndef count(shape):\n    return math.prod(shape)"),
            owned(
                "def tensor_bytes(shape, itemsize):\n    return count(shape) * itemsize + 9",
                solution=True,
                locked=False,
            ),
            new_code_cell("this is no Python"),
            owned("def tensor_bytes(): return 1", grade=True, locked=True),
        ]
    )
    status, _ = wrong(nbformat.writes(notebook), name="nine more", file="01_rows.ipynb")
    assert status == 0
    code = entries(project)["wrong"]["nine more"]["code"]
    assert "itemsize + 9" in code
    assert "def count(shape)" in code
    assert "import" not in code


def test_points_are_stated_by_part(project, wrong):
    check = (project.phase / "checks.py").read_text()
    check = check.replace('{"any shape": 2}', '{"any shape": 1, "a number": 1}')
    project.write(
        "phases/01_rows/checks.py", check.replace('"any shape", (), 8', '"a number", (), 8')
    )
    status, said = wrong(ZERO_BYTES.replace("+ 1", "+ len(shape)"))
    assert status == 0, said
    assert entries(project)["wrong"]["one more"]["earns"] == {"a number": 1}
