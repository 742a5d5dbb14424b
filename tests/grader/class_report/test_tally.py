"""What is added up over a class."""

import numpy as np
import pytest

from grader.class_report.course import Outline
from grader.class_report.names import Names
from grader.class_report.tally import Tally
from grader.results import Results
from tests.grader.class_report.made_up import LAB, POINTS, TITLES, crowd, make_course


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A class of sixty: ``(tally, every submission)``."""
    read = Results(make_course(tmp_path_factory.mktemp("tally") / "course", crowd(60)), LAB)
    tally = Tally(read.cells, Outline("A lab", TITLES), Names())
    every = list(read.read())
    for one in every:
        tally.add(one)
    return tally, every


def test_an_exercise_is_compared_with_the_others_without_itself(counted):
    tally, every = counted
    for exercise in tally.exercises[:3]:
        item = np.array([one.scores[exercise.name] for one in every])
        rest = np.array([sum(one.scores[n] for n in POINTS) for one in every]) - item
        expected = np.corrcoef(item, rest)[0, 1]
        assert exercise.judgement.r == pytest.approx(expected, abs=1e-9)


def test_outcomes_of_an_exercise_add_up(counted):
    tally, every = counted
    for exercise in tally.exercises[:3]:
        parts = (exercise.full, exercise.some, exercise.nothing, exercise.not_tried)
        assert sum(parts) == exercise.marked == len(every)
        assert exercise.full == sum(
            one.scores[exercise.name] == exercise.cell.points for one in every
        )


def test_exercises_stand_in_the_labs_order(counted):
    assert [exercise.name for exercise in counted[0].exercises] == list(TITLES)


def test_the_slowest_are_kept(counted):
    assert len(counted[0].slowest) == 5
    assert len(counted[0].seconds) == 60
