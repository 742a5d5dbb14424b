"""Labs are solved in copies, and a changed release reaches them without touching an answer."""

import argparse
import copy
import re
import shutil
import subprocess

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.preprocessors import ComputeChecksums
from nbgrader.utils import compute_checksum

from hood.atomic_files import write_whole
from hood.authoring.notebooks.release_step import Release
from hood.grader.submission.notebook import read_submission
from hood.grader.submission.rebuild import rebuild
from hood.learner import copies
from hood.learner.contents import PHASES, ROOT
from hood.metadata import KEY, MAY_RAISE
from tests.hood.tiny import CONFIG, LAB, cell, released, source_notebook, write

RELEASE = Release(config=CONFIG).preprocess(released(source_notebook()), {})[0]
ANSWER = "def twice(x):\n    return 2 * x\n"


@pytest.fixture
def root(tmp_path):
    write(RELEASE, tmp_path / "release" / LAB / f"{LAB}.ipynb")
    return tmp_path


def run(root, capsys):
    status = copies.run(argparse.Namespace(), root)
    return status, capsys.readouterr().out


def mine(root):
    return root / "work" / LAB / f"{LAB}.ipynb"


def release(root):
    return root / "release" / LAB / f"{LAB}.ipynb"


def read(path):
    return nbformat.read(path, as_version=4)


def solve(root, *more):
    """The learner answers one exercise, and adds cells after it."""
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
    write(stamped(nb), release(root))
    return nb


def stamped(nb):
    """A lab after the last steps of Generate Assignment."""
    for step in (ComputeChecksums, Release):
        nb, _ = step(config=CONFIG).preprocess(nb, {})
    return nb


def test_a_copy_is_made_once_and_then_left_alone(root, capsys):
    assert run(root, capsys) == (0, "work/: 1 copy made\n")
    assert read(mine(root)).cells == read(release(root)).cells
    solve(root)
    before = mine(root).read_bytes()
    assert run(root, capsys) == (0, "")
    assert mine(root).read_bytes() == before


def test_a_copy_that_was_renamed_is_named_and_no_empty_one_is_made(root, capsys):
    run(root, capsys)
    solve(root)
    renamed = mine(root).with_name("my answers.ipynb")
    mine(root).rename(renamed)
    before = renamed.read_bytes()
    status, printed = run(root, capsys)
    assert status == 1
    assert not mine(root).exists()
    assert renamed.read_bytes() == before
    assert f"`work/{mine(root).parent.name}/my answers.ipynb` looks like it" in printed
    assert run(root, capsys) == (status, printed), "it says so until somebody has decided"
    renamed.rename(mine(root))
    assert run(root, capsys) == (0, "")
    assert mine(root).read_bytes() == before
    mine(root).rename(root / "kept elsewhere.ipynb")
    assert run(root, capsys) == (0, "work/: 1 copy made\n")


def test_a_changed_release_comes_in_and_answers_stay(root, capsys):
    run(root, capsys)
    own = new_code_cell("twice(3)", id="my-own"), new_markdown_cell("A thought.", id="my-thought")
    was = solve(root, *own)
    change(root, twice="# Graded\nmore = 1", twice_solution="def twice(x, y):\n    raise")
    status, printed = run(root, capsys)
    assert status == 0
    assert "what you wrote stays" in printed
    now = read(mine(root))
    assert cell(now, "twice_solution").source == ANSWER
    assert cell(now, "twice_solution").outputs[0].text == "mine"
    assert cell(now, "twice").source == "# Graded\nmore = 1"
    place = now.cells.index(cell(now, "twice_solution"))
    assert [c.id for c in now.cells[place + 1 : place + 3]] == ["my-own", "my-thought"]
    assert read(copies.previous(mine(root))) == was
    assert run(root, capsys) == (0, "")


def test_a_learners_edits_stay_in_an_unchanged_cell_and_not_in_a_changed_one(root, capsys):
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
    write(stamped(new), release(root))
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


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"[]", b"\xff", b'{"cells": 3}'])
def test_a_copy_that_is_no_notebook_is_unchanged(root, capsys, data):
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


def test_a_kill_loses_no_answer_to_a_removed_exercise(root, capsys, monkeypatch):
    run(root, capsys)
    solve(root)
    was = mine(root).read_bytes()
    new = change(root)
    new.cells = [
        c
        for c in new.cells
        if not c.metadata.get("nbgrader", {}).get("grade_id", "").startswith("twice")
    ]
    write(stamped(new), release(root))

    def dies(path, content):
        if path == mine(root):
            raise KeyboardInterrupt
        return write_whole(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(copies, "write_whole", dies)
        with pytest.raises(KeyboardInterrupt):
            run(root, capsys)
    run(root, capsys)
    assert ANSWER in [c.source for c in read(mine(root)).cells]
    assert copies.previous(mine(root)).read_bytes() == was


def test_a_stub_that_nobody_has_touched_becomes_the_new_one(root, capsys):
    run(root, capsys)
    stub = "def twice(x, times):\n    raise NotImplementedError"
    change(root, twice_solution=stub)
    run(root, capsys)
    assert cell(read(mine(root)), "twice_solution").source == stub


@pytest.mark.parametrize("copied_before", [True, False])
def test_an_answer_in_the_release_stays_when_the_release_is_restored(root, capsys, copied_before):
    original = release(root).read_bytes()
    if copied_before:
        run(root, capsys)
    nb = read(release(root))
    cell(nb, "twice_solution").source = ANSWER
    write(nb, release(root))
    run(root, capsys)
    for changed in ({}, {"row_sums": "# Graded\nnew"}):
        release(root).write_bytes(original)
        if changed:
            change(root, **changed)
        run(root, capsys)
        assert cell(read(mine(root)), "twice_solution").source == ANSWER


def test_a_copy_that_does_not_say_what_it_was_made_from_keeps_its_answers(root, capsys):
    run(root, capsys)
    solve(root, new_code_cell("twice(3)", id="my-own"))
    nb = read(mine(root))
    del nb.metadata[KEY]["copy"]
    write(nb, mine(root))
    change(root, row_sums_solution="def row_sums(x, times):\n    raise NotImplementedError")
    run(root, capsys)
    now = read(mine(root))
    assert cell(now, "twice_solution").source == ANSWER
    assert "twice(3)" in [one.source for one in now.cells]


def lesson(root, *cells, outputs=""):
    """A lesson as the build writes it, with one code cell after the given text cells."""
    shown = [new_output("stream", text=outputs)] if outputs else []
    cells = [*cells, new_code_cell("print(1)", id="code", outputs=shown)]
    nb = new_notebook(cells=cells)
    nb.metadata[KEY] = {"executed": outputs}
    write(nb, root / "notebooks" / "01_rows.ipynb")
    return root / "work" / "lesson_01_rows.ipynb"


def test_a_lesson_is_updated_and_its_readers_cells_and_outputs_stay(root, capsys):
    text = new_markdown_cell("Old.", id="text")
    copied = lesson(root, text, outputs="1")
    run(root, capsys)
    nb = read(copied)
    nb.cells.insert(1, new_markdown_cell("My note.", id="mine"))
    write(nb, copied)
    lesson(root, new_markdown_cell("New.", id="text"), outputs="2")
    run(root, capsys)
    now = read(copied)
    assert [one.source for one in now.cells] == ["New.", "My note.", "print(1)"]
    assert now.cells[2].outputs[0].text == "2"
    now.cells[2].outputs = [new_output("stream", text="as I ran it")]
    write(now, copied)
    lesson(root, new_markdown_cell("Newer.", id="text"), outputs="3")
    run(root, capsys)
    assert read(copied).cells[2].outputs[0].text == "as I ran it"


def test_links_of_copies_lead_to_copies(root, capsys):
    text = (
        "[a](02_more.ipynb#cell-id=x) [b](../release/99_tiny/99_tiny.ipynb) [c](../README.md) "
        "[d](#here) [e](https://example.org/notebooks/01_rows.ipynb) [f](start.ipynb)"
    )
    copied = lesson(root, new_markdown_cell(text, id="text"))
    nb = read(root / "notebooks" / "01_rows.ipynb")
    page = '<a href="02_more.ipynb">x</a> <img src="data:image/png;base64,AA==">'
    nb.cells[1].outputs = [new_output("display_data", {"text/html": page})]
    write(nb, root / "notebooks" / "01_rows.ipynb")
    lab = read(release(root))
    lab.cells[0].source = "[lesson](../../notebooks/01_rows.ipynb#cell-id=text)"
    cell(lab, "why").source += lab.cells[0].source
    write(stamped(lab), release(root))
    run(root, capsys)
    assert read(copied).cells[0].source == (
        "[a](lesson_02_more.ipynb#cell-id=x) [b](99_tiny/99_tiny.ipynb) [c](../README.md) "
        "[d](#here) [e](https://example.org/notebooks/01_rows.ipynb) [f](start.ipynb)"
    )
    assert read(copied).cells[1].outputs[0].data["text/html"] == page.replace("02", "lesson_02")
    assert read(mine(root)).cells[0].source == "[lesson](../lesson_01_rows.ipynb#cell-id=text)"
    task = cell(read(mine(root)), "why")
    assert "(../lesson_01" in task.source
    assert task.metadata.nbgrader.checksum == compute_checksum(task), "Validate compares them"
    before = mine(root).read_bytes()
    assert run(root, capsys) == (0, "")
    assert mine(root).read_bytes() == before


def git(folder, *words):
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow(15)
def test_reading_and_solving_the_course_leaves_git_clean_and_a_pull_possible(tmp_path, capsys):
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    for name in ("notebooks", "release"):
        shutil.copytree(
            ROOT / name, upstream / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints")
        )
    shutil.copy(ROOT / ".gitignore", upstream)
    git(upstream, "init", "-q")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", str(upstream), str(clone))
    run(clone, capsys)
    copies = sorted([*clone.glob("work/*.ipynb"), *clone.glob("work/*/*.ipynb")])
    assert len(copies) == 2 * len(PHASES) + 1 + len([*ROOT.glob("notebooks/??_*.??.ipynb")])
    for path in copies:
        nb = read(path)
        for one in nb.cells:
            if one.cell_type == "code":
                one.outputs = [new_output("error", ename="NameError", evalue="x", traceback=[])]
        nb.cells.append(new_markdown_cell("My note.", id="my-note"))
        write(nb, path)
    assert git(clone, "status", "--porcelain") == ""

    for path in upstream.glob("notebooks/*.ipynb"):
        nb = read(path)
        nb.cells[0].source += " New."
        write(nb, path)
    git(upstream, "commit", "-qam", "two")
    git(clone, "pull", "-q", "--ff-only")
    run(clone, capsys)
    assert git(clone, "status", "--porcelain") == ""
    for path in copies:
        assert read(path).cells[-1].source == "My note."
        assert "lesson" not in path.name or read(path).cells[0].source.endswith(" New.")


@pytest.mark.slow(10)
def test_a_copy_of_a_lab_is_the_lab_for_validate_and_for_grading(tmp_path, capsys):
    (tmp_path / "release").symlink_to(ROOT / "release")
    run(tmp_path, capsys)
    copies = sorted(tmp_path.glob("work/*/*.ipynb"))
    assert len(copies) == len(PHASES)
    for path in copies:
        for one in read(path).cells:
            if "checksum" in one.metadata.get("nbgrader", {}):
                assert one.metadata.nbgrader.checksum == compute_checksum(one), path
        source = read(ROOT / "source" / path.parent.name / path.name)
        assert rebuild(path.read_bytes(), source, CONFIG).notes == [], path


@pytest.mark.slow(5)
def test_every_link_between_the_courses_copies_has_a_target(tmp_path, capsys):
    for name in ("notebooks", "release"):
        (tmp_path / name).symlink_to(ROOT / name)
    run(tmp_path, capsys)
    linked = re.compile(r'\]\(([^()\s]+\.ipynb[^()\s]*)\)|href=\\"([^"\\]+\.ipynb[^"\\]*)\\"')
    counted = 0
    for path in [*tmp_path.glob("work/*.ipynb"), *tmp_path.glob("work/*/*.ipynb")]:
        for found in linked.finditer(path.read_text()):
            address, _, section = (found[1] or found[2]).partition("#cell-id=")
            target = path.parent / address
            assert target.resolve().is_relative_to(tmp_path / "work"), (path, found[0])
            assert not section or section in [one.id for one in read(target).cells], found[0]
            counted += 1
    assert counted > 100


def test_in_a_release_run_all_goes_on_past_unsolved_exercises():
    """JupyterLab stops at a cell that raises, unless it has this tag; stubs raise."""
    by_tag = {c.source: MAY_RAISE in c.metadata.get("tags", []) for c in RELEASE.cells}
    assert by_tag[cell(RELEASE, "twice").source], "a graded cell"
    assert not by_tag[cell(RELEASE, "twice_solution").source]
    code = [c for c in RELEASE.cells if c.cell_type == "code" and "nbgrader" not in c.metadata]
    assert all(by_tag[c.source] for c in code), "an exercise's own check"
    assert not any(by_tag[c.source] for c in RELEASE.cells if c.cell_type != "code")
    assert not any(MAY_RAISE in c.metadata.get("tags", []) for c in source_notebook().cells)
