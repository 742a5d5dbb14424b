"""The total time of a learner's own cells, by a kernel's clock that the test sets."""

import pytest
from nbformat.v4 import new_code_cell

from hood.grader.execution.own_time import OwnTime

GRACE = 5


class Clock:
    """A kernel that only counts its time."""

    time = spared = 0.0

    def passed(self):
        return self.time

    def spare(self, seconds):
        self.spared = seconds


class Run:
    """The own cells of a notebook, each with a set duration."""

    def __init__(self, seconds):
        own = {"metadata": {"open_the_hood": {"by": "learner"}}}
        self.free, self.needed = new_code_cell("x = 1", **own), new_code_cell("f = 1", **own)
        solution = {"grade": False, "solution": True, "locked": False, "grade_id": "f_solution"}
        answer = new_code_cell("def g(): f()", metadata={"nbgrader": solution})
        self.time = OwnTime([self.free, self.needed, answer], seconds, GRACE)
        self.clock = Clock()
        self.time.start()

    def take(self, seconds, most=60, needed=False):
        """Run a cell that would take this time; return its allowed time, as `limit` does."""
        may = self.time.limit(self.needed if needed else self.free, most)
        if may:
            with self.time.spent(self.clock, may, "below `f`"):
                assert (
                    self.clock.spared >= self.time.spared + may + GRACE
                )  # nothing stops it earlier
                self.clock.time += min(seconds, may)
        return may

    def answer(self, seconds):
        self.clock.time += seconds


def test_own_cells_share_one_time_limit_and_answers_lose_none():
    run = Run(300)
    run.answer(100)
    assert [run.take(55) for _ in range(6)] == [60, 60, 60, 60, 60, 25]
    run.answer(100)
    assert run.take(1) == 0
    assert run.clock.time - run.clock.spared == 200
    assert run.clock.spared == 300
    said = run.time.leave_out()
    assert said == (
        "left out: the time of 300 s for all of your own cells was used up, and no exercise "
        "needs this cell"
    )
    note = run.time.note()
    assert note.message == (
        "The time of 300 s for all of your own cells was used up in cell 6 below `f`. "
        "These cells took longest: 55 s in cell 5 below `f`, 55 s in cell 4 below `f`, 55 s in "
        "cell 3 below `f`, 55 s in cell 2 below `f`, 55 s in cell 1 below `f`. After this time, 1 "
        "cell that no exercise needs did not run."
    )


def test_needed_cells_use_the_answers_time_when_their_own_runs_out():
    run = Run(100)
    assert run.take(55, needed=True) == 60
    assert run.take(1, needed=True) is None
    assert run.take(1) == 45
    assert run.take(60, most=10, needed=True) == 10


def test_while_time_is_left_there_is_no_message():
    run = Run(100)
    run.take(55)
    assert run.time.note() is None


def test_a_second_kernel_has_the_remaining_time():
    run = Run(100)
    run.take(60)
    run.clock, _ = Clock(), run.time.start()
    assert run.time.spared == 0
    assert run.take(60) == 40


def test_an_ended_kernel_is_charged_at_most_its_limit():
    run = Run(100)
    with run.time.spent(run.clock, 60, "below `f`"):
        run.clock.time = float("inf")
    assert run.time.spared == 60 + GRACE + 1


@pytest.mark.parametrize("seconds", [0.2, 0.0])
def test_less_than_a_second_counts_as_a_second(seconds):
    run = Run(60)
    run.take(60 - seconds)
    assert run.take(9) == (1 if seconds else 0)
