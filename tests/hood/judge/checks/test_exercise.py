"""Solutions gone wrong in one place, and parts that a machine can't run."""

import sys

import pytest

from hood.judge.checks.answers import edited
from hood.judge.checks.exercise import Check, case, not_run
from tests.hood.one_part import alternate, misconception


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


def test_one_function_of_several_can_be_edited():
    check = Check("both", parts={"p": 1}, reads="r")

    @check.reference
    class _:
        def more(x):
            return x + 1

        def less(x):
            return x - 1

    @misconception(check, "by two", "2 was added.", earns=0)
    class _:
        more = edited(check.right["more"], ("x + 1", "x + 2"))

    (by_two,) = check.misconceptions
    assert (by_two.thing["more"](3), by_two.thing["less"](3)) == (5, 2)
    assert by_two.sources == {"more": "def more(x):\n    return x + 2"}


@pytest.mark.parametrize(("old", "times"), [("y", 0), ("x", 3)])
def test_an_edit_that_does_not_fit_is_refused(old, times):
    with pytest.raises(ValueError, match=f"{times} times, expected once"):
        edited(doubled, (old, "z"))


@pytest.fixture
def partly():
    check = Check("partly", parts={"here": 2, "there": 3}, reads="r")
    check.reference(doubled)
    check.cases(lambda draw: [case("here", 3), not_run("there", "needs a GPU")])
    return check


def test_what_can_be_earned_leaves_out_what_is_not_run(partly):
    assert partly.not_run() == {"there": "needs a GPU"}
    assert (partly.points, partly.earnable()) == (5, 2)


def test_what_a_candidate_must_earn_follows(partly):
    alternate(partly, "twice")(lambda x: 2 * x)
    misconception(partly, "none", "n.", earns=0)(lambda x: x)
    misconception(partly, "some", "s.", earns={"there": 3})(lambda x: x)
    misconception(partly, "vague", "v.", earns=3)(lambda x: x)
    none, some, vague = partly.misconceptions
    assert partly.expects(partly.alternates[0]) == 2
    assert (partly.expects(none), partly.expects(some), some.earns) == (0, 0, 3)
    with pytest.raises(LookupError, match="say what 'vague' earns by part"):
        partly.expects(vague)


def test_points_for_an_unknown_part_are_refused(partly):
    with pytest.raises(LookupError, match="doesn't have"):
        misconception(partly, "odd", "o.", earns={"nowhere": 1})(lambda x: x)


def test_a_candidate_is_called_what_a_learner_calls_it():
    check = Check("Layer", parts={"p": 1}, reads="r")
    check.reference(object)
    check.cases(lambda draw: [])

    class _Wrong:
        pass

    misconception(check, "wrong", "it is.", earns=0)(_Wrong)
    assert check.misconceptions[0].thing.__name__ == "Layer"
    assert check.misconceptions[0].source() == "class Layer:\n    pass"
