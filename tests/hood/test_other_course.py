"""A course on another subject, in a separate folder.

Its labs have no torch and import no package. Its module `utils` can't be imported, so code that
imports this project's `utils` by mistake fails. The course is built, released, graded in sandboxes
and reported, and its learners get feedback, by the commands that a teacher types there.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from hood.course import ENGINE
from hood.grader.execution.graded_cell import read_verdicts
from tests.hood.tiny import cell

MEANS = ENGINE / "tests" / "fixtures" / "means"
LAB = "01_means"
RIGHT = {
    "column_means": "def column_means(table):\n    return np.add.reduce(table) / len(table)",
    "centred": "def centred(table):\n    return table - table.mean(0)",
}
WRONG = {
    "column_means": "def column_means(table):\n    return table.mean(axis=1)",
    "centred": "def centred(table):\n    return table - np.average(table)",
}
LOOKS = "from importlib.util import find_spec\nprint(find_spec('utils'), find_spec('phases'))"

pytestmark = [pytest.mark.slow(20), pytest.mark.usefixtures("sandbox")]


def run(root: Path, *words: str) -> str:
    """Run ``python -m`` in the course, as its teacher does, and return what it prints."""
    (root / "home").mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if key != "HOOD_COURSE"}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=root,
        env=kept | {"PYTHONPATH": str(ENGINE), "HOME": str(root / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def hand_in(root: Path, student: str, answers: dict[str, str]) -> None:
    """Hand in the released lab with these answers, and a cell that the learner added."""
    nb = nbformat.read(root / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    for name, answer in answers.items():
        cell(nb, f"{name}_solution").source = answer
    nb.cells.append(nbformat.v4.new_code_cell(LOOKS))
    path = root / "submitted" / student / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(nb, path)


def page(path: Path) -> str:
    """Return the words of a page."""
    return " ".join(re.sub(r"<style.*?</style>|<[^>]+>", " ", path.read_text(), flags=re.S).split())


def test_another_course_is_built_released_graded_and_reported_and_its_learners_get_feedback(
    tmp_path: Path,
) -> None:
    root = tmp_path / "means"
    shutil.copytree(MEANS, root)
    shutil.copy(ENGINE / "nbgrader_config.py", root)
    (root / "utils.py").write_text("raise ImportError('this is the package of another course')\n")
    assert not any("torch" in path.read_text() for path in MEANS.rglob("*.*"))

    run(root, "hood", "build")
    run(root, "hood", "build", "--check")
    lesson = nbformat.read(root / "notebooks" / f"{LAB}.ipynb", as_version=4)
    shown = [one.outputs[-1].text for one in lesson.cells if one.cell_type == "code"]
    assert shown[0] == "means of the columns: [ 3. 30.]\n"
    released = (root / "release" / LAB / f"{LAB}.ipynb").read_text()
    assert "write your answer here" in released
    assert "verify(" not in released

    hand_in(root, "ana", RIGHT)
    hand_in(root, "ben", WRONG)
    run(root, "hood", "grade", "01")
    graded = {
        name: nbformat.read(root / "autograded" / name / LAB / f"{LAB}.ipynb", as_version=4)
        for name in ("ana", "ben")
    }
    earned = {
        name: {exercise: verdict.earned for exercise, verdict in read_verdicts(nb).items()}
        for name, nb in graded.items()
    }
    assert earned == {
        "ana": {"column_means": 2, "centred": 3},
        "ben": {"column_means": 0, "centred": 0},
    }
    assert {nb.cells[-1].outputs[0].text for nb in graded.values()} == {"None None\n"}

    run(root, "hood", "report", "01")
    with (root / "reports" / LAB / "learners.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = [
            (row["student"], row["points"], row["misconceptions"]) for row in csv.DictReader(file)
        ]
    assert rows == [
        *(("ana", "2.0", ""), ("ana", "3.0", "")),
        *(("ben", "0.0", "along the rows"), ("ben", "0.0", "one mean for all")),
    ]

    run(root, "hood.grader.nbgrader", "generate_feedback", LAB)
    feedback = root / "feedback"
    of_ben = page(feedback / "ben" / LAB / f"{LAB}.html")
    assert "these are the means of the rows" in of_ben
    assert "the mean of the whole table was taken away" in of_ben
    assert "these are the means" not in page(feedback / "ana" / LAB / f"{LAB}.html")
