"""Lab 02, exercise 11: Run it again"""

import torch
from torch.utils.checkpoint import checkpoint

from hood.judge.checks.exercise import ByHand, Case, Check

from .shared import FLOATS, SUMS

checkpointed = Check(
    "checkpointed",
    parts={"gradients": 1, "what is kept": 1, "random numbers": 1, "written over": 1},
    reads="Kept, or computed again",
    reads_by_part={"written over": "Written over, while autograd watches"},
    tolerance=SUMS,
    by_hand=ByHand(
        "the exercise is to write what torch.utils.checkpoint does",
        forbid_names=frozenset({"*checkpoint*", "*Checkpoint*"}),
        # autograd's own hooks, and the functions that number each backward, are in torch._C
        allow_names=frozenset({"torch._C"}),
    ),
)


@checkpointed.reference
def _(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=False)


PLACES = {
    "['output']": "the result",
    "['drawn']": "the random numbers that other code draws afterwards",
    "['alive']": "before backward, intermediate tensors of `function` are still alive.",
    "['refused']": "which backward raised a RuntimeError, counted from 0",
    "['runs']": "how often `function` has run when the forward is over, and after each backward",
    "['runs'][0]": "how often `function` has run when the forward is over",
}
EASY = "backward raised a RuntimeError, but no input was written to after the forward."
HARD = "backward raised no RuntimeError, but an input was written to after the forward."


@checkpointed.cases
def _(draw):
    gradients, kept, random, written = checkpointed.parts

    def asked(
        of,
        tells,
        words,
        sizes,
        wanted,
        upstreams=1,
        blocks=1,
        rows=None,
        dtype=torch.float32,
        **more,
    ):
        """`sizes` are N, D and H. `rows` is the number of rows that the third input picks."""
        n, d, h = sizes
        inputs = [draw.tensor((n, d), dtype)]
        inputs += [draw.tensor((d,), dtype)] if len(wanted) > 1 else []
        picked = [draw.integer(0, max(0, n - 2)) for _ in range(rows or 0)]
        inputs += [torch.tensor(picked, dtype=torch.int64)] if len(wanted) > 2 else []
        inputs += [draw.tensor((2,), dtype)] if len(wanted) > 3 else []
        weights = [
            [draw.tensor((d, h), dtype) * 0.5, draw.tensor((h, d), dtype)] for _ in range(blocks)
        ]
        came = [draw.tensor((n if rows is None else rows, d), dtype) for _ in range(upstreams)]
        more = {"seed": draw.integer(0, 999), **more, **({"count": True} if of == kept else {})}

        def play(subject):
            found = subject.drive(
                "checkpointing:checkpoints", inputs, wanted, weights, came, **more
            )
            return {key: found[key] for key in tells}

        places = dict(PLACES)
        for k in range(upstreams):
            nth = f" after backward {k + 1}" if upstreams > 1 else ""
            places[f"['gradients'][{k}]"] = f"the gradients of the inputs{nth}"
            places[f"['parameters'][{k}]"] = f"the gradients of the parameters{nth}"
            places[f"['runs'][{k + 1}]"] = f"how often `function` has run after backward {k + 1}"
        aim = more.get("written")
        if of == written and (aim is None or aim[0] < 0):
            places["['refused']"] = EASY
        elif aim is not None and aim[2] == 0:
            places["['refused']"] = HARD
        return Case(of, play, shown=words, places=places)

    n, d, h = draw.shape(3, 3)
    every = "refused", "output", "gradients", "parameters", "runs"
    yield asked(gradients, every, "one input", (n, d, h), (True,))
    yield asked(
        gradients, every, "one input, which was computed", (n, d, h), (True,), computed=True
    )
    four = True, True, False, True
    words = "four inputs: floats, a scale, indices, and an unused tensor"
    for dtype in FLOATS:
        yield asked(gradients, every, words, (n, d, h), four, rows=h, dtype=dtype, old=0.5)
    yield asked(gradients, every, words, (n, d, h), four, rows=h, computed=True)
    yield asked(
        gradients,
        every,
        "only the second input requires a gradient",
        (n, d, h),
        (False, True, False),
        rows=n,
    )
    yield asked(
        gradients,
        every,
        "only the first of two inputs requires a gradient",
        (n, d, h),
        (True, False),
        computed=True,
    )
    yield asked(
        gradients, every, "one tensor as first and second input", (n, d, h), (True,), twice=True
    )
    yield asked(gradients, every, "three backwards through one graph", (n, d, h), (True, True), 3)
    yield asked(gradients, every, "a chain of three functions", (n, d, h), (True,), blocks=3, old=-1.0)
    words = "a function that uses a parameter twice"
    yield asked(gradients, every, words, (n, d, h), (True,), tied=True)
    for sizes in ((1, 1, 1), (0, d, h), (n, 1, h), (1, d, 1)):
        yield asked(gradients, every, f"x of shape {sizes[:2]}", sizes, (True,))
    yield asked(gradients, every, "no index", (n, d, h), (True, True, False), rows=0)

    holds = "runs", "alive"
    yield asked(kept, holds, "one input", (n, d, h), (True,))
    yield asked(kept, holds, "three inputs", (n, d, h), (True, True, False), rows=h)
    yield asked(kept, holds, "a chain of four functions", (n, d, h), (True,), blocks=4, computed=True)
    yield asked(kept, holds, "dropout", (n, d, h), (True,), dropout=0.5)
    yield asked(kept, holds, "two backwards through one graph", (n, d, h), (True,), 2)

    dice = "output", "gradients", "runs", "drawn"
    for share in (0.5, 0.25):
        yield asked(random, dice, f"dropout {share}", (n, d, 8), (True,), dropout=share)
        many = draw.integer(2, 9)
        words = f"dropout {share}, and other code draws {many} numbers in between"
        yield asked(random, dice, words, (n, d, 8), (True,), dropout=share, draws=many)
    words = "dropout, a chain of three functions, and other code draws numbers in between"
    yield asked(random, dice, words, (n, d, 8), (True,), blocks=3, dropout=0.5, draws=3)
    words = "dropout, two backwards, and other code draws numbers before each"
    yield asked(random, dice, words, (n, d, 8), (True,), 2, dropout=0.5, draws=3)
    yield asked(
        random, dice, "no dropout, and other code draws numbers in between", (n, d, h), (True,), draws=3
    )

    over = "refused", "gradients", "runs"
    three = True, True, False
    nobody = -1, "added to", 0
    for how in ("added to", "one row of it", "by way of detach", "the same numbers"):
        words = f"the input is written to: {how}"
        yield asked(written, over, words, (n, d, h), (True,), written=(0, how, 0))
    for which, words in enumerate(("first", "second", "third")):
        words = f"the {words} of three inputs is written to"
        yield asked(
            written,
            over,
            words,
            (n, d, h),
            three,
            rows=h,
            computed=True,
            written=(which, "added to", 0),
        )
    words = "an input that requires no gradient is written to"
    yield asked(written, over, words, (n, d, h), (False, True), written=(0, "added to", 0))
    words = "the input is written to after the first backward of two"
    yield asked(written, over, words, (n, d, h), (True,), 2, written=(0, "added to", 1))
    words = "a chain of two functions, and the first input is written to"
    yield asked(
        written, ("refused",), words, (n, d, h), (True,), blocks=2, written=(0, "added to", 0)
    )
    yield asked(written, over, "no input is written to", (n, d, h), three, rows=h)
    yield asked(
        written, over, "the inputs were written to before the forward", (n, d, h), three, rows=h, before=True
    )
    words = (
        "three inputs were written to before the forward, and only the third was written to after "
        "it"
    )
    yield asked(
        written,
        over,
        words,
        (n, d, h),
        three,
        rows=h,
        before=True,
        written=(2, "added to", 0),
    )
    words = (
        "a chain of two functions, and both inputs of the first were written to before the forward"
    )
    sizes = n, d, h
    yield asked(written, ("refused",), words, sizes, (True, True), blocks=2, before=True)
    yield asked(
        written, over, "a copy of the input is written to", (n, d, h), (True,), written=nobody
    )
