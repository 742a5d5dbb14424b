"""The project's own metadata in notebooks, and nbgrader's metadata."""

import itertools

import nbformat
import pytest
from nbformat.v4 import new_code_cell
from nbgrader.utils import compute_checksum

from hood.metadata import checksum
from hood.phase_paths import ROOT


@pytest.mark.parametrize("kind", ["release", "source"])
def test_a_checksum_is_nbgraders(kind):
    labs = sorted((ROOT / kind).glob("*/*.ipynb"))
    cells = [
        cell
        for lab in labs
        for cell in nbformat.read(lab, as_version=4).cells
        if "nbgrader" in cell.metadata
    ]
    assert len(cells) > 100
    assert [checksum(cell) for cell in cells] == [compute_checksum(cell) for cell in cells]


@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=3)))
def test_each_kind_of_cell_is_recognised(flags):
    marks = dict(zip(("grade", "solution", "locked"), flags, strict=True))
    cell = new_code_cell("año = 1", metadata={"nbgrader": {"grade_id": "a", "points": 2} | marks})
    assert checksum(cell) == compute_checksum(cell)
