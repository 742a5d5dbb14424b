"""What a reader of lesson 02 may rely on, read off its text. (The build executes it.)"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import jupytext
import pytest

from grader.catalogue import load_checks

PHASE = Path(__file__).resolve().parents[2] / "phases" / "02_autograd"
HEADINGS = """Where we are
Resumen en español
The question
Three lines, by hand
An engine in twenty lines
Who may go first
PyTorch's own graph
A graph made anew each time
Leaves, and gradients that add up
When nothing is recorded
A layer only has to know one product
Broadcasting's adjoint is a sum
Softmax: a Jacobian that nobody makes
Cross-entropy: what came minus what should have come
LayerNorm: three ways to the loss
Nudging: how far is far enough
A Function of your own
When the numbers go wrong: detect_anomaly
What you can now do
What this phase leaves out
Sources""".splitlines()
VIEWS = {"autograd_graph", "backward_stepper", "finite_difference_error"}


@pytest.fixture(scope="module")
def lesson():
    return jupytext.read(PHASE / "lesson.py", fmt="py:percent")


@pytest.fixture(scope="module")
def prose(lesson):
    return "\n\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown")


@pytest.fixture(scope="module")
def code(lesson):
    return [cell.source for cell in lesson.cells if cell.cell_type == "code"]


def section(prose: str, heading: str) -> str:
    return prose.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def test_headings_stand_in_the_order_that_the_lab_points_to(prose):
    assert re.findall(r"(?m)^## (.+)$", prose) == HEADINGS


def test_each_check_points_to_a_section(prose):
    checks = load_checks(PHASE)
    assert checks
    for check in checks.values():
        assert check.reads in HEADINGS, check.name


def test_the_spanish_summary_is_three_to_five_lines(prose):
    lines = section(prose, "Resumen en español").strip().splitlines()
    assert 3 <= len(lines) <= 5


def test_code_cells_are_short(code):
    for source in code:
        lines = [line for line in source.splitlines() if line.strip()]
        # A drill is prose in a call: its lines are the reader's text, not code to follow.
        if not source.startswith(("number(", "choice(", "true_false(")):
            assert len(lines) <= 17, source


def test_the_reader_sees_their_own_objects(code):
    text = "\n".join(code)
    called = {name for name in VIEWS if f"{name}(" in text}
    assert called == VIEWS


def test_the_reader_predicts_and_is_asked(code, prose):
    assert prose.count("**Predict.**") >= 10
    drills = [source for source in code if source.startswith(("number(", "choice(", "true_false("))]
    assert len(drills) >= 8


def test_nothing_in_the_lesson_decorates(prose, code):
    marks = [letter for letter in prose + "".join(code) if unicodedata.category(letter) == "So"]
    assert marks == []


def test_figures_go_only_through_what_gives_them_alternative_text(code):
    assert not re.search(r"matplotlib|pyplot|IPython\.display", "\n".join(code))


def test_the_lesson_does_not_solve_the_lab(code):
    lab = (PHASE / "lab.py").read_text(encoding="utf-8")
    solutions = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", lab, flags=re.DOTALL)
    lines = {line.strip() for solution in solutions for line in solution.splitlines()}
    given_away = lines & {line.strip() for source in code for line in source.splitlines()}
    assert {line for line in given_away if len(line) > 24} == set()
