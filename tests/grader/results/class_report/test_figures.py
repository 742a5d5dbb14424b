"""The figures: positions of the bars, titles and text alternatives."""

import pytest

from grader.results.class_report.figures import WIDTH, histogram, successes
from grader.results.class_report.tally import ExerciseTally
from grader.results.gradebook import GradedCell


def test_every_learner_is_in_one_bar_and_full_marks_have_their_own():
    found = histogram([0, 0.9, 1, 5, 9.99, 10, 10, 10.5], most=10)
    assert [bar.value for bar in found.bars] == [2, 1, 0, 0, 0, 1, 0, 0, 0, 1, 3]
    assert found.bars[-1].label == "all"


def test_bars_are_as_high_as_their_counts_and_stay_inside():
    bars = histogram([0] * 2 + [5] * 4 + [10] * 8, most=10).bars
    assert bars[5].height / bars[10].height == pytest.approx(4 / 8)
    assert bars[0].height / bars[10].height == pytest.approx(2 / 8)
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH and bar.y >= 0 for bar in bars)


@pytest.mark.parametrize(
    ("points", "title"),
    [
        ([10, 10], "Everyone earned every point"),
        ([4, 6, 8], "Half of the class earned 6 of 10 points or more"),
        ([0, 5, 5, 10],
         "Half of the class earned 5 of 10 points or more; 1 earned all of them and 1 none"),
    ],
)  # fmt: skip
def test_the_histograms_sentence(points, title):
    assert histogram(points, 10).title == title


def test_the_alternative_text_has_the_numbers():
    assert "50–59 %: 2" in histogram([5, 5.5, 10], 10).alt
    assert "all: 1" in histogram([5, 5.5, 10], 10).alt


def test_nobody_gives_no_figure():
    assert histogram([], 10) is None
    assert histogram([1], 0) is None
    assert successes([tallied("twice")]) is None


def tallied(name, full=0, some=0, nothing=0, not_tried=0):
    """Return an exercise of two points with these outcomes."""
    marked = full + some + nothing + not_tried
    counts = {"full": full, "some": some, "nothing": nothing, "not_tried": not_tried}
    cell = GradedCell(name, 2.0, manual=False)
    return ExerciseTally(cell, f"1 · {name}", marked=marked, earned=2.0 * full + some, **counts)


def test_segments_fill_the_row_in_proportion():
    figure = successes([tallied("twice", full=6, some=1, nothing=2, not_tried=1)])
    [row] = figure.rows
    widths = {kind: bar.width for kind, bar in row.segments}
    assert widths["full"] / widths["nothing"] == pytest.approx(3)
    starts = [bar.x for _, bar in row.segments]
    assert starts == sorted(starts)
    assert starts[0] == figure.left


def test_the_hardest_exercise_is_named_without_its_number():
    figure = successes([tallied("easy", full=9, nothing=1), tallied("hard", full=2, nothing=6)])
    assert figure.title == "“hard” was the hardest: 2 of the 8 who tried it earned all its points"
    assert "hard: 2 all, 6 nothing" in figure.alt


def test_an_easy_lab_is_called_so():
    figure = successes([tallied("one", full=19, some=1), tallied("two", full=20)])
    assert figure.title == "Every exercise was within reach of nearly everyone"
