"""Lab 09, exercise 1: Faster, or luck?"""

import math
import statistics
import sys

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited

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


def _compare(before, after):
    def quartiles(runs):
        ordered = sorted(runs)
        last = len(ordered) - 1
        found = []
        for share in (0.25, 0.5, 0.75):
            low = math.floor(share * last)
            high = min(low + 1, last)
            found.append(ordered[low] + (share * last - low) * (ordered[high] - ordered[low]))
        return tuple(found)

    old, new = quartiles(before), quartiles(after)
    verdict = "can't say"
    if len(before) >= 5 and len(after) >= 5:
        if new[2] < old[0]:
            verdict = "faster"
        elif new[0] > old[2]:
            verdict = "slower"
    return {"before": old, "after": new, "ratio": old[1] / new[1], "verdict": verdict}


def _misconception(name, explanation, earns, *edits):
    compare_runs.misconception(name, explanation, earns=earns)(edited(_compare, *edits))


_misconception(
    "in the order of measuring",
    "the quantiles are taken of the runs in the order in which they came, as if they were sorted.",
    0,
    ("sorted(runs)", "list(runs)"),
)
_misconception(
    "sorted in place",
    "the lists that were given are sorted, and the order of the measurements is lost.",
    2,
    ("ordered = sorted(runs)", "runs.sort()\n        ordered = runs"),
)
_misconception(
    "the first run left out",
    "the first run of each list is left out, as one leaves out a warm-up.",
    0,
    ("sorted(runs)", "sorted(runs[1:] or runs)"),
)
_misconception(
    "each value once",
    "runs that took equally long are counted as one.",
    1,
    ("sorted(runs)", "sorted(set(runs))"),
)
_misconception(
    "the upper of two medians",
    "of an even number of runs the upper one of the two in the middle is taken for the median.",
    1,
    ("return tuple(found)", "found[1] = ordered[len(ordered) // 2]\n        return tuple(found)"),
)
_misconception(
    "no interpolation",
    "a quantile is always one of the runs, and nothing between two of them.",
    1,
    ("(share * last - low) *", "0 *"),
)
_misconception(
    "the nearest run",
    "a quantile is always one of the runs: the one whose place is nearest.",
    1,
    ("found.append(ordered[low] + (share * last - low) * (ordered[high] - ordered[low]))", "found.append(ordered[round(share * last)])"),
)
_misconception(
    "halfway between two",
    "a quantile that lies between two runs is always in their middle.",
    2,
    ("(share * last - low) *", "(0.5 if share * last > low else 0) *"),
)
_misconception(
    "quartiles as of a wider range",
    "the quartiles lie too far out, as `statistics.quantiles(runs, n=4)` puts them for all runs that"
    " there could be, and not for those that there were.",
    1,
    ("share * last - low", "max(0, min(last, share * (last + 2) - 1)) - low"),
    ("math.floor(share * last)", "math.floor(max(0, min(last, share * (last + 2) - 1)))"),
)
_misconception(
    "the mean for the median",
    "the ratio is not that of the medians: one slow run changes it, as it would change a mean.",
    2,
    ("old[1] / new[1]", "statistics.mean(before) / statistics.mean(after)"),
)
_misconception(
    "the median of the ratios",
    "each run before is divided by the one at the same place after, and the ratio is the median of"
    " that.",
    2,
    ("old[1] / new[1]", "statistics.median((b / a for b, a in zip(before, after)))"),
)
_misconception(
    "a rounded ratio",
    "the ratio is rounded to two digits.",
    2,
    ("old[1] / new[1]", "round(old[1] / new[1], 2)"),
)
_misconception(
    "the best of each",
    "the ratio is that of the shortest runs.",
    2,
    ("old[1] / new[1]", "min(before) / min(after)"),
)
_misconception(
    "the ratio upside down",
    "a step that has become faster gets a ratio below 1.",
    2,
    ("old[1] / new[1]", "new[1] / old[1]"),
)
_misconception(
    "percent for a ratio",
    "the ratio is the share of time that was won.",
    2,
    ("old[1] / new[1]", "1 - new[1] / old[1]"),
)
_misconception(
    "medians decide",
    "a verdict is given wherever the medians differ, however far the runs are spread.",
    2,
    ("new[2] < old[0]", "new[1] < old[1]"),
    ("new[0] > old[2]", "new[1] > old[1]"),
)
_misconception(
    "touching is enough",
    "a verdict is given where the quartile ranges only touch.",
    2,
    ("new[2] < old[0]", "new[2] <= old[0]"),
    ("new[0] > old[2]", "new[0] >= old[2]"),
)
_misconception(
    "a quartile against a median",
    "a verdict is given where the median of one lies outside of the other's quartile range.",
    2,
    ("new[2] < old[0]", "new[1] < old[0]"),
    ("new[0] > old[2]", "new[1] > old[2]"),
)
_misconception(
    "all runs must be apart",
    "one slow run keeps the verdict from being given: the extremes are compared, not the quartiles.",
    2,
    ("new[2] < old[0]", "max(after) < min(before)"),
    ("new[0] > old[2]", "min(after) > max(before)"),
)
_misconception(
    "few runs are enough",
    "a verdict is given of fewer than five runs.",
    2,
    ("if len(before) >= 5 and len(after) >= 5:", "if True:"),
)
_misconception(
    "one side may have few runs",
    "a verdict is given where only one of the lists has five runs.",
    2,
    ("len(before) >= 5 and len(after) >= 5", "len(before) >= 5 or len(after) >= 5"),
)
_misconception(
    "more than five runs wanted",
    "of five runs no verdict is given.",
    2,
    ("len(before) >= 5 and len(after) >= 5", "len(before) > 5 and len(after) > 5"),
)
_misconception(
    "never slower",
    "a step that has become slower gets `can't say`.",
    2,
    ('verdict = \'slower\'', "pass"),
)
_misconception(
    "faster and slower exchanged",
    "what has become faster is called slower, and the other way round.",
    2,
    ("new[2] < old[0]", "old[2] < new[0]"),
    ("new[0] > old[2]", "old[0] > new[2]"),
)


@compare_runs.alternate("statistics.quantiles")
def _(before, after):
    def three(runs):
        return tuple(statistics.quantiles(runs * 2 if len(runs) == 1 else runs, n=4, method="inclusive"))

    result = {"before": three(before), "after": three(after)}
    (low, middle, high), (new_low, new_middle, new_high) = result["before"], result["after"]
    result["ratio"] = middle / new_middle
    if len(before) < 5 or len(after) < 5 or (new_high >= low and new_low <= high):
        result["verdict"] = "can't say"
    else:
        result["verdict"] = "faster" if new_high < low else "slower"
    return result


@compare_runs.alternate("torch.quantile")
def _(before, after):
    sides = []
    for runs in (before, after):
        times = torch.tensor(runs, dtype=torch.float64)
        sides.append(tuple(times.quantile(q).item() for q in (0.25, 0.5, 0.75)))
    if min(len(before), len(after)) < 5:
        verdict = "can't say"
    elif sides[0][0] > sides[1][2]:
        verdict = "faster"
    elif sides[1][0] > sides[0][2]:
        verdict = "slower"
    else:
        verdict = "can't say"
    ratio = sides[0][1] / sides[1][1]
    return {"verdict": verdict, "ratio": ratio, "before": sides[0], "after": sides[1]}


compare_runs.equivalent(
    (", n=4, method", ", method"), because="four groups are the default"
)
compare_runs.equivalent(
    ("len(runs) == 1", "len(runs) <= 1"),
    ("runs * 2", "runs * 3"),
    because="there is at least one run, and of equal ones every quantile is the same",
)
if sys.version_info >= (3, 13):
    compare_runs.equivalent(
        ("runs * 2 if len(runs) == 1 else runs", "runs"),
        ("len(runs) == 1", "len(runs) == 0"),
        ("len(runs) == 1", "runs == 1"),
        ("runs * 2", "runs * 1"),
        ("runs * 2", "runs"),
        because="of one value it gives three times that value from this Python on",
    )
compare_runs.equivalent(
    ("new_high < low", "new_high <= low"),
    because="where the two are equal the verdict has been given",
)
compare_runs.equivalent(
    ("torch.tensor(runs, dtype=torch.float64)", "torch.tensor(runs)"),
    ("torch.tensor(runs, dtype=torch.float64)", "torch.tensor(runs, dtype=torch.float32)"),
    because="the lab leaves open in which dtype quantiles are computed",
)
