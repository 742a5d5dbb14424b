"""Answers to lab 04, a second bank: written from the lesson and the lab's text alone."""

# ruff: noqa: E501

from __future__ import annotations

from tests.phases.bank import Bank

RIGHT = {
    "winning_key": {
        "a set, sorted at the end": '''
ORDER = ("Autocast", "Autograd", "ADInplaceOrView", "Conjugate", "")


def call_keys(tensor, contexts):
    device = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}[tensor["device"]]
    kinds = {"", "ADInplaceOrView"}
    if tensor["conj"]:
        kinds.add("Conjugate")
    if not tensor["inference"]:
        kinds.add("Autograd")
    if "autocast" in contexts and device != "Meta":
        kinds.add("Autocast")
    if "inference_mode" in contexts:
        kinds.discard("Autograd")
        if tensor["inference"]:
            kinds.discard("ADInplaceOrView")
    return tuple(
        kind if kind in ("ADInplaceOrView", "Conjugate") else kind + device
        for kind in ORDER if kind in kinds
    )


def winner(op, keys):
    skipped = {"mm": ("ADInplaceOrView", "Conjugate"), "mul": ("Autocast", "ADInplaceOrView"), "t": ("Autocast", "Conjugate")}[op]
    return next(key for key in keys if not key.startswith(skipped))
''',
    },
    "OpLog": {
        "tree_leaves": '''
from torch.utils._pytree import tree_leaves


class OpLog(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        leaves = tree_leaves(args) + tree_leaves(kwargs)
        self.ops.append((str(func), [tuple(a.shape) for a in leaves if isinstance(a, torch.Tensor)]))
        return func(*args, **kwargs)
''',
    },
    "Dispatcher": {
        "three dicts": '''
class Dispatcher:
    def __init__(self, order):
        self.order = tuple(order)
        self.impls, self.composites, self.fallbacks = {}, {}, {}

    def impl(self, op, key, kernel):
        self.impls[op, key] = kernel

    def composite(self, op, keys, kernel):
        for key in keys:
            self.composites[op, key] = kernel

    def fallback(self, key, kernel):
        self.fallbacks[key] = kernel

    def call(self, op, keys, value):
        for key in sorted(keys, key=self.order.index):
            rest = frozenset(k for k in keys if self.order.index(k) > self.order.index(key))
            if (op, key) in self.impls:
                kernel, args = self.impls[op, key], (rest, value)
            elif (op, key) in self.composites:
                kernel, args = self.composites[op, key], (keys, value)
            elif key in self.fallbacks:
                kernel, args = self.fallbacks[key], (op, rest, value)
            else:
                raise NotImplementedError(f"{op} has nothing at {key}")
            if kernel is not FALLTHROUGH:
                return kernel(*args)
        raise NotImplementedError(f"{op}: no key left")
''',
        "slots as closures, one dict of levels": '''
class Dispatcher:
    def __init__(self, order):
        self.rank = {key: place for place, key in enumerate(order)}
        self.slots = {}

    def impl(self, op, key, kernel):
        self._put(0, op, key, kernel, lambda op, keys, rest, value: kernel(rest, value))

    def composite(self, op, keys, kernel):
        for key in keys:
            self._put(1, op, key, kernel, lambda op, keys, rest, value: kernel(keys, value))

    def fallback(self, key, kernel):
        self._put(2, None, key, kernel, lambda op, keys, rest, value: kernel(op, rest, value))

    def _put(self, level, op, key, kernel, run):
        self.slots[level, op, key] = None if kernel is FALLTHROUGH else run

    def call(self, op, keys, value):
        left = set(keys)
        while left:
            key = min(left, key=self.rank.__getitem__)
            left.remove(key)
            held = [self.slots[at] for at in ((0, op, key), (1, op, key), (2, None, key)) if at in self.slots]
            if not held:
                raise NotImplementedError("nothing for " + op + " at " + key)
            if held[0] is not None:
                return held[0](op, keys, frozenset(left), value)
        raise NotImplementedError("no key left for " + op)
''',
    },
    "read_slot": {
        "partition": '''
NAMES = {"kernel": "kernel", "autograd kernel": "autograd kernel", "math kernel": "composite",
         "default backend kernel": "default", "batched kernel": "batched", "backend fallback": "fallback"}


def read_slot(dump, key):
    for line in dump.splitlines():
        name, _, rest = line.partition(": ")
        if name == key:
            where, _, kind = rest.rpartition(" [")
            path = where.rpartition(":")[0]
            fallen = rest.startswith("fallthrough")
            return "fallthrough" if fallen else NAMES[kind.rstrip("]")], path.rpartition("/")[2]
    return "nothing", ""
''',
    },
    "FlopCounter": {
        "open what can be opened": '''
class FlopCounter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in ("linear", "matmul"):
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            a, b = args[-2:]
            self.flops += 2 * a.numel() * b.shape[-1]
        return out
''',
    },
    "account": {
        "a mode inside": '''
from torch.utils._pytree import tree_leaves


def account(model, tokens, backward):
    count = dict.fromkeys(("views", "copies", "products", "rest", "launches"), 0)

    def places(tree):
        return {t.untyped_storage().data_ptr() for t in tree_leaves(tree) if isinstance(t, torch.Tensor)}

    class Sorter(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            out = func(*args, **kwargs)
            name = func.overloadpacket.__name__
            mine = places(out)
            if name in ("clone", "copy_", "_to_copy"):
                kind = "copies"
            elif name in ("mm", "addmm", "bmm", "baddbmm"):
                kind = "products"
            elif mine and mine <= places((args, kwargs)) and not func._schema.is_mutable:
                kind = "views"
            else:
                kind = "rest"
            count[kind] += 1
            count["launches"] += kind != "views"
            return out

    with Sorter():
        total = model(tokens).sum()
        if backward:
            total.backward()
    return count
''',
    },
}

WRONG = {
    "winning_key": [
        ("autocast has nothing for float64", "Three of all these words change nothing", 'and device != "Meta"', 'and device != "Meta" and tensor["dtype"] != "float64"'),
        ("meta tensors have no code", "the highest key whose slot holds code", "next(key for key in keys if not key.startswith(skipped))", 'next((key for key in keys if not key.startswith((*skipped, "Meta"))), "CPU")'),
        ("no_grad under autocast takes Autograd", "one context changes nothing", '    if "inference_mode" in contexts:', '    if "no_grad" in contexts and "autocast" in contexts:\n        kinds.discard("Autograd")\n    if "inference_mode" in contexts:'),
    ],
    "OpLog": [
        ("each tensor once", "the shapes of the tensors among its arguments", "for a in leaves if", "for a in {id(a): a for a in leaves}.values() if"),
        ("no empty tensors", "the shapes of the tensors among its arguments", "isinstance(a, torch.Tensor)", "isinstance(a, torch.Tensor) and a.numel()"),
    ],
    "Dispatcher": [
        ("a result of None goes on", "calls what it found, returns its result, and is done", "                return kernel(*args)", "                result = kernel(*args)\n                if result is not None:\n                    return result"),
        ("a fallback without rest", "called as kernel(op, rest, value)", "(op, rest, value)", "(op, keys - {key}, value)"),
        ("a kernel's NotImplementedError is caught", "returns its result, and is done", "                return kernel(*args)", "                try:\n                    return kernel(*args)\n                except NotImplementedError:\n                    continue"),
    ],
    "read_slot": [
        ("the case is ignored", "The key is what stands before the first colon", "name == key", "name.lower() == key.lower()"),
    ],
    "FlopCounter": [
        ("vectors count, too", "Nothing else counts", "        return out\n", '        if name in ("mv", "dot"):\n            self.flops += 2 * args[0].numel()\n        return out\n'),
        ("matmul by its shapes", "the count must be the same", '        if name in ("linear", "matmul"):\n', '        if name == "matmul":\n            self.flops += 2 * args[0].numel() * args[1].shape[-1]\n            return func(*args, **kwargs)\n        if name == "linear":\n'),
    ],
    "account": [
        ("views of fractions alone", "lies in the storage of one of its arguments", "if isinstance(t, torch.Tensor)}", "if isinstance(t, torch.Tensor) and t.is_floating_point()}"),
        ("no views of truth values", "lies in the storage of one of its arguments", "if isinstance(t, torch.Tensor)}", "if isinstance(t, torch.Tensor) and t.dtype != torch.bool}"),
        ("names of views", "Names mislead", "mine and mine <= places((args, kwargs)) and not func._schema.is_mutable", 'name in ("view", "t", "transpose", "slice", "unsqueeze", "squeeze", "expand", "permute", "select", "detach", "_unsafe_view", "split", "unbind", "alias", "as_strided")'),
    ],
}


def add_to(bank: Bank) -> None:
    """Add these answers to the lab's bank."""
    bank.fill(RIGHT, WRONG)
