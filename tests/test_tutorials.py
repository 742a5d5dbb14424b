"""Follow the authors' tutorials: build their files, and judge their wrong answers."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from hood.course import ENGINE
from tests.hood.tiny import cell

TUTORIALS = ENGINE / "docs" / "tutorials"
# "Write `path`:", "At the end of `path` add:" or "Above ... of `path`, ..., add:", and a block
STEP = re.compile(
    r"(Write|At the end of|Above)[^`\n]*`([\w/.]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.S | re.M
)
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.S | re.M)
CHANGE = re.compile(r"`([^`\n]+)` to `([^`\n]+)`")
LAST = "# %% [markdown]\n# ## Done"


def hood(root, *words):
    """Run a command of the engine in a course; return its exit status and what it prints."""
    away = ("HOOD_COURSE", "OPEN_THE_HOOD_SERVICE")
    kept = {key: value for key, value in os.environ.items() if key not in away}
    done = subprocess.run(
        [sys.executable, "-m", "hood", *words],
        cwd=root,
        env=kept | {"PYTHONPATH": str(ENGINE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def follow(text, root):
    """Write the files of a tutorial, add its additions, and make its changes."""
    assert (steps := STEP.findall(text))
    for verb, name, block in steps:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if verb == "Write":
            path.write_text(block)
        elif verb == "At the end of":
            path.write_text(path.read_text() + block)
        else:
            before, last, after = path.read_text().rpartition(LAST)
            path.write_text(before + block + last + after)


def counted(done):
    """Return a command's output without the numbers that any change of lab 00 changes."""
    return done[0], re.sub(r"lab\.py:\d+|its \d+ answers", "...", done[1])


def blocks(text, beginning):
    """Return the blocks of a tutorial that begin so."""
    return [block for block in BLOCK.findall(text) if block.startswith(beginning)]


def answered(root, lab, exercise, answer):
    """Put an answer into the learner's copy. Return what `check` prints about the lab."""
    assert hood(root, "work")[0] == 0
    path = root / "work" / lab / f"{lab}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cell(notebook, f"{exercise}_solution").source = answer
    nbformat.write(notebook, path)
    return hood(root, "check", lab[:2])[1]


def assert_told(verdict, printed):
    """The lines of the verdict were printed; the failing call is random."""
    lines = verdict.splitlines()
    assert len(lines) > 5
    for line in lines:
        if not re.match(r" +(\w+\(|# expected)", line):
            assert line in printed


@pytest.mark.slow(15)
def test_a_first_exercise_is_built_and_names_a_mistake(tmp_path):
    text = (TUTORIALS / "first-exercise.md").read_text()
    question, check = text.split("## The check\n")
    for name in ("course.toml", "nbgrader_config.py"):
        shutil.copy(ENGINE / name, tmp_path)
    for name in ("utils", "phases", "notebooks", "source", "release"):
        shutil.copytree(ENGINE / name, tmp_path / name)
    lab = tmp_path / "phases" / "00_hello" / "lab.py"

    refused, built = (one.partition("\n")[2] for one in blocks(text, "$ python -m hood build 00\n"))
    follow(question, tmp_path)
    assert counted(hood(tmp_path, "build", "00")) == counted((1, refused))
    changed = lab.read_text()
    for old, new in CHANGE.findall(question):
        assert changed.count(old) == 1
        changed = changed.replace(old, new)
    lab.write_text(changed)
    follow(check, tmp_path)
    assert counted(hood(tmp_path, "build", "00")) == counted((0, built))
    [mutants] = blocks(text, "$ python -m hood mutants")
    assert hood(tmp_path, "mutants", "00", "--exercise", "idle_places")[1].split() == (
        mutants.partition("\n")[2].split()
    )
    [answer], [verdict] = blocks(text, "def idle_places"), blocks(text, "idle_places: ")
    assert_told(verdict, answered(tmp_path, "00_hello", "idle_places", answer))


@pytest.mark.slow(8)
def test_a_first_course_is_built_and_names_a_mistake(tmp_path):
    text = (TUTORIALS / "first-course.md").read_text()
    follow(text, tmp_path)
    [built] = blocks(text, "$ python -m hood build\n")
    assert hood(tmp_path, "build") == (0, built.partition("\n")[2])
    [answer], [verdict] = blocks(text, "def is_leap"), blocks(text, "is_leap: ")
    assert_told(verdict, answered(tmp_path, "01_leap_years", "is_leap", answer))
