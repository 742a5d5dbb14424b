"""Item analysis of single exercises."""

import math

import numpy as np
import pytest

from grader.results.class_report.items import EASY, FEWEST, Pairs, interval, judge_item


def pairs(items, rests):
    """Return the pairs of these points."""
    found = Pairs()
    for item, rest in zip(items, rests, strict=True):
        found.add(float(item), float(rest))
    return found


def scores(n, link, seed=0):
    """Return ``n`` pairs whose correlation is near ``link``."""
    draw = np.random.default_rng(seed)
    rest = draw.normal(size=n)
    return link * rest + math.sqrt(1 - link**2) * draw.normal(size=n) + 2, rest + 9


def test_the_correlation_is_pearsons():
    item, rest = scores(50, 0.6)
    expected = np.corrcoef(item, rest)[0, 1]
    assert pairs(item, rest).correlation == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("items", "rests", "r"),
    [([0, 1, 2], [1, 2, 3], 1.0), ([0, 1, 2], [3, 2, 1], -1.0), ([0, 1, 0, 1], [0, 0, 1, 1], 0.0)],
)
def test_correlations_known_by_heart(items, rests, r):
    assert pairs(items, rests).correlation == pytest.approx(r)


@pytest.mark.parametrize(
    ("items", "rests"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([], [])]
)
def test_no_correlation_where_nothing_varies(items, rests):
    assert pairs(items, rests).correlation is None


def test_the_interval_is_the_textbooks():
    low, high = interval(0.5, 28)  # z = 0.549, 1.96 / 5 = 0.392
    assert low == pytest.approx(math.tanh(0.5493 - 0.392), abs=1e-3)
    assert high == pytest.approx(math.tanh(0.5493 + 0.392), abs=1e-3)
    assert interval(1.0, 28) == (1.0, 1.0)


def test_the_interval_covers_the_truth_about_nineteen_times_in_twenty():
    covered = 0
    for seed in range(300):
        low, high = interval(pairs(*scores(30, 0.4, seed)).correlation, 30)
        covered += low <= 0.4 <= high
    assert 0.91 <= covered / 300 <= 0.98


def test_below_ten_learners_nothing_is_said():
    few = judge_item(pairs(*scores(FEWEST - 1, -0.9)), points=5)
    assert few.words == "too few learners (9) to say"
    assert (few.suspect, few.r, few.low) == (False, None, None)
    assert judge_item(pairs(*scores(FEWEST, -0.9)), points=5).r is not None


@pytest.mark.parametrize(
    ("n", "link", "says", "suspect"),
    [
        (400, 0.6, "goes with the rest", False),
        (400, 0.0, "is there a trap in it?", True),
        (400, -0.5, "is there a trap in it?", True),
        (12, 0.0, "too few learners to be sure", False),
    ],
)
def test_what_is_made_of_it(n, link, says, suspect):
    judged = judge_item(pairs(*scores(n, link)), points=4)
    assert says in judged.words
    assert judged.suspect is suspect


def test_too_easy_and_too_hard():
    rests = range(20)
    easy = judge_item(pairs([2] * 20, rests), points=2)
    hard = judge_item(pairs([2, *[0] * 19], rests), points=2)
    assert (easy.words, easy.suspect) == ("nearly everyone solved it; good to begin with", False)
    assert (hard.share, hard.suspect) == (0.05, True)
    assert "hardly anyone" in hard.words
    assert EASY > 0.9


def test_an_exercise_in_which_all_earned_the_same():
    judged = judge_item(pairs([1] * 12, range(12)), points=2)
    assert judged.words == "everyone earned the same, here or in the rest"
    assert judged.low is None
