"""Lab 09, exercise 1: Faster, or luck?"""

import statistics

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check

compare_runs = Check(
    "compare_runs",
    parts={"quartiles": 1, "the ratio": 1, "the verdict": 1},
    reads="A number without a spread",
    tolerance=Tolerance(1e-5, 1e-12, "seconds, perhaps computed in float32"),
)


@compare_runs.reference
def _(before, after):
    shares = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    sides = [
        tuple(torch.tensor(runs, dtype=torch.float64).quantile(shares).tolist())
        for runs in (before, after)
    ]
    old, new = sides
    enough = len(before) > 4 and len(after) > 4
    verdict = (
        "faster" if enough and new[2] < old[0]
        else "slower" if enough and new[0] > old[2]
        else "can't say"
    )  # fmt: skip
    return {"before": old, "after": new, "ratio": old[1] / new[1], "verdict": verdict}


PLACES = {
    "['before']": "the quartiles of before",
    "['after']": "the quartiles of after",
    "['ratio']": "the ratio",
    "['verdict']": "the verdict",
    "['too few']": "A verdict is given, and one of the lists has fewer than five runs.",
    "['overlap']": "A verdict is given, and the quartile ranges overlap or touch.",
    "['apart']": "The quartile ranges don't touch, both lists have five runs or more, and no verdict is given.",
    "['given']": "The lists that were given are not as they were: in another order, or with fewer runs.",
}


@compare_runs.cases
def _(draw):
    quartiles, ratio, verdict = compare_runs.parts

    def asked(part, before, after, *entries, kept=False):
        def play(subject):
            if kept:
                came = subject.drive("functions:keeping", before, after)
                return {"given": came["arguments"], "before": came["result"]["before"]}
            came = subject(before, after)
            found = {entry: came[entry] for entry in entries}
            return found if part != verdict else facts(before, after, came["verdict"]) | found

        shown = f"{len(before)} run{'s' * (len(before) > 1)} before, {len(after)} after"
        return Case(part, play, shown=shown, places=PLACES)

    def facts(before, after, said):
        """What must hold of a verdict, whatever else it is."""
        given, withheld = said in ("faster", "slower"), said == "can't say"
        few = min(len(before), len(after)) < 5
        (low, _, high), (new_low, _, new_high) = (
            statistics.quantiles(runs * (1 + (len(runs) == 1)), n=4, method="inclusive")
            for runs in (before, after)
        )
        apart = new_high < low or new_low > high
        return {
            "too few": not (given and few),
            "overlap": not (given and not few and not apart),
            "apart": not (withheld and not few and apart),
        }

    def runs(count, low=10, high=99):
        return [draw.integer(low, high) / 8 for _ in range(count)]

    for count, other in ((1, 2), (3, 4), (5, 6), (7, 8), (draw.integer(9, 20), draw.integer(9, 20))):
        yield asked(quartiles, runs(count), runs(other), "before", "after")
        yield asked(ratio, runs(other), runs(count), "ratio")
    unsorted = [3.0, 1.0, 9.0, 2.0, 5.0, 4.0]
    yield asked(quartiles, unsorted, [*unsorted, 7.0], kept=True)
    yield asked(quartiles, [4.0, 2.0, 2.0, 9.0, 2.0, 7.0], [3.0, 3.0, 8.0, 3.0, 1.0], "before", "after")
    yield asked(ratio, [4.0, 2.0, 2.0, 9.0, 2.0, 7.0], [3.0, 3.0, 8.0, 3.0, 1.0], "ratio")
    # as measured: thousandths of seconds, that differ by less
    steps = [draw.integer(10_001, 99_999) / 1e7 for _ in range(7)]
    yield asked(quartiles, steps, steps[1:], "before", "after")
    yield asked(ratio, steps, [run * 1.003 for run in steps], "ratio")
    quick = [0.0183 + 0.00001 * k for k in draw.sample(range(6), 5)]
    yield asked(verdict, [run + 0.0001 for run in quick], quick, "verdict")
    # one run that something came in between of
    yield asked(ratio, [*runs(6), 4000.0], runs(5), "ratio")
    for count in (5, 6, draw.integer(7, 12)):
        slow, fast = runs(count, 300, 400), runs(count, 100, 200)
        between = [(150 + 40 * k + draw.integer(0, 9)) / 8 for k in range(count)]
        yield asked(verdict, slow, fast, "verdict")
        yield asked(verdict, fast, slow, "verdict")
        yield asked(verdict, between, [run * 1.01 for run in between], "verdict")
        # in four of five, apart; one run each is far off
        yield asked(verdict, [*slow, 10.0], [*fast, 90.0], "verdict")
        yield asked(verdict, [*fast, 90.0], [*slow, 10.0], "verdict")
    # in no order, with the extremes where quartiles would stand in a sorted list
    yield asked(verdict, [5.0, 9.0, 7.0, 6.0, 8.0], [6.5, 7.0, 7.5, 8.0, 8.5], "verdict")
    # medians apart, quartile ranges not
    yield asked(verdict, [10.0, 11.0, 20.0, 30.0, 31.0], [8.0, 9.0, 9.5, 11.5, 12.0], "verdict")
    yield asked(verdict, [8.0, 9.0, 9.5, 11.5, 12.0], [10.0, 11.0, 20.0, 30.0, 31.0], "verdict")
    yield asked(verdict, [5.0, 6.0, 7.0, 8.0, 9.0], [1.0, 2.0, 4.0, 6.5, 7.0], "verdict")
    yield asked(verdict, [1.0, 2.0, 4.0, 6.5, 7.0], [5.0, 6.0, 7.0, 8.0, 9.0], "verdict")
    # the edges touch: the upper quartile of one is the lower one of the other
    yield asked(verdict, [4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 5.0, 5.5], "verdict")
    yield asked(verdict, [1.0, 2.0, 3.0, 5.0, 5.5], [4.0, 5.0, 6.0, 7.0, 8.0], "verdict")
    # the quartiles decide, and neither all runs nor the median alone
    yield asked(verdict, [5.0, 5.25, 5.5, 5.75, 6.0], [4.0, 4.25, 4.5, 4.75, 5.5], "verdict")
    yield asked(verdict, [4.0, 4.25, 4.5, 4.75, 5.5], [5.0, 5.25, 5.5, 5.75, 6.0], "verdict")
    # without the first run of each the quartile ranges would be apart
    late, soon = [2.0, 10.0, 10.5, 11.0, 11.5, 12.0], [9.0, 10.125, 10.25, 10.25, 10.25, 10.375]
    yield asked(verdict, late, soon, "verdict")
    for few in (1, 3, 4):
        yield asked(verdict, runs(few, 300, 400), runs(8, 100, 200), "verdict")
        yield asked(verdict, runs(8, 100, 200), runs(few, 300, 400), "verdict")
        yield asked(verdict, runs(few, 300, 400), runs(few, 100, 200), "verdict")
