"""Lab 06, exercise 11: A program for every length"""

import torch
from torch.export import Dim

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from utils.drivers.exporting import refusal

exportable = Check(
    "exportable",
    parts={"pooled": 1, "running_mean": 1, "placed": 1, "export_minigpt": 1},
    reads="One graph for every length",
    tolerance=Tolerance(1e-5, 1e-5, "float32 sums in another order"),
)


@exportable.reference
class _:
    def pooled(x, kept):
        return torch.where(kept.any(), x[kept].mean(0), x.mean(0))

    def running_mean(x):
        return x.cumsum(0) / torch.ones_like(x).cumsum(0)

    def placed(x, table):
        torch._check(x.shape[0] <= table.shape[0])
        return x + table[torch.arange(x.shape[0])]

    def export_minigpt(model):
        example = torch.ones(2, 3, dtype=torch.long)
        sizes = {"tokens": (Dim("B"), Dim("T", max=model.config.context))}
        return torch.export.export(model, (example,), dynamic_shapes=sizes)


@exportable.cases
def _(draw):
    def asked(of, shown, example, calls):
        """``calls``: words that describe the arguments of a run -> these arguments."""

        def play(subject):
            came = subject.drive("exporting:exported", example, *calls.values(), of=of)
            why = refusal(came["complaint"])
            accepts = why != "range" and None not in came["values"]
            known = of != "placed" or came["longest"] == len(example[1])
            return why != "branch", why != "constant", accepts, known, came["values"]

        places = {
            "[0]": f"`torch.export` refuses `{of}`, because a decision in Python needs a tensor's numbers.",
            "[1]": f"`torch.export` refuses `{of}`, because the number of rows is a constant there.",
            "[2]": f"The program of `{of}` refuses a number of rows that it should accept.",
            "[3]": "The program's range does not end at the number of rows of the table.",
        }
        for at, words in enumerate(calls):
            places[f"[4][{at}]"] = f"the program's value for {words}"
        shown = f"{of}, {shown}, exported with {len(example[0])} rows"
        return Case(of, play, of=of, shown=shown, places=places)

    def matrix(rows, dtype=torch.float64, columns=2):
        return draw.tensor((rows, columns), dtype)

    def marks(rows):
        """Marks of which the first is True, and the last is False."""
        kept = draw.tensor((rows,)) > 0
        kept[0], kept[-1] = True, False
        return kept

    few, columns = draw.integer(3, 5), draw.integer(2, 4)
    for dtype in (torch.float64, torch.float32):
        # more rows than small integers and bfloat16 can count
        many = draw.integer(1100, 1200) if dtype == torch.float64 else draw.integer(33, 48)
        example = matrix(few, dtype, columns)
        nothing = torch.zeros(many, dtype=torch.bool)
        kept = marks(many)
        # the marked rows of a column are 0, and in the other rows is infinity or NaN
        worst = matrix(many, dtype, columns)
        worst[:, 0] = 0.0
        worst[~kept] = float("inf") if dtype == torch.float64 else float("nan")
        calls = {
            f"{many} rows, some of them marked": [matrix(many, dtype, columns), kept],
            f"{many} rows, none of them marked": [matrix(many, dtype, columns), nothing],
            "two rows, both marked": [matrix(2, dtype, columns), ~nothing[:2]],
            "two rows, none of them marked": [matrix(2, dtype, columns), nothing[:2]],
            "NaN or infinity in rows that are not marked": [worst, kept],
        }
        given = marks(few)
        if dtype == torch.float64:
            cancels = matrix(few, dtype, columns)
            cancels[0], cancels[1] = 2.0**30 + 1, -(2.0**30)
            calls["numbers near 2**30, which cancel"] = [cancels, given | (torch.arange(few) < 2)]
        else:
            given = nothing[:few]
        yield asked("pooled", f"{str(dtype)[6:]}", [example, given], calls)

    for dtype in (torch.float64, torch.float32):
        many = draw.integer(1100, 1200) if dtype == torch.float64 else draw.integer(33, 48)
        calls = {f"{rows} rows": [matrix(rows, dtype, columns)] for rows in (many, 2, few + 1)}
        if dtype == torch.float64:
            cancels = matrix(few, dtype, columns)
            cancels[0], cancels[1] = 2.0**30 + 1, -(2.0**30)
            calls["numbers near 2**30, which cancel"] = [cancels]
        yield asked("running_mean", f"{str(dtype)[6:]}", [matrix(few, dtype, columns)], calls)

    for rows, dtype in ((3, torch.float32), (many, torch.float64)):
        table = matrix(rows, dtype, columns)
        calls = {f"{n} rows": [matrix(n, dtype, columns), table] for n in (2, rows - 1, rows)}
        if dtype == torch.float64:
            table[0], large = -(2.0**30), matrix(2, dtype, columns)
            large[0] = 2.0**30 + 1
            calls["numbers near 2**30, which cancel"] = [large, table]
        example = [matrix(2 if rows == 3 else few, dtype, columns), table]
        yield asked("placed", f"a table of {rows} rows, {str(dtype)[6:]}", example, calls)

    def minigpt(context, *shapes):
        words = draw.integer(7, 11)
        sizes, seed = (words, 6, 2, 1, 8, context), draw.integer(0, 10**6)
        tokens = [
            torch.tensor([draw.integer(0, words - 1) for _ in range(b * t)]).reshape(b, t)
            for b, t in shapes
        ]

        def play(subject):
            came = subject.drive(
                "exporting:exported_minigpt", tokens, sizes, seed, of="export_minigpt"
            )
            why = refusal(came["complaint"])
            return why != "constant", why != "range", None not in came["values"], came["values"]

        places = {
            "[0]": "`torch.export` refuses, because a size that was marked as dynamic is a constant in the graph.",
            "[1]": "`torch.export` refuses, because a `Dim` allows more tokens than the model's context.",
            "[2]": "The program refuses tokens of a shape that it should accept.",
        }
        for at, (b, t) in enumerate(shapes):
            places[f"[3][{at}]"] = f"the logits for tokens of shape ({b}, {t})"
        shown = f"a MiniGPT with a context of {context}"
        return Case("export_minigpt", play, of="export_minigpt", shown=shown, places=places)

    # the smallest context, and another one
    yield minigpt(4, (2, 2), (draw.integer(40, 80), 4), (4, 4))
    context = draw.integer(5, 7)
    yield minigpt(context, (2, 2), (draw.integer(3, 5), context - 1), (2, context))
