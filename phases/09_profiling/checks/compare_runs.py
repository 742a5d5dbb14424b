"""Lab 09, exercise 1: Faster, or luck?"""

import math
import statistics

import torch

from utils.checks import Case, Check, edited
from utils.compare import Tolerance

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
    "['given']": "The lists that were given are in another order afterwards.",
}


@compare_runs.cases
def _(draw):
    quartiles, ratio, verdict = compare_runs.parts

    def asked(part, before, after, *entries, kept=False):
        def play(subject):
            if kept:
                came = subject.drive("functions:keeping", before, after)
                return {"given": came["arguments"], **came["result"]}
            came = subject(before, after)
            return {entry: came[entry] for entry in entries}

        shown = f"{len(before)} runs before, {len(after)} after"
        return Case(part, play, shown=shown, places=PLACES)

    def runs(count, low=10, high=99):
        return [draw.integer(low, high) / 8 for _ in range(count)]

    for count, other in ((1, 2), (3, 4), (5, 6), (7, 8), (draw.integer(9, 20), draw.integer(9, 20))):
        yield asked(quartiles, runs(count), runs(other), "before", "after")
        yield asked(ratio, runs(other), runs(count), "ratio")
    unsorted = [3.0, 1.0, 9.0, 2.0, 5.0, 4.0]
    yield asked(quartiles, unsorted, [*unsorted, 7.0], kept=True)
    # one run that something came in between of
    yield asked(ratio, [*runs(6), 4000.0], runs(5), "ratio")
    for count in (5, 6, draw.integer(7, 12)):
        slow, fast, between = runs(count, 300, 400), runs(count, 100, 200), runs(count, 150, 350)
        yield asked(verdict, slow, fast, "verdict")
        yield asked(verdict, fast, slow, "verdict")
        yield asked(verdict, between, [run * 1.01 for run in between], "verdict")
        # in four of five, apart; one run each is far off
        yield asked(verdict, [*slow, 10.0], [*fast, 90.0], "verdict")
        yield asked(verdict, [*fast, 90.0], [*slow, 10.0], "verdict")
    # medians apart, quartile ranges not
    yield asked(verdict, [10.0, 11.0, 20.0, 30.0, 31.0], [8.0, 9.0, 9.5, 11.5, 12.0], "verdict")
    yield asked(verdict, [8.0, 9.0, 9.5, 11.5, 12.0], [10.0, 11.0, 20.0, 30.0, 31.0], "verdict")
    # the edges touch: the upper quartile of one is the lower one of the other
    yield asked(verdict, [4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 5.0, 5.5], "verdict")
    yield asked(verdict, [1.0, 2.0, 3.0, 5.0, 5.5], [4.0, 5.0, 6.0, 7.0, 8.0], "verdict")
    # the quartiles decide, and neither all runs nor the median alone
    yield asked(verdict, [5.0, 5.25, 5.5, 5.75, 6.0], [4.0, 4.25, 4.5, 4.75, 5.5], "verdict")
    yield asked(verdict, [4.0, 4.25, 4.5, 4.75, 5.5], [5.0, 5.25, 5.5, 5.75, 6.0], "verdict")
    for few in (1, 3, 4):
        yield asked(verdict, runs(few, 300, 400), runs(8, 100, 200), "verdict")
        yield asked(verdict, runs(8, 100, 200), runs(few, 300, 400), "verdict")
        yield asked(verdict, runs(few, 300, 400), runs(few, 100, 200), "verdict")
