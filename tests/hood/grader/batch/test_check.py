"""``python -m hood check``: one notebook, a table, and an exit status."""

import argparse
import io
import json

import pytest
from rich.console import Console

from hood import UserError
from hood.grader.batch import check
from hood.grader.outline import read_outline
from tests.hood.tiny import LAB, cell, released, solved, source_notebook, write

SOURCE = source_notebook()
RELEASE = released(SOURCE)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    write(SOURCE, folder / "source" / LAB / f"{LAB}.ipynb")
    return folder


@pytest.fixture
def graded(monkeypatch):
    """Replace the kernel: every verified cell gets the given verdict."""
    verdicts = {}

    class Graded:
        def __init__(self, **_): ...

        def preprocess(self, nb, resources):
            for name, verdict in verdicts.items():
                cell(nb, name).outputs = [verdict]
            nb.metadata.open_the_hood.setdefault("seed", "ab12")
            return nb, resources

    monkeypatch.setattr(check, "Execute", Graded)
    return verdicts


def run(path, root, **options):
    console = Console(file=io.StringIO(), width=160)
    arguments = argparse.Namespace(notebook=path, seed=options.get("seed"))
    status = check.run(arguments, root=root, console=console)
    return status, console.file.getvalue()


def verdict(name, points, earned, named=None, **more):
    from nbformat.v4 import new_output

    from hood.verdict import VERDICT_MIME

    said = {"check": name, "points": points, "earned": earned, "lesson": "99"}
    said["parts"] = [{"name": "all", "points": points, "earned": earned}]
    said |= {"status": "right" if earned == points else "wrong", "reads": "Two times a tensor"}
    said["parts"][0] |= {"status": said["status"], "misconception": next(iter(named or ()), "")}
    said |= {"explanations": named or {}} | more
    return new_output("display_data", data={"text/plain": name, VERDICT_MIME: said})


def test_the_table_says_points_what_went_wrong_and_where_to_read(root, graded, tmp_path):
    graded["twice"] = verdict("twice", 2.0, 0.0, {"squared": "You multiplied."})
    graded["row_sums"] = verdict("row_sums", 3.0, 3.0)
    graded["boxes"] = verdict("boxes", 2.0, 0.0, status="not attempted")
    status, text = run(write(solved(RELEASE), tmp_path / "any name.ipynb"), root)
    assert status == 0
    for words in ("0 of 2", "“squared”: You multiplied.", "lesson 99, “Two times a tensor”"):
        assert words in text
    for words in ("3 of 3", "1 not attempted", "marked by a person, – of 3", "3 of 7"):
        assert words in text
    assert text.count("lesson 99") == 1  # of what is wrong alone


def test_why_an_exercise_could_not_be_run_is_said(root, graded, tmp_path):
    stopped = {"status": "not run", "parts": [], "problem": "the kernel died"}
    graded["twice"] = verdict("twice", 2.0, 0.0, **stopped)
    assert "the kernel died" in run(write(RELEASE, tmp_path / "x.ipynb"), root)[1]


def test_exercises_have_their_titles_and_what_is_untouched_is_counted_apart(root, graded, tmp_path):
    graded["twice"] = verdict("twice", 2.0, 0.0)
    graded["boxes"] = verdict("boxes", 2.0, 0.0, status="not attempted")
    _, text = run(write(RELEASE, tmp_path / "x.ipynb"), root)
    outline = read_outline(root, LAB, (LAB,))
    assert outline.title in text
    assert all(outline.titles[name] in text for name in ("twice", "boxes"))
    assert "1 not attempted" in text


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"{", "damaged"),
        (b"[]", "not a notebook"),
        (b'{"nbformat": 4, "cells": []}', "not one of the course's labs"),
    ],
)
def test_what_cannot_be_graded_is_refused_in_words(root, tmp_path, data, says):
    with pytest.raises(UserError, match=says):
        run(write(data, tmp_path / "x.ipynb"), root)


def test_a_lab_is_found_by_its_name_in_work_or_as_it_is_released(root, graded, tmp_path):
    (tmp_path / "phases" / LAB).mkdir(parents=True)
    (tmp_path / "phases" / LAB / "lesson.py").write_text("")
    write(SOURCE, tmp_path / "source" / LAB / f"{LAB}.ipynb")
    mine = released(SOURCE)
    mine.cells.remove(cell(mine, "boxes"))
    with pytest.raises(UserError, match="could not be opened"):
        run(LAB, tmp_path)
    write(RELEASE, tmp_path / "release" / LAB / f"{LAB}.ipynb")
    assert run(LAB, tmp_path)[0] == 0
    write(mine, tmp_path / "work" / LAB / f"{LAB}.ipynb")
    assert run(LAB[:2], tmp_path)[0] == 1
    with pytest.raises(UserError, match="there is no phase"):
        run("98", tmp_path)


def test_a_file_that_is_not_there_is_said(root, tmp_path):
    with pytest.raises(UserError, match="could not be opened"):
        run(tmp_path / "nothing.ipynb", root)


def test_a_restored_cell_is_named_and_the_status_says_so(root, graded, tmp_path):
    nb = solved(RELEASE)
    nb.cells.remove(cell(nb, "row_sums"))
    status, text = run(write(nb, tmp_path / "x.ipynb"), root)
    assert status == 1
    assert "`row_sums` was missing; it was put back" in text


def test_a_seed_is_used_and_printed(root, graded, tmp_path):
    path = write(solved(RELEASE), tmp_path / "x.ipynb")
    assert "seed c0ffee" in run(path, root, seed="c0ffee")[1]


@pytest.mark.parametrize("seed", ["", "x y", "0" * 65])
def test_a_seed_that_is_none_is_refused(seed):
    parser = argparse.ArgumentParser(exit_on_error=False)
    check.add_arguments(parser)
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parser.parse_args(["x.ipynb", "--seed", seed])


@pytest.mark.slow(12)
def test_for_real_with_a_kernel(graded_course, tmp_path):
    """The command in another process and in a course of its own."""
    import subprocess
    import sys

    from tests.hood.tiny import environment

    nb = solved(RELEASE, twice="def twice(x):\n    return x * x")
    path = write(nb, tmp_path / "mine.ipynb")
    (temporary := tmp_path / "tmp").mkdir()
    # somebody's first program that asks for a home
    own = {"HOME": str(tmp_path / "home"), "TMPDIR": str(temporary), "COLUMNS": "160"}
    done = subprocess.run(
        [sys.executable, "-m", "hood", "check", str(path), "--seed", "ab12"],
        cwd=graded_course.root,
        env=environment(graded_course.root) | own,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "squared" in done.stdout
    assert "5 of 7" in done.stdout
    assert json.loads(path.read_text())["cells"], "the notebook itself is left as it was"
    assert list(temporary.iterdir()) == []
    bad = write(b"{", tmp_path / "bad.ipynb")
    done = subprocess.run(
        [sys.executable, "-m", "hood", "check", str(bad)],
        cwd=graded_course.root,
        env=environment(graded_course.root),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
