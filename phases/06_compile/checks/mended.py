"""Lab 06, exercise 3: One graph each"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, Place

mended = Check(
    "mended",
    parts={"gate": 1, "scale": 2, "row_sums": 2},
    reads="When it breaks, and who says so",
    tolerance=Tolerance(1e-5, 1e-6, "float32 sums in another order"),
)


@mended.reference
class _:
    def gate(x):
        factor = torch.where(x.sum() > 0, 2.0, 0.5)
        return x * factor.to(x.dtype)

    def scale(x):
        largest = x.detach().abs().amax()
        return x / (largest + (largest == 0))

    def row_sums(x, lengths):
        beyond = torch.arange(x.shape[1])[None, :] >= lengths[:, None]
        return x.masked_fill(beyond, 0).sum(1)


@mended.cases
def _(draw):
    def asked(of, shown, calls):
        """``calls``: words that describe the arguments of a call -> these arguments."""

        def play(subject):
            came = subject.drive("compiling:compiled", *calls.values(), of=of)
            return came["values"], came["gradients"], came["graphs"]

        places = {"[2]": "When the function is compiled, there should be exactly one graph for all calls."}
        for at, words in enumerate(calls):
            places[f"[0][{at}]"] = f"the value of call {at + 1}, {words}"
            places[f"[1][{at}]"] = Place(f"the gradient of call {at + 1}, {words}", returned=False)
        return Case(of, play, of=of, shown=f"{of}, {shown}", places=places)

    a, b, c = draw.shape(3)
    x = draw.tensor((b, a), torch.float64).abs()
    x[0, 0] = -0.5  # so that both signs are on both sides
    small = x / x.abs().sum()  # whose sum lies between -1 and 1
    mixed = -x
    mixed[-1, -1] = 1000.0  # outweighs all others together
    sides = {
        "a positive sum": [x],
        "a negative sum": [-x],
        "a sum between 0 and 1": [small],
        "a sum between -1 and 0": [-small],
        "one large number among negative numbers": [mixed],
        "one large negative number": [-mixed],
    }
    yield asked("gate", "on both sides, a matrix, float64", sides)
    row = x[:, 0]
    endless = row.clone()
    endless[0] = float("inf")
    neither = endless.clone()
    neither[-1] = -float("inf")  # the sum is NaN, and not positive
    edges = {
        "a sum of 0": [0 * row],
        "a sum of inf": [endless],
        "a sum of -inf": [-endless],
        "inf and -inf, a sum of NaN": [neither],
    }
    yield asked("gate", "at the edges, one dimension, float64", edges)
    block = draw.tensor((a, 1, c), torch.float64).abs()
    block[0, 0, 0] = -0.5
    outweighed = -block
    outweighed[-1, 0, -1] = 1000.0
    cancels = 0 * block
    cancels[0, 0, 0], cancels[0, 0, -1] = 2.0**30 + 1, -(2.0**30)  # float32 would make 0 of the sum
    blocks = {
        "one large number among negative numbers": [outweighed],
        "a sum of 1, of numbers near 2**30": [cancels],
        "a sum about 1e-50": [1e-50 * outweighed],
    }
    yield asked("gate", "three dimensions, float64", blocks)

    matrix = draw.tensor((b, a), torch.float64)
    matrix[draw.integer(0, b - 1), 0] = -100.0  # the largest is negative
    scaled = {
        "zeros": [0 * matrix],
        "the largest is negative": [matrix],
        "the largest is positive": [-3 * matrix],
        "numbers below 1": [matrix / 256],
    }
    yield asked("scale", "zeros first, a matrix, float64", scaled)
    row = matrix[:, 0]
    endless = row.clone()
    endless[0] = float("inf")
    # zeros, for float32
    edges = {"numbers about 1e-50": [1e-50 * row], "zeros": [0 * row], "one of them infinite": [endless]}
    yield asked("scale", "at the edges, one dimension, float64", edges)
    block = draw.tensor((a, 1, c), torch.float64)
    block[draw.integer(0, a - 1), 0, draw.integer(0, c - 1)] = -100.0
    yield asked("scale", "three dimensions, float64", {"the largest is negative": [block]})

    wide = b + 1  # more than two columns, whatever is drawn
    x = draw.tensor((a, wide), torch.float64)
    some = draw.integer(1, wide - 1)  # neither nothing nor the whole row
    lengths = torch.tensor([some, *(draw.integer(0, wide) for _ in range(a - 1))])
    ends = torch.tensor([0, wide, *(draw.integer(0, wide) for _ in range(a - 2))])
    beyond = torch.arange(wide) >= lengths[:, None]
    worst = x.masked_fill(beyond, draw.choice((float("nan"), float("inf"), -float("inf"))))
    endless = x.clone()
    endless[draw.integer(0, a - 1), 0] = float("inf")  # within its row
    unknown = x.clone()
    unknown[draw.integer(0, a - 1), 0] = float("nan")
    cancels = x.clone()
    cancels[:, 0], cancels[:, 1] = 2.0**30 + 1, -(2.0**30)
    every = torch.full((a,), wide)
    rows = {
        "a length of 0, and a whole row": [x, ends],
        "NaN or infinity beyond a length": [worst, lengths],
        "other numbers": [-x, lengths],
    }
    yield asked("row_sums", "a matrix, float64", rows)
    within = {
        "infinity within a row": [endless, every],
        "NaN within a row": [unknown, every],
        "numbers near 2**30, which cancel": [cancels, every],
    }
    yield asked("row_sums", "whole rows, float64", within)
    yield asked("row_sums", "a matrix, float64", {"a single row": [x[:1], lengths[:1]]})
