"""Labs are solved in copies, and a changed release reaches them without touching an answer."""

import argparse
import copy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from grader import work
from grader.submission.notebook import read_submission
from grader.whole_file import write_whole
from tests.grader.tiny import LAB, cell, released, source_notebook, write

RELEASE = released(source_notebook())
ANSWER = "def twice(x):\n    return 2 * x\n"


@pytest.fixture
def root(tmp_path):
    write(RELEASE, tmp_path / "release" / LAB / f"{LAB}.ipynb")
    return tmp_path


def run(root, capsys):
    status = work.run(argparse.Namespace(), root)
    return status, capsys.readouterr().out


def mine(root):
    return root / "work" / LAB / f"{LAB}.ipynb"


def read(path):
    return nbformat.read(path, as_version=4)


def solve(root, *more):
    """The learner answers one exercise, and adds cells behind it."""
    nb = read(mine(root))
    stub = cell(nb, "twice_solution")
    stub.source, stub.outputs = ANSWER, [new_output("stream", text="mine")]
    place = nb.cells.index(stub) + 1
    nb.cells[place:place] = more
    write(nb, mine(root))
    return nb


def change(root, **sources):
    """The instructor releases the lab again, with other text in some cells."""
    nb = copy.deepcopy(RELEASE)
    for name, source in sources.items():
        cell(nb, name).source = source
    write(nb, root / "release" / LAB / f"{LAB}.ipynb")
    return nb


def test_a_copy_is_made_once_and_then_left_alone(root, capsys):
    assert run(root, capsys) == (0, f"work/{LAB}/{LAB}.ipynb: made\n")
    assert mine(root).read_bytes() == (root / "release" / LAB / f"{LAB}.ipynb").read_bytes()
    solve(root)
    before = mine(root).read_bytes()
    assert run(root, capsys) == (0, "")
    assert mine(root).read_bytes() == before


def test_a_changed_release_comes_in_and_answers_stay(root, capsys):
    run(root, capsys)
    own = new_code_cell("twice(3)", id="my-own"), new_markdown_cell("A thought.", id="my-thought")
    was = solve(root, *own)
    change(root, twice="# Graded\nmore = 1", twice_solution="def twice(x, y):\n    raise")
    status, printed = run(root, capsys)
    assert status == 0
    assert "your answers are in the new one" in printed
    now = read(mine(root))
    assert cell(now, "twice_solution").source == ANSWER
    assert cell(now, "twice_solution").outputs[0].text == "mine"
    assert cell(now, "twice").source == "# Graded\nmore = 1"
    place = now.cells.index(cell(now, "twice_solution"))
    assert [c.id for c in now.cells[place + 1 : place + 3]] == ["my-own", "my-thought"]
    assert read(mine(root).with_name(".previous.ipynb")) == was
    assert run(root, capsys) == (0, "")


def test_what_a_learner_tried_in_an_unchanged_cell_stays_and_in_a_changed_one_does_not(
    root, capsys
):
    run(root, capsys)
    nb = read(mine(root))
    cell(nb, "twice").source = "tried"
    cell(nb, "row_sums").source = "tried, too"
    write(nb, mine(root))
    change(root, row_sums="# Graded\nnew")
    run(root, capsys)
    now = read(mine(root))
    assert cell(now, "twice").source == "tried"
    assert cell(now, "row_sums").source == "# Graded\nnew"


def test_a_deleted_cell_comes_back_and_an_exercise_that_is_gone_leaves_its_answer(root, capsys):
    run(root, capsys)
    nb = solve(root)
    nb.cells.remove(cell(nb, "row_sums"))
    write(nb, mine(root))
    new = change(root)
    gone = [
        c for c in new.cells if c.metadata.get("nbgrader", {}).get("grade_id", "")[:5] == "twice"
    ]
    new.cells = [c for c in new.cells if c not in gone]
    write(new, root / "release" / LAB / f"{LAB}.ipynb")
    run(root, capsys)
    now = read(mine(root))
    assert cell(now, "row_sums").source == cell(RELEASE, "row_sums").source
    [kept] = [c for c in now.cells if c.source == ANSWER.strip() or c.source == ANSWER]
    assert "nbgrader" not in kept.metadata
    assert [c.grade_id for c in read_submission(mine(root).read_bytes())].count("twice") == 0


def test_an_answer_in_a_copy_of_a_cell_stays(root, capsys):
    run(root, capsys)
    nb = read(mine(root))
    stub = cell(nb, "twice_solution")
    second, third = (copy.deepcopy(stub) for _ in range(2))  # as JupyterLab copies a cell
    second.id, third.id = "second", "third"
    second.source = ANSWER
    place = nb.cells.index(stub) + 1
    nb.cells[place:place] = [second, third]
    write(nb, mine(root))
    change(root, row_sums="# Graded\nnew")
    run(root, capsys)
    now = read(mine(root))
    at = now.cells.index(cell(now, "twice_solution"))
    first, after = now.cells[at : at + 2]
    assert first.source == stub.source
    assert after.source.strip() == ANSWER.strip()
    assert "nbgrader" not in after.metadata
    assert sum(c.source == stub.source for c in now.cells) == 1
    assert len({c.id for c in now.cells}) == len(now.cells)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"cells": 3}'])
def test_a_copy_that_is_no_notebook_is_left_as_it_is(root, capsys, data):
    run(root, capsys)
    mine(root).write_bytes(data)
    change(root, twice="# Graded\nnew")
    status, printed = run(root, capsys)
    assert status == 1
    assert "left as it is" in printed
    assert mine(root).read_bytes() == data
    mine(root).unlink()
    assert "made" in run(root, capsys)[1]


def test_a_copy_without_ids_is_matched_by_the_names_of_its_cells(root, capsys):
    run(root, capsys)
    nb = solve(root)
    nb.nbformat_minor = 4
    for one in nb.cells:
        del one["id"]
    write(nb, mine(root))
    change(root, twice="# Graded\nnew")
    assert run(root, capsys)[0] == 0
    now = read(mine(root))
    assert cell(now, "twice_solution").source == ANSWER
    assert cell(now, "twice").source == "# Graded\nnew"
    assert [c.id for c in now.cells] == [c.id for c in RELEASE.cells]


def test_killed_before_its_end_it_loses_no_answer_to_an_exercise_that_is_gone(
    root, capsys, monkeypatch
):
    run(root, capsys)
    solve(root)
    was = mine(root).read_bytes()
    new = change(root)
    new.cells = [
        c
        for c in new.cells
        if not c.metadata.get("nbgrader", {}).get("grade_id", "").startswith("twice")
    ]
    write(new, root / "release" / LAB / f"{LAB}.ipynb")

    def dies(path, content):
        if path.name == work.RELEASED:
            raise KeyboardInterrupt
        return write_whole(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(work, "write_whole", dies)
        with pytest.raises(KeyboardInterrupt):
            run(root, capsys)
    run(root, capsys)
    assert ANSWER in [c.source for c in read(mine(root)).cells]
    assert mine(root).with_name(work.PREVIOUS).read_bytes() == was


def test_a_stub_that_nobody_has_touched_becomes_the_new_one(root, capsys):
    run(root, capsys)
    stub = "def twice(x, times):\n    raise NotImplementedError"
    change(root, twice_solution=stub)
    run(root, capsys)
    assert cell(read(mine(root)), "twice_solution").source == stub
