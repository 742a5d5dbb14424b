"""Every lab through nbgrader: reference 100 %, untouched 0 %, each misconception as predicted."""

import pytest

from grader import demo
from grader.layout import ROOT
from grader.preprocessors.outputs import VERDICT_MIME
from grader.results import read_class
from grader.sample_class import Lab, load_lab, make_class
from grader.sample_class.accidents import untouched
from tests.grader.conftest import graded_once, run_demo
from tests.grader.test_release_proof import SECRET
from tests.grader.tiny import make_course

pytestmark = pytest.mark.slow

LABS = [path.stem for path in sorted(ROOT.glob("source/*/*.ipynb"))]


def small_class(lab: Lab):
    """Those who are right, those who are mistaken, and one who did nothing."""
    return make_class(lab, [untouched])


@pytest.fixture(scope="module", params=LABS)
def proof(request, tmp_path_factory, worker_id):
    """One lab, released and graded in a course of its own: (lab, course)."""
    name = request.param

    def grade(root):
        make_course(root, ROOT / "phases")
        for kind in ("source", "release"):
            target = root / kind / name / f"{name}.ipynb"
            target.parent.mkdir(parents=True)
            target.write_bytes((ROOT / kind / name / f"{name}.ipynb").read_bytes())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(demo, "make_class", small_class)
            patch.setattr(demo, "CELL_SECONDS", 60)  # nothing here loops
            return run_demo(root, lab=[name])

    return load_lab(ROOT, name), graded_once(tmp_path_factory, worker_id, f"proof-{name}", grade)


def test_every_score_is_the_predicted_one(proof):
    lab, course = proof
    graded = read_class(course.root, lab.name)
    assert demo.compare(small_class(lab), graded) == []
    assert course.status == 0
    points = {one.name: one.points for one in graded}
    assert points["Lucía Alonso"] == sum(lab.full().values())
    assert min(points.values()) == 0


def test_each_misconception_is_named(proof):
    lab, course = proof
    graded = read_class(course.root, lab.name)
    named = {m for one in graded for v in one.verdicts.values() for m in v["explanations"]}
    parts = [p for one in graded for v in one.verdicts.values() for p in v["parts"]]
    ruled = {part["problem"] for part in parts if part["broken_rule"]}
    every = {m.name for e in lab.exercises for m in e.check.misconceptions}
    # a solution that breaks a rule is told so, whatever else it is
    assert len(every - named) <= len(ruled)


def test_no_secret_in_release_or_feedback(proof):
    lab, course = proof
    pages = [*course.root.glob("feedback/*/*/*.html"), *course.root.glob("release/*/*.ipynb")]
    assert len(pages) == len(small_class(lab)) + 1
    for page in pages:
        text = page.read_text()
        for secret in (*SECRET, VERDICT_MIME, str(course.root)):
            assert secret not in text, f"{secret!r} in {page}"


def test_no_solution_in_release_or_in_the_feedback_of_one_who_had_none(proof):
    lab, course = proof
    [idle] = [learner for learner in small_class(lab) if "untouched" in learner.story]
    release = (course.root / "release" / lab.name / f"{lab.name}.ipynb").read_text()
    page = (course.root / "feedback" / idle.id / lab.name / f"{lab.name}.html").read_text()
    for exercise in lab.exercises:
        given = "\n".join(cell.source for cell in lab.release.cells)
        lines = [line.strip() for line in exercise.reference.splitlines()]
        own = [line for line in lines if len(line) > 24 and line not in given]
        for line in own:
            assert line not in release, exercise.name
            assert line not in page, exercise.name
