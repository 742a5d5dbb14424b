"""Every lab through nbgrader: reference 100 %, untouched 0 %, each misconception as predicted.

At full width, every lab is graded with the whole sample class. Otherwise a few labs are graded
(``of_labs``, tests/conftest.py), with four learners; test_checks.py judges candidates of all labs
in each run. Each lab has its own course, so that several workers grade at once.
"""

import json
import re
from functools import partial
from html import unescape

import pytest

from hood.authoring import demo
from hood.authoring.proof.sample_class import Learner, load_lab, make_class
from hood.classroom.gradebook.graded import read_class
from hood.grader import course as commands
from hood.grader.course import open_course
from hood.phase_paths import ROOT
from hood.verdict import VERDICT_MIME, Cause
from tests.hood.authoring.proof.sample import asked, make_sample, sampled
from tests.hood.authoring.proof.test_release_proof import SECRET
from tests.hood.conftest import GradedCourse, run_demo
from tests.hood.tiny import make_course

pytestmark = [pytest.mark.slow(150), pytest.mark.of_labs]

LABS = [path.stem for path in sorted(ROOT.glob("source/*/*.ipynb"))]


def grade_lab(root, name, full, seed) -> dict:
    """Make a course of one lab, then release, grade and report on a class."""
    make_course(root, ROOT / "phases")
    for kind in ("source", "release"):
        target = root / kind / name / f"{name}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_bytes((ROOT / kind / name / f"{name}.ipynb").read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        if not full:
            patch.setattr(demo, "make_class", partial(make_sample, seed=seed))
            patch.setattr(demo, "CELL_SECONDS", 60)  # nothing here loops
            patch.setattr(
                demo, "HALVES", demo.EVERYBODY
            )  # two processes are not worth it for so few
            patch.setattr(demo, "run_module", partial(graded_by_one_worker, seed=seed))
        return run_demo(root, lab=[name])


def graded_by_one_worker(root, module, *words, seed, **options):
    """Run a module. If it is ``grade``, it gets a seed for the cases, and one worker.

    Each worker computes the answer keys, which costs more than grading so few submissions.
    """
    if words[0] == "grade":
        words += ("--workers=1", f"--seed={seed}")
    commands.run_module(root, module, *words, **options)


# the word before the colon names the group of tests that run in one worker
@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}: {name}") for name in LABS])
def test_lab(name, tmp_path, full, seeds):
    root = tmp_path / "course"
    outcome = grade_lab(root, name, full, seeds[-1])
    course = GradedCourse(root, **outcome)
    lab = load_lab(ROOT, name)
    learners = make_class(lab) if full else make_sample(lab, seeds[-1])
    graded = read_class(open_course(course.root), name)
    scores_are_as_predicted(lab, learners, graded)
    assert course.status == 0, course.printed
    mistakes = {
        (exercise.name, m.name)
        for exercise in (lab.exercises if full else asked(lab))
        for m in (exercise.check.misconceptions if full else [sampled(exercise, seeds[-1])])
    }
    each_misconception_is_named(mistakes, graded)
    nothing_secret_is_shown(course, lab, learners)
    no_solution_is_given_away(course, lab, learners)


def scores_are_as_predicted(lab, learners, graded):
    assert demo.score_surprises(learners, graded) == []
    points = {one.name: one.points for one in graded}
    assert points[learners[0].name] == sum(lab.full().values())
    assert min(points.values()) == 0


def each_misconception_is_named(mistakes, graded):
    verdicts = [(one.name, name, v) for one in graded for name, v in one.verdicts.items()]
    named = {(exercise, m) for _, exercise, v in verdicts for m in v.explanations}
    ruled = [
        who for *who, v in verdicts if any(part.cause is Cause.RULE_BROKEN for part in v.parts)
    ]
    # a broken rule is reported before any other reason
    assert len(mistakes - named) <= len(ruled)


def nothing_secret_is_shown(course, lab, learners):
    pages = [
        *course.root.glob(f"feedback/*/{lab.name}/*.html"),
        *course.root.glob(f"release/{lab.name}/*.ipynb"),
    ]
    assert len(pages) == len(learners) + 1
    for page in pages:
        text = page.read_text()
        for secret in (*SECRET, VERDICT_MIME, str(course.root)):
            assert secret not in text, f"{secret!r} in {page}"


def no_solution_is_given_away(course, lab, learners: list[Learner]):
    """The release and the feedback on an untouched lab show no answer."""
    [idle] = [learner for learner in learners if "untouched lab" in learner.story]
    release = (course.root / "release" / lab.name / f"{lab.name}.ipynb").read_text()
    page = (course.root / "feedback" / idle.id / lab.name / f"{lab.name}.html").read_text()
    shown = unescape(re.sub(r"<[^>]*>", "", page))  # highlighted code is full of tags
    given = "\n".join(cell.source for cell in lab.release.cells)
    assert lab.exercises[0].name in shown
    for exercise in lab.exercises:
        lines = [line.strip() for line in exercise.reference.splitlines()]
        for line in [line for line in lines if len(line) > 24 and line not in given]:
            assert json.dumps(line, ensure_ascii=False)[1:-1] not in release, exercise.name
            assert line not in shown, exercise.name
