"""Lab 06, exercise 3: One graph each"""

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, Place, edited
from utils.checks.lab_solution import lab_solution

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
        """``calls``: by words that say what comes, the arguments."""

        def play(subject):
            came = subject.drive("compiling:compiled", *calls.values(), of=of)
            return came["values"], came["gradients"], came["graphs"]

        places = {"[2]": "Compiled, it is not a single graph for all calls."}
        for at, words in enumerate(calls):
            places[f"[0][{at}]"] = f"the value of call {at + 1}, {words}"
            places[f"[1][{at}]"] = Place(f"the gradient of call {at + 1}, {words}", returned=False)
        return Case(of, play, of=of, shown=f"{of}, {shown}", places=places)

    a, b, c = draw.shape(3)
    x = draw.tensor((b, a, c), torch.float64).abs()
    x[0, 0, 0] = -0.5  # so that both signs are on both sides
    small = x / x.abs().sum()  # whose sum lies between -1 and 1
    endless = x.clone()
    endless[-1, 0, 0] = float("inf")
    neither = endless.clone()
    neither[0, 0, -1] = -float("inf")  # the sum is NaN, and not positive
    cancels = 0 * x
    cancels[0, 0, 0], cancels[0, 0, -1] = 2.0**30 + 1, -(2.0**30)  # float32 would make 0 of the sum
    mixed = -x
    mixed[-1, -1, -1] = 1000.0  # outweighs all others together
    sides = {
        "a positive sum": [x],
        "a negative sum": [-x],
        "a sum of 0": [0 * x],
        "a sum between 0 and 1": [small],
        "a sum between -1 and 0": [-small],
        "one large number among negative ones": [mixed],
        "one large negative number": [-mixed],
        "a sum of 1, of numbers near 2**30": [cancels],
        "a sum about 1e-50": [1e-50 * x],
        "a sum of inf": [endless],
        "a sum of -inf": [-endless],
        "inf and -inf, a sum of NaN": [neither],
    }
    yield asked("gate", "on both sides, float64", sides)

    row = draw.tensor((b, a, c), torch.float64)
    row[draw.integer(0, b - 1), 0, draw.integer(0, c - 1)] = -100.0  # the largest is negative
    tiny = 1e-50 * row  # zeros, for float32
    endless = row.clone()
    endless[0, 0, 0] = float("inf")
    scaled = {
        "zeros": [0 * row],
        "the largest is negative": [row],
        "the largest is positive": [-3 * row],
        "numbers below 1": [row / 256],
        "numbers about 1e-50": [tiny],
        "one of them infinite": [endless],
    }
    yield asked("scale", "zeros first, float64", scaled)

    wide = b + 3  # more than two columns, whatever is drawn
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
        "NaN or infinity behind a length": [worst, lengths],
        "other numbers": [-x, lengths],
        "infinity within a row": [endless, every],
        "NaN within a row": [unknown, every],
        "numbers near 2**30, which cancel": [cancels, every],
    }
    yield asked("row_sums", "a matrix, float64", rows)
    yield asked("row_sums", "a matrix, float64", {"a single row": [x[:1], lengths[:1]]})


gate = lab_solution(__name__, "mended", "gate")
scale = lab_solution(__name__, "mended", "scale")
row_sums = lab_solution(__name__, "mended", "row_sums")


def _misconception(name, explanation, earns, function, *edits):
    wrong = {function.__name__: edited(function, *edits)}
    mended.misconception(name, explanation, earns=earns)(wrong)


_misconception(
    "one side of the gate",
    "the gate always doubles, on whichever side the sum is.",
    4,
    gate,
    ("torch.where(x.sum() > 0, 2 * x, x / 2)", "2 * x"),
)
_misconception(
    "doubled at 0",
    "the gate doubles where the sum is 0.",
    4,
    gate,
    ("x.sum() > 0", "x.sum() >= 0"),
)
_misconception(
    "both sides multiplied by a mask",
    "the side that does not count reaches the result, where infinity times 0, or less itself, is NaN.",
    4,
    gate,
    ("torch.where(x.sum() > 0, 2 * x, x / 2)", "(x.sum() > 0) * (2 * x) + (x.sum() <= 0) * (x / 2)"),
)
_misconception(
    "each row's own sum",
    "the numbers of a row are gated by that row's sum, and not all by one.",
    4,
    gate,
    ("x.sum() > 0", "x.sum(-1, keepdim=True) > 0"),
)
_misconception(
    "element by element",
    "each number is gated by its own sign, and not all of them by the sum.",
    4,
    gate,
    ("x.sum() > 0", "x > 0"),
)
_misconception(
    "nothing but a bool",
    "the branch is still one of Python's: compiled, it is not a single graph.",
    4,
    gate,
    ("return torch.where(x.sum() > 0, 2 * x, x / 2)",
     "positive = bool(x.sum() > 0)\n    return 2 * x if positive else x / 2"),
)  # fmt: skip
_misconception(
    "item kept",
    "the graph ends before the division, as where a number is fetched from a tensor, or Python branches on one.",
    3,
    scale,
    ("largest = x.detach().abs().max()\n    return x / torch.where(largest == 0, 1.0, largest)",
     "largest = x.abs().max().item()\n    return x / (largest + (largest == 0))"),
)  # fmt: skip
_misconception(
    "a gradient through the largest",
    "the divisor is differentiated as well, and the colleague's is a constant.",
    3,
    scale,
    ("x.detach().abs().max()", "x.abs().max()"),
)
_misconception(
    "no gradient at all",
    "what comes out is detached: no gradient arrives at x.",
    3,
    scale,
    ("return x /", "return x.detach() /"),
)
_misconception(
    "zeros become NaN",
    "a tensor of zeros is divided by 0.",
    3,
    scale,
    ("torch.where(largest == 0, 1.0, largest)", "largest"),
)
_misconception(
    "a small number added",
    "the divisor is a little larger than the largest.",
    3,
    scale,
    ("torch.where(largest == 0, 1.0, largest)", "(largest + 0.001)"),
)
_misconception(
    "the largest, not of the absolute values",
    "where the largest of the absolute values is negative, another number is the divisor.",
    3,
    scale,
    ("x.detach().abs().max()", "x.detach().max()"),
)
_misconception(
    "multiplied by a mask",
    "what lies behind a row reaches the result: NaN or infinity, times 0 or taken off again, is NaN.",
    3,
    row_sums,
    ("torch.where(counts, x, 0.0)", "(counts * x)"),
)
_misconception(
    "an infinity made finite",
    "infinity within a row comes out as a finite number.",
    3,
    row_sums,
    ("torch.where(counts, x, 0.0)", "(counts * x.nan_to_num(0.0))"),
)
_misconception(
    "a NaN within a row left out",
    "NaN within a row is left out of the sum, and the colleague's sum is NaN.",
    3,
    row_sums,
    ("torch.where(counts, x, 0.0).sum(1)", "torch.where(counts, x, float('nan')).nansum(1)"),
)
_misconception(
    "a single row without its dimension",
    "of a matrix with a single row comes a tensor of no dimensions, and not one sum in a row.",
    3,
    row_sums,
    (".sum(1)", ".sum(1).squeeze()"),
)
_misconception(
    "one number more",
    "the number behind a row's last is added as well.",
    3,
    row_sums,
    ("< lengths", "<= lengths"),
)
_misconception(
    "the slice kept",
    "the graph ends among the rows, as where a length is still taken out of its tensor, row by row.",
    3,
    row_sums,
    ("counts = torch.arange(x.shape[1]) < lengths[:, None]\n    return torch.where(counts, x, 0.0).sum(1)",
     "return torch.stack([row[:int(n)].sum() for row, n in zip(x, lengths)])"),
)  # fmt: skip
_misconception(
    "switched off",
    "nothing of it is compiled, as where Dynamo is told not to look inside.",
    3,
    row_sums,
    ("counts = torch.arange(x.shape[1]) < lengths[:, None]\n    return torch.where(counts, x, 0.0).sum(1)",
     "sums = torch.compiler.disable(lambda: torch.stack([row[:n].sum() for row, n in zip(x, lengths.tolist())]))\n    return sums()"),
)  # fmt: skip


@mended.alternate("factors, one element of a table each")
class _:
    def gate(x):
        positive = (x.sum() > 0).to(x.dtype)
        return x * (0.5 + 1.5 * positive)

    def scale(x):
        with torch.no_grad():
            largest = torch.maximum(x.max(), -x.min())
            divisor = largest.masked_fill(largest == 0, 1)
        return x / divisor

    def row_sums(x, lengths):
        column = torch.arange(x.size(1), device=x.device).expand(x.shape)
        kept = column < lengths.unsqueeze(1)
        return torch.where(kept, x, torch.zeros_like(x)).sum(dim=-1)


@mended.alternate("torch.cond, a norm, and prefix sums of what counts")
class _:
    def gate(x):
        return torch.cond(x.sum() > 0, lambda x: 2 * x, lambda x: x / 2, (x,))

    def scale(x):
        largest = torch.linalg.vector_norm(x.detach(), float("inf"))
        return x / torch.where(largest > 0, largest, 1)

    def row_sums(x, lengths):
        columns = x.shape[1]
        keep = torch.ones(columns, columns + 1, dtype=torch.bool).triu(1)
        return x.masked_fill(~keep.T[lengths], 0.0).sum(1)


mended.equivalent(
    ("x.sum() > 0", "x.mean() > 0"),
    ("(x.sum() > 0).to(x.dtype)", "x.sum() > 0"),
    because="the mean has the sum's sign, and a bool is 0 or 1 in any dtype",
)
mended.equivalent(
    ("largest == 0", "largest <= 0"),
    ("largest > 0", "largest != 0"),
    because="no absolute value is less than 0",
)
mended.equivalent(
    (".expand(x.shape)", ""),
    ("x.size(1), device=x.device", "x.size(1)"),
    ("device=x.device", "device=lengths.device"),
    ("columns + 1", "columns + 2"),
    ("sum(dim=-1)", "sum(dim=1)"),
    because="a row broadcasts over the others; all is on one device; no length is beyond the columns; "
    "x is a matrix",
)
