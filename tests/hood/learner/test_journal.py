"""A learner's actions that notebooks do not record."""

import json
from types import SimpleNamespace

import pytest

from hood import audience
from hood.learner import contents, journal
from utils.notebook import drills


@pytest.fixture
def root(monkeypatch, tmp_path):
    """A course with a learner's copy of lab 01; the test runs as its kernel."""
    (tmp_path / "work" / "01_tensors").mkdir(parents=True)
    for module in (journal, contents):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(journal, "own_notebook", lambda: contents.own_notebook(tmp_path))
    monkeypatch.delenv(audience.NBGRADER, raising=False)
    monkeypatch.delenv(audience.BUILD, raising=False)
    at(monkeypatch, tmp_path / "work" / "01_tensors" / "01_tensors.ipynb")
    return tmp_path


def at(monkeypatch, notebook):
    monkeypatch.setenv(contents.NOTEBOOK, str(notebook))


def test_cells_are_listed_once_with_the_last_run_at_the_end(root):
    for cell in ("a", "b", "a"):
        journal.end(SimpleNamespace(info=SimpleNamespace(cell_id=cell)))
    journal.end(SimpleNamespace(info=SimpleNamespace(cell_id=None)))
    found = journal.read("01_tensors", root)
    assert list(found.cells) == ["b", "a"]
    assert found.last == "a"
    assert found.at == found.cells["a"]
    assert [file.name for file in (root / "work" / ".progress").iterdir()] == ["01_tensors.json"]


def test_a_lesson_and_a_lab_are_known_by_different_names(root, monkeypatch):
    for place in ("work/lesson_01_tensors.ipynb", "notebooks/01_tensors.ipynb"):
        at(monkeypatch, root / place)
        journal.ran(place)
    assert len(journal.read("lesson_01_tensors", root).cells) == 2
    assert journal.read("01_tensors", root).cells == {}


def test_a_solution_counts_as_shown_only_before_the_exercise_was_right(root):
    journal.shown("before")
    journal.right("after")
    journal.shown("after")
    journal.right("before")
    assert list(journal.read("01_tensors", root).shown) == ["before"]


def test_a_drill_answered_right_once_stays_right(root):
    for right in (False, True, False):
        journal.drill("2 + 2?", right)
    journal.drill("3 + 3?", False)
    assert journal.read("01_tensors", root).drills == {"2 + 2?": True, "3 + 3?": False}


def test_a_live_drill_notes_each_answer(root, monkeypatch):
    widgets = pytest.importorskip("ipywidgets")
    made = []
    keep = drills._stack
    monkeypatch.setattr(drills, "_stack", lambda *parts: made.append(keep(*parts)) or made[-1])
    monkeypatch.setattr(drills, "can_move", lambda: True)
    monkeypatch.setattr(drills, "in_ipython", lambda: True)
    monkeypatch.setattr("IPython.display.publish_display_data", lambda bundle: None)
    drills.number("2 + 2?", 4, why="count")
    field, button = made[-1].children[1].children
    for value, known in (("five", {}), ("5", {"2 + 2?": False}), ("4", {"2 + 2?": True})):
        field.value = value
        button.click()
        assert journal.read("01_tensors", root).drills == known
    drills.true_false("It is late.", False, "look outside")
    buttons = made[-1].children[1].children
    assert all(isinstance(one, widgets.Button) for one in buttons)
    buttons[1].click()
    assert journal.read("01_tensors", root).drills["True or false? It is late."] is True


def test_the_journal_is_bounded(root, monkeypatch):
    monkeypatch.setattr(journal, "MOST_KEPT", 2)
    for cell in "abc":
        journal.ran(cell)
    journal.drill("long " * 1000, True)
    found = journal.read("01_tensors", root)
    assert list(found.cells) == ["b", "c"]
    assert [len(question) for question in found.drills] == [journal.MOST_KEY]


NOWHERE = {
    "built": lambda patch, root: patch.setenv(audience.BUILD, "1"),
    "graded": lambda patch, root: patch.setenv(audience.NBGRADER, "autograde"),
    "of no notebook": lambda patch, root: patch.delenv(contents.NOTEBOOK),
    "of another notebook": lambda patch, root: at(patch, root.parent / "mine.ipynb"),
    "without copies": lambda patch, root: (root / "work").rename(root / "no-work"),
}


@pytest.mark.parametrize("happens", NOWHERE.values(), ids=NOWHERE)
def test_outside_a_learners_folder_nothing_is_recorded(root, monkeypatch, happens):
    happens(monkeypatch, root)
    journal.ran("a")
    assert not list(root.rglob("*.json"))


@pytest.mark.parametrize("content", ["", "[]", "{", '{"cells": [1]}', '{"cells": {"a": "b"}}'])
def test_a_damaged_file_counts_as_empty(root, content):
    file = root / "work" / ".progress" / "01_tensors.json"
    file.parent.mkdir()
    file.write_text(content)
    assert journal.read("01_tensors", root) == journal.Journal()
    journal.ran("a")
    assert list(json.loads(file.read_text())["cells"]) == ["a"]
