"""A worked solution is made of a lab's cells, read without Jupytext."""

import pytest

from hood.authoring.notebooks.text import parse
from hood.judge.solutions import sources
from hood.phase_paths import phases

LABS = [phase for phase in phases() if phase.lab.exists()]


@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
@pytest.mark.parametrize("role", ["solution", "test", "task"])
def test_the_cells_equal_those_of_the_build(phase, role):
    text = phase.lab.read_text(encoding="utf-8")
    cells = [cell for cell in parse(phase.lab.name, text).cells if role in cell.header]
    assert sources(text, role) == {cell.header[role]: cell.source for cell in cells}
    assert cells or role == "task"
