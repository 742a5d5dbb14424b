"""Lab 04, exercise 8: The account of MiniGPT"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from utils.checks import Case, Check, edited
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
            if name in ("mm", "addmm", "bmm", "baddbmm"):
                kind = "products"
            elif name in ("clone", "copy_", "_to_copy"):
                kind = "copies"
            elif not func._schema.is_mutable and storages(result) & storages((args, kwargs)):
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


@account.cases
def _(draw):
    def accounted(config, tokens, backward):
        def play(subject):
            return subject.drive("dispatch:account", config, tokens, backward)

        part = "with the backward" if backward else "the forward"
        shown = f"{config.n_layers} layers, a batch of {tokens.shape[0]}"
        return Case(part, play, shown=shown)

    def drawn(layers, heads):
        return MiniGPTConfig(
            vocab_size=draw.integer(11, 30), d_model=8, n_heads=heads, n_layers=layers,
            d_ff=draw.integer(5, 20), context=9,
        )  # fmt: skip

    for layers, heads, batch, length in (
        (1, 2, 2, draw.integer(2, 9)),
        (2, 4, 1, draw.integer(2, 9)),
        (3, 1, draw.integer(2, 4), 1),
    ):
        tokens = torch.zeros(batch, length, dtype=torch.int64)
        for backward in (False, True):
            yield accounted(drawn(layers, heads), tokens, backward)


account.misconception("views launched", "views are counted as work for a GPU.", earns=0)(
    edited(
        _solution,
        ("{'launches': counts['copies']", "{'launches': counts['views'] + counts['copies']"),
    )
)
account.misconception(
    "views by name",
    "views are known by the names `view`, `t`, `transpose` and `expand`; others count as work.",
    earns=0,
)(
    edited(
        _solution,
        ("elif not func._schema.is_mutable and storages(result) & storages((args, kwargs)):",
         "elif name in ('view', 't', 'transpose', 'expand'):"),
    )
)  # fmt: skip
account.misconception(
    "_unsafe_view for a copy", "`_unsafe_view`, which moves nothing, is counted as a copy.", earns=0
)(
    edited(
        _solution,
        ("('clone', 'copy_', '_to_copy')", "('clone', 'copy_', '_to_copy', '_unsafe_view')"),
    )
)
account.misconception("clones among the rest", "clones are not counted as copies.", earns=0)(
    edited(_solution, ("('clone', 'copy_', '_to_copy')", "('copy_', '_to_copy')"))
)
account.misconception(
    "under inference mode",
    "the forward runs under inference mode, where composites arrive unopened.",
    earns=0,
)(
    edited(
        _solution,
        ("with Accountant():\n        total = model(tokens).sum()\n        if backward:\n            total.backward()",
         "with torch.inference_mode(not backward), Accountant():\n        total = model(tokens).sum()\n"
         "    if backward:\n        total.backward()"),
    )
)  # fmt: skip
account.misconception(
    "the backward out of hearing",
    "`backward()` is called after the mode was left.",
    earns=2,
)(
    edited(
        _solution,
        (
            "        if backward:\n            total.backward()",
            "    if backward:\n        total.backward()",
        ),
    )
)
account.misconception(
    "the sum left out", "the sum of the logits is not counted.", earns=0
)(
    edited(
        _solution,
        ("total = model(tokens).sum()\n        if backward:\n            total.backward()",
         "total = model(tokens)\n    total = total.sum()\n    if backward:\n        with Accountant():\n            total.backward()"),
    )
)  # fmt: skip
account.misconception(
    "bmm among the rest", "products of batches are not counted as products.", earns=0
)(edited(_solution, ("('mm', 'addmm', 'bmm', 'baddbmm')", "('mm', 'addmm')")))


@account.alternate("sorted by what torch says of views")
def _(model, tokens, backward):
    log = []

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(func)
            return func(*args, **(kwargs or {}))

    with Listener():
        logits = model(tokens)
        total = torch.sum(logits)
        if backward:
            total.backward()
    aten = torch.ops.aten
    kinds = {aten.mm: "products", aten.addmm: "products", aten.bmm: "products"}
    kinds |= {aten.clone: "copies", aten.copy_: "copies", aten._to_copy: "copies"}
    kinds |= {aten._unsafe_view: "views", aten.detach: "views"}
    found = dict.fromkeys(("views", "copies", "products", "rest", "launches"), 0)
    for func in log:
        kind = kinds.get(func.overloadpacket, "views" if func.is_view else "rest")
        found[kind] += 1
        found["launches"] += kind != "views"
    return found


@account.alternate("from the results of each call")
def _(model, tokens, backward):
    names = {"mm": "products", "addmm": "products", "bmm": "products", "baddbmm": "products"}
    names |= {"clone": "copies", "copy_": "copies", "_to_copy": "copies"}

    class Sorter(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.found = {"views": 0, "copies": 0, "products": 0, "rest": 0}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            name = func.overloadpacket.__name__
            shares = False
            if isinstance(out, torch.Tensor) and not name.endswith("_"):
                place = out.untyped_storage().data_ptr()
                shares = any(
                    isinstance(a, torch.Tensor) and a.untyped_storage().data_ptr() == place
                    for a in args
                )
            self.found[names.get(name, "views" if shares else "rest")] += 1
            return out

    sorter = Sorter()
    with sorter:
        loss = model(tokens).sum()
        if backward:
            loss.backward()
    total = sum(sorter.found.values())
    return {**sorter.found, "launches": total - sorter.found["views"]}
