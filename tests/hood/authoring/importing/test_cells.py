"""A notebook is read as data, and a file that is no notebook is refused with a reason."""

import json

import nbformat.v4
import pytest

from hood import UserError
from hood.authoring.importing import cells
from hood.authoring.importing.cells import Cell, read_cells
from tests.hood.authoring.importing.notebooks import code, raw, words, write


def test_cells_have_their_kind_settings_and_stored_output(tmp_path):
    path = write(
        tmp_path / "a.ipynb",
        [words("Words."), raw("# RAW"), code("f(2)", "f", output="4", points=2)],
    )
    settings = {"schema_version": 3, "grade_id": "f", "points": 2}
    assert read_cells(path) == [
        Cell("markdown", "Words."),
        Cell("raw", "# RAW"),
        Cell("code", "f(2)", settings, "4"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not JSON",
        "[1, 2]",
        "{}",
        '{"nbformat": 4}',
        '{"nbformat": 99, "nbformat_minor": 0, "metadata": {}, "cells": []}',
        '{"nbformat": 4, "nbformat_minor": 0, "metadata": [], "cells": {}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_no_notebook_is_refused(tmp_path, content):
    path = tmp_path / "a.ipynb"
    path.write_text(content)
    with pytest.raises(UserError, match="expected a notebook, got something else"):
        read_cells(path)


def test_a_missing_file_and_one_that_is_not_text_are_refused(tmp_path):
    path = tmp_path / "a.ipynb"
    with pytest.raises(UserError, match=r"can't be read: No such file"):
        read_cells(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        read_cells(path)


def test_a_notebook_in_another_language_is_refused(tmp_path):
    kernel = {"name": "ir", "display_name": "R", "language": "R"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    path = tmp_path / "a.ipynb"
    nbformat.write(notebook, path)
    with pytest.raises(UserError, match="a notebook in Python, got one in 'R'"):
        read_cells(path)


def test_a_notebook_that_is_too_large_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "a.ipynb", [words("w" * 100)])
    with monkeypatch.context() as patch:
        patch.setattr(cells, "MAX_TEXT", 99)
        with pytest.raises(UserError, match="1 cells with 100 characters: divide the notebook"):
            read_cells(path)
    monkeypatch.setattr(cells, "MAX_BYTES", 99)
    with pytest.raises(UserError, match="at most 0 MB"):
        read_cells(path)


def write_tree(path, *cells):
    tree = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [*cells]}
    path.write_text(json.dumps(tree))
    return path


def test_wrong_values_in_a_cell_count_as_missing(tmp_path):
    outputs = [{"text": ["a", "b"]}, {"data": {"text/plain": 7}}, {"data": 6}]
    path = write_tree(
        tmp_path / "a.ipynb",
        {"cell_type": "code", "source": 3, "metadata": {}, "outputs": []},
        {"cell_type": "code", "source": ["a\ud800"], "metadata": {"nbgrader": 3}, "outputs": []},
        {"cell_type": "code", "source": "b", "metadata": {}, "outputs": outputs},
    )
    assert read_cells(path) == [Cell("code", "a?"), Cell("code", "b", output="ab7")]


@pytest.mark.parametrize("cell", [None, 3, {"cell_type": 4, "source": "x"}])
def test_a_notebook_with_something_else_in_place_of_a_cell_is_refused(tmp_path, cell):
    with pytest.raises(UserError, match="expected a notebook"):
        read_cells(write_tree(tmp_path / "a.ipynb", cell))
