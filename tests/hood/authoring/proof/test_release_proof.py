"""From release to feedback through nbgrader: every score as predicted, and nothing leaks."""

import csv

import pytest
from nbgrader.api import Gradebook

from hood.authoring import demo
from hood.classroom.gradebook.graded import read_class
from hood.grader.course import open_course
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.submission.notebook import read_submission
from hood.judge.catalogue import load_checks
from tests.hood.conftest import REAL, run_demo
from tests.hood.tiny import ANSWERS, LAB, ROOT

pytestmark = pytest.mark.slow(60)

# Words from hidden cells, rubrics and other text that learners should not see.
SECRET = ("BEGIN HIDDEN", "verify(", "hood.judge.verify", "RUBRIC", "MARK SCHEME", str(ROOT))


@pytest.fixture(scope="module")
def graded(graded_course):
    return {one.student: one for one in read_class(open_course(graded_course.root), LAB)}


def test_every_score_is_as_predicted(graded_course, graded):
    differences = [
        (learner.story, name, points, graded[learner.id].scores[name])
        for learner in graded_course.learners
        for name, points in learner.predicted.items()
        if graded[learner.id].scores[name] != points
    ]
    assert differences == []
    assert graded_course.status == 0
    assert "scores agree with the predictions" in graded_course.printed
    assert graded_course.left == []


def test_the_class_is_large_enough(graded_course):
    assert len(graded_course.learners) >= 24


@pytest.mark.parametrize(
    ("story", "points"),
    [
        ("solved everything", 7),
        ("in another way", 7),
        ("untouched", 0),
        ("prints warnings", 7),
        ("ten thousand lines", 7),
        ("copied cells", 7),
        ("deleted the test", 7),
        ("to a new cell", 7),
        ("newer nbgrader", 7),
        ("misnamed", 7),
        ("cut off", 0),
        ("empty file", 0),
        ("another notebook", 0),
    ],
)
def test_learners_earn_the_points_that_their_story_states(graded_course, graded, story, points):
    assert graded[graded_course.learner(story).id].points == points


def test_every_submitted_misconception_is_named(graded):
    named = {
        (check, misconception)
        for one in graded.values()
        for check, verdict in one.verdicts.items()
        for misconception in verdict.explanations
    }
    every = {
        (check.name, misconception.name)
        for check in load_checks(ROOT / "tests" / "fixtures" / "tiny" / LAB).values()
        for misconception in check.misconceptions
    }
    assert named == every


def test_only_answers_in_words_and_unreadable_submissions_wait_for_an_instructor(graded_course):
    unread = {one.id for one in graded_course.learners if None in one.predicted.values()}
    assert len(unread) == 2
    with Gradebook(f"sqlite:///{graded_course.root / 'gradebook.db'}") as gradebook:
        waiting = {
            grade.name
            for submission in gradebook.assignment_submissions(LAB)
            for notebook in submission.notebooks
            for grade in notebook.grades
            if grade.needs_manual_grade and submission.student_id not in unread
        }
    assert waiting == {"why"}


def test_all_learners_had_the_same_cases(graded):
    assert len({one.run.seed for one in graded.values()}) == 1
    assert len(next(iter(graded.values())).run.seed) == 32


def test_no_secret_in_release_or_feedback(graded_course):
    pages = [*graded_course.root.glob("feedback/*/*/*"), *graded_course.root.glob("release/*/*")]
    assert len(pages) == len(graded_course.learners) + 1
    for page in pages:
        text = page.read_text()
        for secret in (*SECRET, str(graded_course.root)):
            assert secret not in text, f"{secret!r} in {page}"


def test_feedback_on_missing_answers_shows_no_answer(graded_course):
    page = graded_course.page(graded_course.learner("untouched"))
    assert "return 2 * x" not in page
    assert "sum(dim=1)" not in page


def test_feedback_names_the_mistake_and_what_to_read(graded_course):
    page = graded_course.page(graded_course.learner("same mistake everywhere"))
    assert "You multiplied the tensor by itself." in page
    assert "Two times a tensor" in page


@pytest.mark.parametrize(
    ("story", "says"),
    [
        ("deleted the test", "was missing; it was put back"),
        ("cut off", "not valid JSON"),
        ("empty file", "The file is empty"),
        ("edited the test", "the original was used"),
        ("copied cells", "occurred 2 times"),
        ("kernel dies", "not run, because the kernel died in"),
        ("can&#39;t be interrupted", "could not be interrupted"),
    ],
)
def test_feedback_says_what_was_repaired(graded_course, story, says):
    story = story.replace("&#39;", "'")
    assert says in graded_course.page(graded_course.learner(story))


def test_warnings_stay_visible(graded_course):
    assert "mind the strides" in graded_course.page(graded_course.learner("prints warnings"))


def test_the_export_holds_every_learner(graded_course):
    with (graded_course.root / "grades.csv").open() as file:
        exported = {row["student_id"]: row["raw_score"] for row in csv.DictReader(file)}
    for learner in graded_course.learners:
        points = learner.predicted.values()
        assert exported[learner.id] == ("" if None in points else str(sum(points)))


def test_a_real_learners_submission_is_left_alone(graded_course, graded):
    root = graded_course.root
    handed_in = read_submission((root / "submitted" / REAL / LAB / f"{LAB}.ipynb").read_bytes())
    assert ANSWERS["twice"] in [cell.source for cell in handed_in]
    assert not (root / "autograded" / REAL).exists()
    assert REAL not in graded


def test_the_summary_names_learners_and_misconceptions(graded_course):
    for words in ("Lucía Alonso", "squared", "Two times a tensor", "grades.csv"):
        assert words in graded_course.printed


def test_a_score_other_than_the_predicted_one_is_reported(graded_course, graded):
    learner, *others = graded_course.learners
    wrong = {**learner.predicted, "twice": 1.5}
    changed = type(learner)(**{**vars(learner), "predicted": wrong})
    [line] = demo.score_surprises([changed, *others], list(graded.values()))
    assert "twice earned 2.0, predicted 1.5" in line
    assert len(demo.score_surprises([changed], [])) == len(wrong)


def test_removing_the_class_leaves_the_real_learner(graded_course, copied_course):
    assert run_demo(copied_course, remove=True)["status"] == 0
    assert [p.name for p in (copied_course / "submitted").iterdir()] == [REAL]
    assert not list(copied_course.glob("autograded/*/*"))
    with Gradebook(f"sqlite:///{copied_course / 'gradebook.db'}") as gradebook:
        assert gradebook.students == []
        assert gradebook.assignment_submissions(LAB) == []


def test_verdicts_are_in_the_autograded_notebooks(graded_course):
    import nbformat

    learner = graded_course.learner("solved everything")
    path = graded_course.root / "autograded" / learner.id / LAB / f"{LAB}.ipynb"
    verdicts = read_verdicts(nbformat.read(path, as_version=4))
    assert {name: verdict.status for name, verdict in verdicts.items()} == dict.fromkeys(
        ANSWERS, "right"
    )
