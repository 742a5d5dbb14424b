"""Both ways of grading give an honest submission the same result.

``tests/hood/test_nbgrader_course.py`` tests on a few submissions that ``nbgrader autograde`` runs
the batch; a proof tests it here for a whole class.
"""

import random
import shutil
import sqlite3
from dataclasses import replace

import pytest

from hood.authoring.proof.sample_class import load_lab, make_class
from tests.hood.classroom.recording.running import grade, graded, owned, rows
from tests.hood.tiny import CELL_SECONDS, LAB, judged, nbgrader

pytestmark = pytest.mark.slow(45)


@pytest.fixture(scope="module")
def both(graded_course, tmp_path_factory):
    """The class graded by the batch, and a copy of its folder graded by nbgrader itself."""
    plain = tmp_path_factory.mktemp("plain") / "course"
    shutil.copytree(graded_course.root, plain)
    shutil.rmtree(plain / "autograded")
    with sqlite3.connect(plain / "gradebook.db") as database:
        database.execute("UPDATE grade SET auto_score = NULL, needs_manual_grade = 1")
    settings = [f"--Execute.max_cell_seconds={CELL_SECONDS}", "--student=sample-*"]
    done = nbgrader(plain, "autograde", LAB, *settings, "--force")
    assert done.returncode == 0, done.stderr
    return plain, graded_course.root


@pytest.mark.full
def test_every_mark_comment_and_flag_is_the_same(both):
    plain, batch = map(rows, both)
    assert len(plain) > 24
    assert batch == plain


@pytest.mark.full
def test_every_verdict_is_the_same_with_the_same_seed(both):
    plain, batch = both
    for student in rows(plain):
        one, other = graded(plain, student), graded(batch, student)
        assert one.metadata.open_the_hood.seed == other.metadata.open_the_hood.seed
        assert judged(one) == judged(other), student
        assert one.metadata.open_the_hood.notes == other.metadata.open_the_hood.notes


def test_verdicts_from_inside_and_outside_the_learners_process_are_the_same(
    graded_course, tmp_path, seeds, full
):
    sandboxes, open_air = graded_course.root, tmp_path / "course"
    shutil.copytree(sandboxes, open_air)
    honest = [learner.id for learner in make_class(load_lab(sandboxes, LAB), accidents=False)]
    assert len(honest) > 4
    honest = honest if full else random.Random(seeds[0]).sample(honest, 3)
    done = grade(open_air, "--students", *honest, "--unsafe-no-sandbox", "--regrade", "--workers=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No sandbox" in done.stdout
    for student in honest:
        inside, outside = graded(open_air, student), graded(sandboxes, student)
        assert inside.metadata.open_the_hood.seed == outside.metadata.open_the_hood.seed
        assert [inside.metadata.open_the_hood.sandbox, outside.metadata.open_the_hood.sandbox] == [
            False,
            True,
        ]
        assert without_claims(inside) == without_claims(outside), student


def without_claims(nb):
    """Return the verdicts without claims: a judge in the learner's process makes none."""
    return {name: replace(verdict, claims=()) for name, verdict in judged(nb).items()}


@pytest.mark.full
def test_the_files_are_those_of_nbgrader(both):
    plain, batch = both
    for student in rows(plain):
        one, other = (course / "autograded" / student / LAB for course in both)
        assert sorted(p.name for p in one.iterdir()) == sorted(p.name for p in other.iterdir())
        modes = ({p.stat().st_mode for p in folder.iterdir()} for folder in (one, other))
        assert next(modes) == next(modes)
        assert owned(graded(plain, student)) == owned(graded(batch, student)), student


def test_feedback_and_export_work_on_it(graded_course):
    batch = graded_course.root
    done = nbgrader(batch, "generate_feedback", LAB, "--force", "--student=sample-a*")
    assert done.returncode == 0, done.stderr
    assert list(batch.glob(f"feedback/sample-a*/{LAB}/{LAB}.html"))
    assert nbgrader(batch, "export").returncode == 0
    exported = (batch / "grades.csv").read_text()
    assert exported.count(LAB) - exported.count("handed in, not graded") == len(rows(batch))
