"""Properties of every lesson, read from its text. (The build executes it.)"""

from __future__ import annotations

import re
import unicodedata

import jupytext
import nbformat
import pytest

from hood.authoring.notebooks.folds import OPEN, fold_answers
from hood.authoring.notebooks.notebook import read
from hood.phase_paths import phases
from utils import views

OPENING = ["Where we are", "Resumen en español", "The question"]
CLOSING = ["What you can now do", "What this phase leaves out", "Sources"]
LESSONS = [phase for phase in phases() if phase.lesson.exists()]


@pytest.fixture(scope="module", params=LESSONS, ids=lambda phase: phase.name)
def phase(request):
    return request.param


@pytest.fixture(scope="module")
def lesson(phase):
    return jupytext.read(phase.lesson, fmt="py:percent")


@pytest.fixture(scope="module")
def prose(lesson):
    return "\n\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown")


@pytest.fixture(scope="module")
def code(lesson):
    return [cell.source for cell in lesson.cells if cell.cell_type == "code"]


def section(prose: str, heading: str) -> str:
    return prose.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def test_a_lesson_opens_and_closes_as_every_lesson_does(prose):
    headings = re.findall(r"(?m)^## (.+)$", prose)
    assert headings[:3] == OPENING
    assert headings[-3:] == CLOSING


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
    shown = {name for name in views.__all__ if f"{name}(" in text} - {"course_path"}
    assert len(shown) >= 3


def test_the_reader_predicts_and_is_asked(code, prose):
    assert prose.count("**Predict.**") >= 8
    drills = [source for source in code if source.startswith(("number(", "choice(", "true_false("))]
    assert len(drills) >= 6


def test_the_answer_to_a_prediction_is_folded(phase):
    notebook, wanted = nbformat.read(phase.page, as_version=4), read(phase.page)
    for cell in wanted.cells:
        cell.metadata = {key: cell.metadata[key] for key in ("tags",) if key in cell.metadata}
    fold_answers(wanted)
    folded, by_rule = (
        [
            (cell.id, cell.source)
            for cell in one.cells
            if cell.metadata.get("jupyter", {}).get("outputs_hidden") or OPEN in cell.source
        ]
        for one in (notebook, wanted)
    )
    assert folded == by_rule
    assert len(folded) >= 14


def test_a_lesson_has_no_decoration(prose, code):
    marks = [letter for letter in prose + "".join(code) if unicodedata.category(letter) == "So"]
    assert marks == []


def test_figures_are_shown_only_with_alternative_text(code):
    assert not re.search(r"matplotlib|pyplot|IPython\.display", "\n".join(code))


def test_the_lesson_does_not_solve_the_lab(phase, code):
    lab = phase.lab.read_text(encoding="utf-8")
    solutions = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", lab, flags=re.DOTALL)
    lines = {line.strip() for solution in solutions for line in solution.splitlines()}
    given_away = lines & {line.strip() for source in code for line in source.splitlines()}
    assert {line for line in given_away if len(line) > 24} == set()
