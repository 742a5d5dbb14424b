"""Lab 04, exercise 8: The account of MiniGPT"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hood.judge.checks.exercise import Case, Check
from utils.drivers import dispatch
from utils.drivers.dispatch import SHUFFLE, STEPS
from utils.minigpt import MiniGPTConfig

account = Check(
    "account",
    parts={"the forward": 2, "with the backward": 2},
    reads="Counting, to the last operator",
)


def _solution(model, tokens, backward):
    counts = {"views": 0, "copies": 0, "products": 0, "rest": 0}

    def storages(things):
        leaves = torch.utils._pytree.tree_leaves(things)
        return {t.untyped_storage().data_ptr() for t in leaves if isinstance(t, torch.Tensor)}

    class Accountant(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            name = func.overloadpacket.__name__
            if name in {"mm", "addmm", "bmm", "baddbmm"}:
                kind = "products"
            elif name in {"clone", "copy_", "_to_copy"}:
                kind = "copies"
            elif not func._schema.is_mutable and storages(result) & storages(args):
                kind = "views"
            else:
                kind = "rest"
            counts[kind] += 1
            return result

    with Accountant():
        total = model(tokens).sum()
        if backward:
            total.backward()
    return counts | {"launches": counts["copies"] + counts["products"] + counts["rest"]}


account.reference(_solution)


KINDS = {
    "views": "views are counted.",
    "copies": "copies are counted.",
    "products": "products are counted.",
    "rest": "operators are counted as `rest`.",
    "launches": "launches are counted.",
}
PLACES = {
    f"[0]['{kind}'][{at}]": f"{how} {words}"
    for kind, words in KINDS.items()
    for at, how in enumerate(("Too few", "Too many"))
} | {"[1]": "the dict"}


def _told(found, right):
    """Whether the count of each kind is too low or too high, and then the counts themselves."""
    if not isinstance(found, dict):
        return found
    told = {}
    for kind in KINDS:
        count = found.get(kind)
        counted = isinstance(count, int)
        told[kind] = counted and count < right[kind], counted and count > right[kind]
    return told, found


@account.cases
def _(draw):
    def accounted(model, shown, tokens, backward):
        right = dispatch.account(_solution, model, tokens, backward)

        def play(subject):
            return _told(subject.drive("dispatch:account", model, tokens, backward), right)

        part = "with the backward" if backward else "the forward"
        return Case(part, play, shown=shown, places=PLACES)

    def some_tokens():
        return torch.zeros(draw.integer(2, 4), draw.integer(2, 9), dtype=torch.int64)

    def of_two():
        tokens = some_tokens()
        right = dispatch.account_of_two(_solution, tokens)

        def play(subject):
            came = subject.drive("dispatch:account_of_two", tokens)
            return [_told(came[which], right[which]) for which in ("first", "second")]

        places = {
            f"[{number}]{path}": f"of the {which} model: {words}"
            for number, which in enumerate(("first", "second"))
            for path, words in PLACES.items()
        }
        shown = "two models, one after the other"
        return Case("with the backward", play, shown=shown, places=places)

    def drawn(layers, heads):
        return MiniGPTConfig(
            vocab_size=draw.integer(11, 30), d_model=8, n_heads=heads, n_layers=layers,
            d_ff=draw.integer(5, 20), context=9,
        )  # fmt: skip

    for step in STEPS:
        whole = "whole numbers" in step or "comparison" in step  # without a gradient
        shown = f"an embedding{f', then {step}' * (step != 'nothing')}, then the sum"
        for backward in (False,) if whole else (False, True):
            yield accounted(step, shown, some_tokens(), backward)
    for layers, heads, batch, length in (
        (1, 2, 2, draw.integer(2, 9)),
        (2, 4, 1, draw.integer(2, 9)),
        (3, 1, draw.integer(2, 4), 1),
    ):
        tokens = torch.zeros(batch, length, dtype=torch.int64)
        shown = f"{layers} layer{'s' * (layers > 1)}, a batch of {batch}"
        for backward in (False, True):
            yield accounted(drawn(layers, heads), shown, tokens, backward)
    tokens = some_tokens()
    shown = "a small model that splits, copies, multiplies and writes in place"
    for backward in (False, True):
        yield accounted(SHUFFLE, shown, tokens, backward)
    yield of_two()
