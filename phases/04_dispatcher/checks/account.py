"""Lab 04, exercise 8: The account of MiniGPT"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from utils.checks.exercise import Case, Check, edited
from utils.drivers.dispatch import STEPS
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


PLACES = {
    f"['{kind}']": f"the number of {kind}"
    for kind in ("views", "copies", "products", "launches")
} | {"['rest']": "the number of the rest"}


@account.cases
def _(draw):
    def accounted(config, tokens, backward):
        def play(subject):
            return subject.drive("dispatch:account", config, tokens, backward)

        part = "with the backward" if backward else "the forward"
        shown = f"{config.n_layers} layer{'s' * (config.n_layers > 1)}, a batch of {len(tokens)}"
        return Case(part, play, shown=shown, places=PLACES)

    def shuffled(tokens, backward):
        def play(subject):
            return subject.drive("dispatch:account_of_shuffle", tokens, backward)

        part = "with the backward" if backward else "the forward"
        shown = "a small model that splits, copies and writes in place"
        return Case(part, play, shown=shown, places=PLACES)

    def of_one(step, backward):
        tokens = torch.zeros(draw.integer(2, 4), draw.integer(2, 9), dtype=torch.int64)

        def play(subject):
            return subject.drive("dispatch:account_of_one", step, tokens, backward)

        part = "with the backward" if backward else "the forward"
        shown = f"an embedding{f', then {step}' * (step != 'nothing')}, then the sum"
        return Case(part, play, shown=shown, places=PLACES)

    def drawn(layers, heads):
        return MiniGPTConfig(
            vocab_size=draw.integer(11, 30), d_model=8, n_heads=heads, n_layers=layers,
            d_ff=draw.integer(5, 20), context=9,
        )  # fmt: skip

    for step in STEPS:
        whole = "whole numbers" in step or "comparison" in step  # without a gradient
        for backward in (False,) if whole else (False, True):
            yield of_one(step, backward)
    for layers, heads, batch, length in (
        (1, 2, 2, draw.integer(2, 9)),
        (2, 4, 1, draw.integer(2, 9)),
        (3, 1, draw.integer(2, 4), 1),
    ):
        tokens = torch.zeros(batch, length, dtype=torch.int64)
        for backward in (False, True):
            yield accounted(drawn(layers, heads), tokens, backward)
    tokens = torch.zeros(draw.integer(2, 4), draw.integer(2, 9), dtype=torch.int64)
    for backward in (False, True):
        yield shuffled(tokens, backward)


account.misconception("views launched", "views are counted as work for a GPU.", earns=0)(
    edited(
        _solution,
        ("{'launches': counts['copies']", "{'launches': counts['views'] + counts['copies']"),
    )
)
account.misconception(
    "views by name",
    "of the views only `view`, `t`, `transpose` and `expand` are counted as such, as where they are known by their names.",
    earns=0,
)(
    edited(
        _solution,
        ("elif not func._schema.is_mutable and storages(result) & storages(args):",
         "elif name in ('view', 't', 'transpose', 'expand'):"),
    )
)  # fmt: skip
account.misconception(
    "_unsafe_view for a copy", "`_unsafe_view`, which moves nothing, is counted as a copy.", earns=0
)(
    edited(
        _solution,
        ("{'clone', 'copy_', '_to_copy'}", "{'clone', 'copy_', '_to_copy', '_unsafe_view'}"),
    )
)
account.misconception(
    "views by the schema",
    "`_unsafe_view`, which moves nothing, counts as work, as where views are known by the schema or by their names.",
    earns=0,
)(
    edited(
        _solution,
        ("storages(result) & storages(args)",
         "any(r.alias_info is not None for r in func._schema.returns)"),
    )
)  # fmt: skip
account.misconception(
    "writing taken for viewing",
    "an operator that returns its argument after writing into it is counted as a view.",
    earns=0,
)(edited(_solution, ("not func._schema.is_mutable and ", "")))
account.misconception("clones among the rest", "clones are not counted as copies.", earns=0)(
    edited(_solution, ("{'clone', 'copy_', '_to_copy'}", "{'copy_', '_to_copy'}"))
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
    "the operators of the backward are not counted, as where `backward()` is called after the mode was left.",
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
    "the sum of a backward alone",
    "without a backward the sum of the logits is not counted.",
    earns=2,
)(
    edited(
        _solution,
        ("total = model(tokens).sum()\n        if backward:\n            total.backward()",
         "total = model(tokens)\n        if backward:\n            total.sum().backward()"),
    )
)  # fmt: skip
account.misconception(
    "a backward in any case",
    "operators of a backward are counted also where none is wanted.",
    earns=2,
)(edited(_solution, ("if backward:", "if True:")))
account.misconception(
    "a forward without gradients",
    "where no backward is wanted, the forward is counted as under `no_grad`: autograd keeps nothing.",
    earns=2,
)(edited(_solution, ("with Accountant():", "with torch.set_grad_enabled(backward), Accountant():")))
account.misconception(
    "copies start nothing",
    "copies are not counted among the launches.",
    earns=0,
)(edited(_solution, ("{'launches': counts['copies'] + ", "{'launches': ")))
account.misconception(
    "the place of the tensor",
    "views that begin further on in the storage are not counted as views.",
    earns=0,
)(edited(_solution, ("t.untyped_storage().data_ptr()", "t.data_ptr()")))
account.misconception(
    "addmm among the rest", "`addmm` is not counted as a product.", earns=0
)(edited(_solution, ("{'mm', 'addmm', 'bmm', 'baddbmm'}", "{'mm', 'bmm', 'baddbmm'}")))
account.misconception(
    "copies that write among the rest",
    "`copy_` is counted as the rest, not as a copy.",
    earns=0,
)(edited(_solution, ("{'clone', 'copy_', '_to_copy'}", "{'clone', '_to_copy'}")))
account.misconception(
    "bmm among the rest", "products of batches are not counted as products.", earns=0
)(edited(_solution, ("{'mm', 'addmm', 'bmm', 'baddbmm'}", "{'mm', 'addmm'}")))


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
    products = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
    copies = {aten.clone, aten.copy_, aten._to_copy}
    found = {"views": 0, "copies": 0, "products": 0, "rest": 0}
    for func in log:
        packet = func.overloadpacket
        if packet in products:
            found["products"] += 1
        elif packet in copies:
            found["copies"] += 1
        elif func.is_view or packet is aten._unsafe_view:
            found["views"] += 1
        else:
            found["rest"] += 1
    return {**found, "launches": len(log) - found["views"]}


@account.alternate("from the results of each call")
def _(model, tokens, backward):
    from torch.utils._pytree import tree_leaves

    class Sorter(TorchDispatchMode):
        heard = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            self.heard.append((func.overloadpacket.__name__, self.shares(out, args)))
            return out

        def shares(self, out, args):
            places = [t.untyped_storage().data_ptr() for t in args if torch.is_tensor(t)]
            return any(t.untyped_storage().data_ptr() in places for t in tree_leaves(out))

    def kind(name, shares):
        if name in {"mm", "addmm", "bmm", "baddbmm"}:
            return "products"
        if name in {"clone", "copy_", "_to_copy"}:
            return "copies"
        return "views" if shares and not name.endswith("_") else "rest"

    with Sorter() as sorter:
        loss = model(tokens).sum()
        if backward:
            loss.backward()
    kinds = [kind(*entry) for entry in sorter.heard]
    return {
        "views": kinds.count("views"),
        "copies": kinds.count("copies"),
        "products": kinds.count("products"),
        "rest": kinds.count("rest"),
        "launches": len(kinds) - kinds.count("views"),
    }


account.equivalent(
    ("kwargs or {}", "kwargs"),
    because="torch hands a dict over even where it promises None as well",
)
account.equivalent(
    ("t.untyped_storage().data_ptr()", "t.untyped_storage()"),
    because="torch keeps one object for a storage while that is in use",
    of="the lab's solution",
)
account.equivalent(
    ("any((t.untyped", "all((t.untyped"),
    because="where an operator returns several tensors, all are views or none is",
)
