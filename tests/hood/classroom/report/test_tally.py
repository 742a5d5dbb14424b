"""The counts over a class."""

import pytest

from hood.classroom.gradebook.graded import Results
from hood.classroom.gradebook.pseudonyms import LearnerNames
from hood.classroom.report.tally import Tally
from hood.grader.course import open_course
from hood.grader.outline import Outline
from tests.hood.classroom.report.made_up import (
    LAB,
    POINTS,
    TITLES,
    Made,
    crowd,
    make_course,
    verdict,
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A class of sixty: ``(tally, every submission)``."""
    read = Results(
        open_course(make_course(tmp_path_factory.mktemp("tally") / "course", crowd(60))), LAB
    )
    tally = Tally(read.cells, Outline("A lab", TITLES), LearnerNames())
    every = list(read.read())
    for one in every:
        tally.add(one)
    return tally, every


def test_outcomes_of_an_exercise_add_up(counted):
    tally, every = counted
    for exercise in tally.exercises[:3]:
        parts = (exercise.full, exercise.some, exercise.nothing, exercise.not_tried)
        assert sum(parts) == exercise.marked == len(every)
        assert exercise.full == sum(
            one.scores[exercise.name] == exercise.cell.points for one in every
        )


def test_exercises_are_in_the_labs_order(counted):
    assert [exercise.name for exercise in counted[0].exercises] == list(TITLES)


def test_times_are_added_up(counted):
    assert counted[0].seconds == 60 * 2.0
    assert counted[0].longest[0] == 2.0


def test_points_that_were_withheld_are_not_counted_as_lost(tmp_path):
    def softmax(earned, withheld):
        found = verdict("softmax", earned)
        part = found["parts"][0] | {"points": POINTS["softmax"] - withheld}
        missing = part | {
            "points": withheld,
            "earned": 0.0,
            "status": "not run",
            "problem": "no GPU",
        }
        return found | {"parts": [part, missing]}

    names = ("row_sums", "twice")
    learners = [
        Made(
            student, verdicts={name: verdict(name) for name in names} | {"softmax": softmax(*made)}
        )
        for student, made in {"all": (3, 2), "some": (1, 2), "on a GPU": (5, 0)}.items()
    ]
    learners.append(Made("no part", verdicts={"softmax": softmax(0, 5)}))
    read = Results(open_course(make_course(tmp_path / "course", learners)), LAB)
    tally = Tally(read.cells, Outline("A lab", TITLES), LearnerNames())
    for one in read.read():
        tally.add(one)
    exercise = next(one for one in tally.exercises if one.name == "softmax")
    assert (exercise.marked, exercise.full, exercise.some, exercise.nothing) == (3, 2, 1, 0)
    assert exercise.share == pytest.approx((3 + 1 + 5) / (3 + 3 + 5))
    assert tally.counted[1] == sum(POINTS.values())  # one learner could earn all of them
