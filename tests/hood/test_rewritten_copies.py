"""A new release reaches a copy saved by another editor, and no line of the learner is lost.

Each editor here changes a notebook as a save in it does: ids, the metadata of cells and of the
notebook. jupytext is the real one.
"""

import argparse
import copy
import random
import re
import secrets
import time

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from hood.classroom.lesson_links import settle
from hood.learner import copies
from hood.learner.cell_matching import match, text_of
from hood.learner.contents import ROOT
from tests.hood.learner.test_copies import stamped
from tests.hood.tiny import cell, write

PYTHON = {"name": "python3", "display_name": "Python 3", "language": "python"}
LAB = "01_tensors"
RELEASE = nbformat.read(ROOT / "release" / LAB / f"{LAB}.ipynb", as_version=4)
LESSON = nbformat.read(ROOT / "notebooks" / f"{LAB}.ipynb", as_version=4)


def without_ids(nb, minor, metadata, of_cell):
    nb.nbformat_minor, nb.metadata = minor, nbformat.from_dict(metadata)
    for one in nb.cells:
        one.pop("id", None)
        one.metadata = nbformat.from_dict(of_cell(one))
    return nb


def colab(nb):
    metadata = {
        "kernelspec": PYTHON,
        "colab": {"provenance": []},
        "language_info": {"name": "python"},
    }
    return without_ids(nb, 0, metadata, lambda one: {"id": secrets.token_urlsafe(9)})


def colab_with_marks(nb):
    metadata = {**nb.metadata, "colab": {"provenance": []}}
    return without_ids(nb, 0, metadata, lambda one: {**one.metadata, "id": secrets.token_hex(6)})


def kaggle(nb):
    metadata = {"kernelspec": PYTHON, "kaggle": {"accelerator": "none", "dataSources": []}}
    return without_ids(
        nb, 4, metadata, lambda one: {"trusted": True, "_uuid": secrets.token_hex(20)}
    )


def deepnote(nb):
    nb.cells.append(new_markdown_cell("Created in <a href='https://deepnote.com'>Deepnote</a>"))
    metadata = {"deepnote_notebook_id": secrets.token_hex(16), "kernelspec": PYTHON}
    return without_ids(nb, 0, metadata, lambda one: {"cell_id": secrets.token_hex(16), "tags": []})


def old_vscode(nb):
    return without_ids(
        nb, 2, {"language_info": {"name": "python"}, "orig_nbformat": 4}, lambda _: {}
    )


def old_jupyter(nb):
    return without_ids(nb, 4, nb.metadata, lambda one: one.metadata)


def new_ids(nb):
    for one in nb.cells:
        one.id = secrets.token_hex(4)
    return nb


def no_record(nb):
    nb.metadata = nbformat.from_dict({"kernelspec": PYTHON})
    return nb


def as_script(nb):
    return jupytext.reads(jupytext.writes(nb, "py:percent"), "py:percent")


def as_markdown(nb):
    return jupytext.reads(jupytext.writes(nb, "md"), "md")


EDITORS = (
    *(colab, colab_with_marks, kaggle, deepnote, old_vscode, old_jupyter, new_ids, no_record),
    *(as_script, as_markdown),
)


@pytest.fixture
def place(tmp_path):
    write(RELEASE, tmp_path / "release" / LAB / f"{LAB}.ipynb")
    copies.run(argparse.Namespace(), tmp_path)
    return tmp_path / "work" / LAB / f"{LAB}.ipynb"


def root_of(place):
    return next(folder for folder in place.parents if (folder / "release").exists())


def again(place, capsys):
    """Run the command; return the copy and the output."""
    capsys.readouterr()
    assert copies.run(argparse.Namespace(), root_of(place)) == 0
    nb = nbformat.read(place, as_version=4)
    nbformat.validate(nb)
    return nb, capsys.readouterr().out


def saved(place, nb, editor=lambda nb: nb):
    write(editor(copy.deepcopy(nb)), place)


def released(place, nb):
    write(stamped(nb), root_of(place) / "release" / LAB / f"{LAB}.ipynb")


def starting(nb, words):
    [found] = [one for one in nb.cells if one.source.startswith(words)]
    return found


def is_there_once(nb, text):
    return sum(text in one.source for one in nb.cells) == 1


def marks(nb):
    return [one.metadata.nbgrader.grade_id for one in nb.cells if "nbgrader" in one.metadata]


SOLVED = "def row_major_strides(shape):\n    mine = 1\n    return (mine,)"
WORDS = "It broadcasts, as **I** would say."


def worked_on(place):
    """A learner answers a code cell and a question in words, and adds cells and an import."""
    nb = nbformat.read(place, as_version=4)
    cell(nb, "row_major_strides_solution").source = SOLVED
    starting(nb, "*Your answer").source = WORDS
    cell(nb, "setup").source = "import pandas\n" + cell(nb, "setup").source
    at = nb.cells.index(cell(nb, "byte_offset_solution"))
    nb.cells[at + 1 : at + 1] = [new_code_cell("tried = 3"), new_markdown_cell("A thought.")]
    return nb


def new_release():
    """The course changes a question, a check, two stubs, the setup cell; a new exercise comes."""
    nb = copy.deepcopy(RELEASE)
    starting(nb, "## 2 ·").source += "\n\nA sentence that is new."
    check = starting(nb, 'expect_equal("a matrix"')
    check.source, check.id = check.source.replace("(64, 1)", "(64, 2)"), "another"
    for name in ("row_major_strides_solution", "byte_offset_solution"):
        cell(nb, name).source = "# A new stub\n" + cell(nb, name).source
    cell(nb, "setup").source += "\nimport new_in_setup"
    at = nb.cells.index(starting(nb, "## Done"))
    nb.cells.insert(at, new_markdown_cell("## 12 · One more", id="12-one-more"))
    return nb


@pytest.mark.parametrize("editor", EDITORS)
def test_a_new_release_reaches_a_copy_that_an_editor_has_saved(place, capsys, editor):
    saved(place, worked_on(place), editor)
    new = new_release()
    released(place, new)
    now, said = again(place, capsys)

    assert cell(now, "row_major_strides_solution").source == SOLVED
    assert is_there_once(now, "A sentence that is new.")
    assert is_there_once(now, "## 2 · Row-major strides")
    assert is_there_once(now, '"a matrix", row_major_strides')
    assert is_there_once(now, "(64, 2)")
    assert cell(now, "byte_offset_solution").source.startswith("# A new stub\ndef byte_offset")
    assert is_there_once(now, "def byte_offset")
    assert "new_in_setup" in cell(now, "setup").source
    below = now.cells[now.cells.index(cell(now, "setup")) + 1]
    assert below.source == "import pandas"
    at = now.cells.index(cell(now, "byte_offset_solution"))
    assert [one.source for one in now.cells[at + 1 : at + 3]] == ["tried = 3", "A thought."]
    assert now.cells[now.cells.index(cell(now, "why_silent")) + 1].source == WORDS
    assert is_there_once(now, "Your answer goes here") is False
    assert marks(now) == marks(new)
    extra = 3 + (editor is deepnote)
    assert len(now.cells) == len(new.cells) + extra

    assert "what you wrote stays" in said
    assert "now in your copy: “Lab" not in said
    assert "now in your copy: `setup`" in said
    assert "`row_major_strides_solution`: your answer stays. The exercise's starting text" in said
    assert "`setup`: you and the original have both changed this cell" in said
    before = place.read_bytes()
    assert again(place, capsys)[1] == ""
    assert place.read_bytes() == before


def test_a_copy_of_unknown_origin_gets_all_new_text_and_keeps_differences(place, capsys):
    saved(place, worked_on(place), kaggle)
    (root_of(place) / "work" / ".originals" / LAB / f"{LAB}.json").unlink()
    new = new_release()
    released(place, new)
    now, said = again(place, capsys)
    assert "It is unknown from which version" in said
    assert marks(now) == marks(new)
    assert cell(now, "row_major_strides_solution").source == SOLVED
    assert now.cells[now.cells.index(cell(now, "why_silent")) + 1].source == WORDS
    assert is_there_once(now, "A sentence that is new.")
    assert is_there_once(now, "## 2 · Row-major strides")
    assert is_there_once(now, "import pandas")
    before = place.read_bytes()
    assert again(place, capsys)[1] == ""
    assert place.read_bytes() == before


def test_an_older_download_over_a_newer_copy_is_updated_too(place, capsys):
    old = worked_on(place)
    released(place, new_release())
    again(place, capsys)
    saved(place, old, kaggle)
    now, said = again(place, capsys)
    assert is_there_once(now, "A sentence that is new.")
    assert cell(now, "row_major_strides_solution").source == SOLVED
    assert "now in your copy: " in said


def test_lost_metadata_is_restored_and_nothing_is_called_new(place, capsys):
    saved(place, worked_on(place), old_vscode)
    now, said = again(place, capsys)
    assert "New or changed" not in said
    assert "An editor had removed nbgrader's metadata from 22 cells. It is back." in said
    assert marks(now) == marks(RELEASE)
    saved(place, now, no_record)
    assert again(place, capsys)[1] == (
        f"work/{LAB}/{LAB}.ipynb: compared with release/{LAB}/{LAB}.ipynb: no cell of your copy "
        "had to change\n"
    )


@pytest.mark.parametrize("editor", [lambda nb: nb, kaggle, as_script])
def test_a_removed_exercise_leaves_its_answer_and_takes_the_rest_with_it(place, capsys, editor):
    saved(place, worked_on(place), editor)
    new = copy.deepcopy(RELEASE)
    at = new.cells.index(starting(new, "## 2 ·"))
    del new.cells[at : at + 4]
    released(place, new)
    now, said = again(place, capsys)
    assert is_there_once(now, SOLVED)
    assert not any("row_major_strides" in one.source for one in now.cells if one.source != SOLVED)
    assert marks(now) == marks(new)
    assert "unchanged and is no longer in the original: “2 · Row-major strides”" in said


@pytest.mark.parametrize("editor", [lambda nb: nb, kaggle, new_ids])
def test_a_rewritten_question_replaces_the_old_one(place, capsys, editor):
    saved(place, worked_on(place), editor)
    new = copy.deepcopy(RELEASE)
    starting(new, "## 2 ·").source = "## 2 · Something else\n\nAnother question altogether."
    released(place, new)
    now, _ = again(place, capsys)
    assert [text_of(one) for one in now.cells if one.source.startswith("## ")] == [
        text_of(one) for one in new.cells if one.source.startswith("## ")
    ]


@pytest.mark.parametrize("editor", [lambda nb: nb, kaggle])
def test_moved_split_merged_and_doubled_cells_are_matched(place, capsys, editor):
    nb = worked_on(place)
    at = nb.cells.index(starting(nb, "## 3 ·"))
    moved = [nb.cells.pop(at) for _ in range(4)]
    nb.cells[-1:-1] = moved  # exercise 3 behind the others
    stub = cell(nb, "view_strides_solution")  # split, as JupyterLab does: both have the metadata
    second = copy.deepcopy(stub)
    stub.source, second.source, second.id = "import itertools", "def view_strides():\n    1", "x"
    nb.cells.insert(nb.cells.index(stub) + 1, second)
    answer = cell(nb, "broadcast_solution")  # merged with the check below it
    below = nb.cells.pop(nb.cells.index(answer) + 1)
    answer.source = "def broadcast():\n    2\n" + below.source
    twin = copy.deepcopy(cell(nb, "mended_loss_solution"))
    twin.id, twin.source = "twin", "def mended_loss():\n    3"
    nb.cells.insert(nb.cells.index(cell(nb, "mended_loss_solution")) + 1, twin)
    written = {line for one in nb.cells for line in one.source.splitlines()}
    saved(place, nb, editor)
    new = new_release()
    released(place, new)
    now, said = again(place, capsys)
    there = {line for one in now.cells for line in one.source.splitlines()}
    course = {line for one in RELEASE.cells for line in one.source.splitlines()}
    assert written - there <= course - {line for one in new.cells for line in one.source}
    assert marks(now) == marks(new)
    assert "The cells are in the original's order again" in said
    assert any(one.source == "import itertools" for one in now.cells)
    order = "\n".join(one.source for one in now.cells)
    assert order.index("import itertools") < order.index("def view_strides():\n    1")
    before = place.read_bytes()
    assert again(place, capsys)[1] == ""
    assert place.read_bytes() == before


@pytest.mark.parametrize("editor", [colab, kaggle, as_script, no_record])
def test_a_lessons_copy_follows_and_keeps_notes(tmp_path, capsys, editor):
    original = tmp_path / "notebooks" / f"{LAB}.ipynb"
    (tmp_path / "release").mkdir()
    write(LESSON, original)
    copies.run(argparse.Namespace(), tmp_path)
    place = tmp_path / "work" / f"lesson_{LAB}.ipynb"
    nb = nbformat.read(place, as_version=4)
    nb.cells.insert(5, new_markdown_cell("My note."))
    starting(nb, "t = torch.arange(12.0)").source += "\nprint(t + 5)  # mine"
    saved(place, nb, editor)
    new = copy.deepcopy(LESSON)
    starting(new, "Two sentences carry").source += " New."
    starting(new, "t = torch.arange(12.0)").source += "\nt.mean()  # new"
    write(new, original)
    now, said = again(place, capsys)
    assert len(now.cells) == len(new.cells) + 2
    assert starting(now, "Two sentences carry").source.endswith(" New.")
    assert now.cells[5].source == "My note."
    assert is_there_once(now, "# new")
    assert is_there_once(now, "# mine")
    assert "have both changed this cell" in said
    assert sum(bool(one.get("outputs")) for one in now.cells) > 50, "pictures are the course's"
    assert again(place, capsys)[1] == ""


def twin_of(one):
    return nbformat.from_dict(one | {"id": secrets.token_hex(4)})


def scribbled(nb, draw):
    """Return a copy on which somebody worked at random, and the lines that they wrote."""
    nb, lines = copy.deepcopy(nb), []

    def line():
        lines.append(f"mine_{len(lines)} = {draw.randrange(10**9)}")
        return lines[-1]

    for one in list(nb.cells):
        at = nb.cells.index(one)
        match draw.randrange(12):
            case 0:
                one.source = line()
            case 1:
                one.source += "\n" + line()
            case 2:
                one.source = line() + "\n" + one.source
            case 3:
                nb.cells.insert(at, new_code_cell(line()))
            case 4:
                nb.cells.insert(at + 1, twin_of(one))
            case 5:
                nb.cells.remove(one)
                nb.cells.insert(draw.randrange(len(nb.cells)), one)
            case 6 if not re.search("^mine_", one.source, re.M):
                nb.cells.remove(one)
            case 7:
                half = len(one.source) // 2
                twin = twin_of(one)
                one.source, twin.source = one.source[:half] + "\n" + line(), one.source[half:]
                nb.cells.insert(at + 1, twin)
    return nb, lines


def changed(nb, draw):
    """Return a new release with changes at random."""
    nb = copy.deepcopy(nb)
    for one in list(nb.cells):
        match draw.randrange(8):
            case 0:
                one.source += f"\n# new {draw.randrange(10**9)}"
            case 1:
                one.source = f"# new {draw.randrange(10**9)}"
            case 2:
                nb.cells.remove(one)
            case 3 if "nbgrader" not in one.metadata:
                one.id = f"id-{draw.randrange(10**9)}"
    return nb


@pytest.mark.parametrize("seed", range(12))
def test_no_line_of_a_learner_is_lost_after_any_changes_on_both_sides(place, capsys, seed):
    draw = random.Random(seed)
    for _ in range(2):
        nb, lines = scribbled(nbformat.read(place, as_version=4), draw)
        saved(place, nb, draw.choice(EDITORS))
        new = changed(RELEASE, draw)
        released(place, new)
        now, _ = again(place, capsys)
        there = "\n".join(one.source for one in now.cells)  # jupytext may put signs before a line
        assert [line for line in lines if line not in there] == []
        assert marks(now) == marks(new)
        assert len({one.id for one in now.cells}) == len(now.cells)
        before = place.read_bytes()
        assert again(place, capsys)[1] == ""
        assert place.read_bytes() == before


def test_a_copy_of_thousands_of_long_cells_is_matched_in_seconds():
    long = "x = " + "1 + " * 2_000
    now = {str(i): new_code_cell(f"{long}{i}", id=str(i)) for i in range(100)}
    mine = [new_code_cell(f"{long}'mine' + {i}") for i in range(2_000)]
    began = time.monotonic()
    assert len(set(match(mine, now, {}))) == 101
    assert time.monotonic() - began < 20


def test_a_lab_without_links_gets_them_and_stays_solved(place, capsys):
    nb = worked_on(place)
    for one in nb.cells:
        settle(one, "")  # as released through the exchange by a course without a site
    assert "](" not in starting(nb, "## 2 ·").source
    saved(place, nb, kaggle)
    now, said = again(place, capsys)
    assert "](../lesson_01_tensors.ipynb#" in starting(now, "## 2 ·").source
    assert cell(now, "row_major_strides_solution").source == SOLVED
    assert len(now.cells) == len(nb.cells)
    assert "have both changed this cell" not in said
