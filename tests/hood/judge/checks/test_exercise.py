"""Solutions with one mistake, and parts that a machine can't run."""

import sys

import pytest

from hood.judge.checks.answers import edited
from hood.judge.checks.exercise import Check, case, not_run
from tests.hood.judge.candidates import alternate, misconception


def doubled(x):
    """Twice as much."""
    return x + x


class Counter:
    def __init__(self, start):
        self.count = start

    def up(self):
        self.count += 1
        return self.count


def test_an_edit_makes_another_function_with_a_source_of_its_own():
    check = Check("doubled", parts={"p": 1}, reads="r")
    check.reference(doubled)
    misconception(check, "tripled", "three times.", earns=0)(
        edited(doubled, ("x + x", "x + x + x"))
    )
    (tripled,) = check.misconceptions
    assert (tripled.thing(2), doubled(2)) == (6, 4)
    assert "return x + x + x" in tripled.source()
    assert tripled.source().startswith("def doubled(x)")


def test_classes_can_be_edited_and_edits_edited():
    by_two = edited(Counter, ("+= 1", "+= 2"))
    assert by_two(1).up() == 3
    by_four = edited(by_two, ("+= 2", "+= 4"))
    assert by_four(1).up() == 5
    assert Counter(1).up() == 2
    assert sys.modules[by_four.__module__] is not None


@pytest.mark.parametrize(("old", "times"), [("y", 0), ("x", 3)])
def test_an_edit_that_does_not_fit_is_refused(old, times):
    with pytest.raises(ValueError, match=f"expected once in the solution, found {times} times"):
        edited(doubled, (old, "z"))


@pytest.fixture
def partly():
    check = Check("partly", parts={"here": 2, "there": 3}, reads="r")
    check.reference(doubled)
    check.cases(lambda draw: [case("here", 3), not_run("there", "needs a GPU")])
    return check


def test_points_that_can_be_earned_exclude_parts_that_do_not_run(partly):
    assert partly.not_run() == {"there": "needs a GPU"}
    assert (partly.points, partly.earnable()) == (5, 2)


def test_a_candidates_points_are_adjusted(partly):
    alternate(partly, "twice")(lambda x: 2 * x)
    misconception(partly, "none", "n.", earns=0)(lambda x: x)
    misconception(partly, "some", "s.", earns={"there": 3})(lambda x: x)
    misconception(partly, "vague", "v.", earns=3)(lambda x: x)
    none, some, vague = partly.misconceptions
    assert partly.expects(partly.alternates[0]) == 2
    assert (partly.expects(none), partly.expects(some), some.earns) == (0, 0, 3)
    with pytest.raises(LookupError, match="give the points of 'vague' by part"):
        partly.expects(vague)


def test_points_for_an_unknown_part_are_refused(partly):
    with pytest.raises(LookupError, match="doesn't have"):
        misconception(partly, "odd", "o.", earns={"nowhere": 1})(lambda x: x)
