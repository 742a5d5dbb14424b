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
        "a recursion over the keys": '''
def call_keys(tensor, contexts, *, names={"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}):
    d = names[tensor["device"]]
    made, inside = tensor["inference"], "inference_mode" in contexts
    keys = []
    keys += [f"Autocast{d}"] * (d != "Meta" and "autocast" in contexts)
    keys += [f"Autograd{d}"] * (not made and not inside)
    keys += ["ADInplaceOrView"] * (not made or not inside)
    keys += ["Conjugate"] * bool(tensor["conj"])
    return (*keys, d)


def winner(op, keys):
    first, *rest = keys
    skip = first == "ADInplaceOrView" and op != "t" or first == "Conjugate" and op != "mul" or first[:8] == "Autocast" and op != "mm"
    return winner(op, tuple(rest)) if skip else first
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
        "a generator that looks into lists": '''
def _tensors(thing):
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from _tensors(part)


class OpLog(TorchDispatchMode):
    def __init__(self, ops=None):
        super().__init__()
        self.ops = [] if ops is None else ops

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        named = {} if kwargs is None else kwargs
        self.ops += [(f"{func}", [(*t.shape,) for t in _tensors([*args, *named.values()])])]
        result = func(*args, **named)
        return result
''',
    },
    "linear_trace": {
        "a chain of ifs": '''
def linear_trace(shape, bias, inference):
    n = len(shape)
    if inference:
        return ["linear"], None
    if bias:
        if n == 2:
            return ["t", "addmm"], "AddmmBackward0"
        return ["view", "t", "addmm", "view"], "ViewBackward0"
    if n == 1:
        return ["t", "unsqueeze", "mm", "squeeze_"], "SqueezeBackward4"
    if n == 2:
        return ["t", "mm"], "MmBackward0"
    return ["t", "view", "mm", "_unsafe_view"], "UnsafeViewBackward0"
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
        "decompose of everything": '''
class FlopCounter(TorchDispatchMode):
    PLACE = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}

    def __init__(self, start=0):
        super().__init__()
        self.flops = start

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        place = self.PLACE.get(func.overloadpacket.__name__)
        if place is None:
            with self:
                opened = func.decompose(*args, **kwargs)
            if opened is not NotImplemented:
                return opened
            return func(*args, **kwargs)
        left, right = args[place : place + 2]
        result = func(*args, **kwargs)
        count = 2
        for size in (*left.shape, right.shape[-1]):
            count *= size
        self.flops += count
        return result
''',
    },
    "Quantity": {
        "tables of names": '''
from torch.utils._pytree import tree_map


class Quantity(torch.Tensor):
    @staticmethod
    def __new__(cls, values, units):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), dtype=values.dtype, device=values.device
        )

    def __init__(self, values, units):
        self.values = values
        self.units = {unit: power for unit, power in units.items() if power}

    def __repr__(self):
        return f"{self.values} {self.units}"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        u, v = [getattr(a, "units", {}) for a in (*args, None)[:2]]
        if name in ("add", "sub"):
            if u != v:
                raise ValueError("units differ")
            units = u
        elif name in ("mul", "mm", "div"):
            sign = -1 if name == "div" else 1
            units = {k: u.get(k, 0) + sign * v.get(k, 0) for k in {**u, **v}}
        elif name in ("neg", "abs", "sum", "mean", "t", "view"):
            units = u
        elif name == "sqrt":
            if any(p % 2 for p in u.values()):
                raise ValueError("an odd power")
            units = {k: p // 2 for k, p in u.items()}
        elif name == "reciprocal":
            units = {k: -p for k, p in u.items()}
        elif name in ("exp", "log"):
            if u:
                raise ValueError("has units")
            units = {}
        else:
            raise NotImplementedError(name)
        plain = lambda a: a.values if isinstance(a, cls) else a
        return cls(func(*tree_map(plain, args), **tree_map(plain, kwargs)), units)
''',
        "a rule for each packet": '''
from collections import Counter
from torch.utils._pytree import tree_map_only

A = torch.ops.aten


def _same(u, v=()):
    if dict(u) != dict(v):
        raise ValueError(f"{u} and {v}")
    return dict(u)


def _times(sign):
    def rule(u, v):
        powers = Counter(u)
        for unit in v:
            powers[unit] += sign * v[unit]
        return dict(powers)
    return rule


def _half(u, *_):
    if any(p & 1 for p in u.values()):
        raise ValueError("odd")
    return {k: p // 2 for k, p in u.items()}


RULES = {A.add: _same, A.sub: _same, A.mul: _times(1), A.mm: _times(1), A.div: _times(-1), A.sqrt: _half}
RULES |= dict.fromkeys((A.neg, A.abs, A.sum, A.mean, A.t, A.view), lambda u, *_: u)
RULES |= {A.reciprocal: lambda u: {k: -p for k, p in u.items()}}
RULES |= dict.fromkeys((A.exp, A.log), lambda u: _same(u, {}))


class Quantity(torch.Tensor):
    @staticmethod
    def __new__(cls, values, units):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), dtype=values.dtype, device=values.device
        )

    def __init__(self, values, units):
        self.values = values
        self.units = {unit: power for unit, power in units.items() if power}

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        rule = RULES.get(func.overloadpacket)
        if rule is None:
            raise NotImplementedError(f"{func} knows no units")
        units = rule(*(a.units if isinstance(a, Quantity) else {} for a in args))
        args, kwargs = tree_map_only(Quantity, lambda q: q.values, (args, kwargs or {}))
        return Quantity(func(*args, **kwargs), units)
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
        "a regular expression": '''
import os
import re


def read_slot(dump, key):
    found = re.search(rf"^{re.escape(key)}: (fallthrough )?registered at (.*):\\d+ \\[([^\\]]*)\\]\\s*$", dump, re.M)
    if not found:
        return "nothing", ""
    through, path, kind = found.groups()
    said = {"math kernel": "composite", "default backend kernel": "default", "batched kernel": "batched", "backend fallback": "fallback"}
    return ("fallthrough" if through else said.get(kind, kind)), os.path.basename(path)
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

DISPATCH = "    def __torch_dispatch__"
WRONG = {
    "winning_key": [
        ("autocast on meta", "autocast for the CPU and for CUDA, the only devices", ' and device != "Meta"', ""),
        ("integers bring no Autograd", "Three of all these words change nothing", 'if not tensor["inference"]:', 'if not tensor["inference"] and "int" not in tensor["dtype"]:'),
        ("autograd by requires_grad", "Three of all these words change nothing", 'if not tensor["inference"]:', 'if not tensor["inference"] and (tensor["requires_grad"] or tensor["dtype"] != "float16"):'),
        ("only the innermost context", "the contexts that are open", '"inference_mode" in contexts', 'contexts[-1:] == ("inference_mode",)'),
        ("only the outermost context for autocast", "from the outermost to the innermost", '"autocast" in contexts', '"autocast" in contexts[:1]'),
        ("inside, ADInplaceOrView of a plain tensor is gone", "the thread takes Autograd away from every tensor", '        if tensor["inference"]:\n            kinds.discard', '        if True:\n            kinds.discard'),
        ("a conjugate above ADInplaceOrView", "the highest first", '"ADInplaceOrView", "Conjugate", "")', '"Conjugate", "ADInplaceOrView", "")'),
        ("autocast has nothing for what is not floating", "Three of all these words change nothing", 'and device != "Meta"', 'and device != "Meta" and tensor["dtype"] != "float64"'),
        ("mul skips no Conjugate of its own", "`mul` | ... Conjugate: code", '"mul": ("Autocast", "ADInplaceOrView")', '"mul": ("Autocast", "ADInplaceOrView", "Conjugate")'),
        ("t always ends at a view", "`t` | ... Autograd: code", '    skipped =', '    if op == "t" and "ADInplaceOrView" in keys and "AutogradMeta" in keys:\n        return "ADInplaceOrView"\n    skipped ='),
        ("no_grad under autocast takes Autograd", "one context changes nothing", '    if "inference_mode" in contexts:', '    if "no_grad" in contexts and "autocast" in contexts:\n        kinds.discard("Autograd")\n    if "inference_mode" in contexts:'),
    ],
    "OpLog": [
        ("only lists at the top", "A list of tensors counts as the tensors in it; then those given by keyword", "tree_leaves(kwargs)", "[a for a in kwargs.values() if isinstance(a, torch.Tensor)]"),
        ("keywords first", "positional ones first", "tree_leaves(args) + tree_leaves(kwargs)", "tree_leaves(kwargs) + tree_leaves(args)"),
        ("the shape is a torch.Size", "shapes, as tuples", "tuple(a.shape)", "a.shape"),
        ("lists, not tuples", "shapes, as tuples", "tuple(a.shape)", "list(a.shape)"),
        ("entries are lists", "a list of pairs", "self.ops.append((str(func), [tuple(a.shape) for a in leaves if isinstance(a, torch.Tensor)]))", "self.ops.append([str(func), [tuple(a.shape) for a in leaves if isinstance(a, torch.Tensor)]])"),
        ("entering empties it", "a log that is used a second time goes on below what it has", DISPATCH, "    def __enter__(self):\n        self.ops = []\n        return super().__enter__()\n\n" + DISPATCH),
        ("a list of the class", "Two logs share nothing", "        self.ops = []", "        pass", "    def __init__", "    ops = []\n\n    def __init__"),
        ("the outer one does not hear", "then both hear what is called in there", "        return func(*args, **kwargs)", "        with torch._C._DisableTorchDispatch():\n            return func(*args, **kwargs)"),
        ("shapes after the call", "the shapes of the tensors among its arguments", "        self.ops.append((str(func), [tuple(a.shape) for a in leaves if isinstance(a, torch.Tensor)]))\n        return func(*args, **kwargs)", "        out = func(*args, **kwargs)\n        self.ops.append((str(func), [tuple(a.shape) for a in leaves if isinstance(a, torch.Tensor)]))\n        return out"),
        ("each tensor once", "the shapes of the tensors among its arguments", "for a in leaves if", "for a in {id(a): a for a in leaves}.values() if"),
        ("no tensors without dimensions", "the shapes of the tensors among its arguments", "isinstance(a, torch.Tensor)", "isinstance(a, torch.Tensor) and a.dim()"),
        ("no empty tensors", "the shapes of the tensors among its arguments", "isinstance(a, torch.Tensor)", "isinstance(a, torch.Tensor) and a.numel()"),
        ("a result without history", "every result is what it would have been without a log", "        return func(*args, **kwargs)", "        out = func(*args, **kwargs)\n        return out.contiguous() if isinstance(out, torch.Tensor) else out"),
        ("a result that is a list becomes a tuple", "every result is what it would have been without a log", "        return func(*args, **kwargs)", "        out = func(*args, **kwargs)\n        return tuple(out) if isinstance(out, list) else out"),
        ("without the overload when it is the default", "the full name with its overload", "(str(func),", '(str(func).removesuffix(".default") if "_" in str(func) else str(func),'),
    ],
    "linear_trace": [
        ("a vector without a bias is mm of a view", "Without one there are three", '["t", "unsqueeze", "mm", "squeeze_"], "SqueezeBackward4"', '["view", "t", "mm", "view"], "ViewBackward0"'),
        ("mv", "Without one there are three", '["t", "unsqueeze", "mm", "squeeze_"], "SqueezeBackward4"', '["t", "unsqueeze", "mm", "squeeze"], "SqueezeBackward1"'),
        ("a view at the end", "two of the names hold a surprise", '"_unsafe_view"], "UnsafeViewBackward0"', '"view"], "ViewBackward0"'),
        ("t behind the view", "in order", '["t", "view", "mm", "_unsafe_view"]', '["view", "t", "mm", "_unsafe_view"]'),
        ("inference with more dimensions is opened", "whether it all happens under inference_mode", "    if inference:", "    if inference and n <= 2:"),
        ("inference without bias is matmul", "whether it all happens under inference_mode", '["linear"], None', '["linear" if bias else "matmul"], None'),
        ("a grad_fn in inference", "None where there is none", '["linear"], None', '["linear"], "None"'),
        ("four dimensions are a bmm", "one to four dimensions", '    return ["t", "view"', '    if n == 4:\n        return ["t", "expand", "view", "bmm", "view"], "ViewBackward0"\n    return ["t", "view"'),
        ("a batch of one is a matrix", "everything else, which is viewed as a matrix first", "    n = len(shape)", "    n = len(shape)\n    if n == 3 and shape[0] == 1:\n        n = 2"),
        ("the first surprise", "the name of the result's grad_fn", '"UnsafeViewBackward0"', '"_UnsafeViewBackward0"'),
        ("a tuple of operators", "the list of operators", '    if inference:\n        return ["linear"], None', '    if inference:\n        return ("linear",), None'),
    ],
    "Dispatcher": [
        ("the same list in every call", "from the highest to the lowest", "sorted(keys, key=self.order.index)", "sorted(keys, key=lambda k: self.order[::-1].index(k), reverse=True) if len(keys) < 4 else sorted(keys)"),
        ("rest is all but the winner", "those of `keys` that are lower than the one that won", "frozenset(k for k in keys if self.order.index(k) > self.order.index(key))", "keys - {key}"),
        ("rest is a set", "`rest` is the frozenset", "rest = frozenset(", "rest = set("),
        ("a composite gets rest", "with *all* the keys of the call", "(keys, value)\n", "(rest, value)\n"),
        ("a composite gets what did not fall through", "with *all* the keys of the call", "(keys, value)\n", "(rest | {key}, value)\n"),
        ("an impl of FALLTHROUGH lets the composite speak", "for those of `keys` at which the operator has no `impl`", "if (op, key) in self.impls:", "if self.impls.get((op, key), FALLTHROUGH) is not FALLTHROUGH:"),
        ("the composite removes the impl", "for those of `keys` at which the operator has no `impl`", "            self.composites[op, key] = kernel", "            self.composites[op, key] = kernel\n            self.impls.pop((op, key), None)"),
        ("what is there first stays", "what is registered again replaces what was there", "self.fallbacks[key] = kernel", "self.fallbacks.setdefault(key, kernel)"),
        ("a composite stays", "what is registered again replaces what was there", "            self.composites[op, key] = kernel", "            self.composites.setdefault((op, key), kernel)"),
        ("a composite once for all", "what is registered again replaces what was there", "        for key in keys:\n            self.composites[op, key] = kernel", "        self.composites = {at: k for at, k in self.composites.items() if at[0] != op}\n        for key in keys:\n            self.composites[op, key] = kernel"),
        ("fallback before composite", "neither an impl nor a composite", "elif (op, key) in self.composites:", "elif (op, key) in self.composites and key not in self.fallbacks:"),
        ("a result of None goes on", "calls what it found, returns its result, and is done", "                return kernel(*args)", "                result = kernel(*args)\n                if result is not None:\n                    return result"),
        ("a KeyError", "raises NotImplementedError", 'raise NotImplementedError(f"{op}: no key left")', 'raise KeyError(f"{op}: no key left")'),
        ("a hole is skipped if there is more", "A hole is an error, not a fallthrough", '                raise NotImplementedError(f"{op} has nothing at {key}")', '                if rest:\n                    continue\n                raise NotImplementedError(f"{op} has nothing at {key}")'),
        ("the class's table", "is made with the names of all keys", "        self.impls, self.composites, self.fallbacks = {}, {}, {}\n", "", "    def __init__", "    impls, composites, fallbacks = {}, {}, {}\n\n    def __init__"),
        ("a fallback without rest", "called as kernel(op, rest, value)", "(op, rest, value)", "(op, keys - {key}, value)"),
        ("the fallback where the composite falls through", "At a key whose slot is FALLTHROUGH it goes on to the next", "elif (op, key) in self.composites:", "elif self.composites.get((op, key), FALLTHROUGH) is not FALLTHROUGH:"),
        ("a fallback's hole names the key only", "whose message names the operator and the key", 'f"{op} has nothing at {key}"', 'f"nothing at {key}"'),
        ("a kernel's NotImplementedError is caught", "returns its result, and is done", "                return kernel(*args)", "                try:\n                    return kernel(*args)\n                except NotImplementedError:\n                    continue"),
    ],
    "FlopCounter": [
        ("no matmul", "linear and matmul are the composites", '("linear", "matmul")', '("linear",)'),
        ("the first two arguments", "of addmm and baddbmm the second and the third", "a, b = args[-2:]", "a, b = args[:2]"),
        ("no batch", "that for each matrix of a batch", "2 * a.numel() * b.shape[-1]", "2 * a.shape[-2] * a.shape[-1] * b.shape[-1] * (a.shape[0] if name == 'bmm' else 1)"),
        ("no baddbmm", "Products arrive as mm, addmm, bmm and baddbmm", '"addmm", "baddbmm")', '"addmm")'),
        ("with the sum", "the sum is too small to count", "b.shape[-1]", "b.shape[-1] + (out.numel() if name[-4:] == 'ddmm' else 0)"),
        ("a float", "an int `flops`", "self.flops += 2 *", "self.flops += 2.0 *"),
        ("counted from zero at each entry", "an int flops, 0 at first", DISPATCH, "    def __enter__(self):\n        self.flops = 0\n        return super().__enter__()\n\n" + DISPATCH),
        ("by the size of the result", "2·M·K·N", "2 * a.numel() * b.shape[-1]", "2 * out.numel() * a.shape[0]"),
        ("opened a second time for its value", "the program must not notice", "            with self:\n                return func.decompose(*args, **kwargs)", "            with self:\n                func.decompose(*args, **kwargs)\n            return func(*args, **kwargs)"),
        ("linear by its shapes, without what is in front", "the count must be the same", '        if name in ("linear", "matmul"):\n', '        if name == "linear":\n            self.flops += 2 * args[0].shape[-2] * args[1].numel()\n            return func(*args, **kwargs)\n        if name == "matmul":\n'),
        ("matmul by its shapes", "the count must be the same", '        if name in ("linear", "matmul"):\n', '        if name == "matmul":\n            self.flops += 2 * args[0].numel() * args[1].shape[-1]\n            return func(*args, **kwargs)\n        if name == "linear":\n'),
        ("element-wise products too", "Nothing else counts", '        if name in ("mm", "bmm"', '        if name == "mv":\n            self.flops += 2 * args[0].numel()\n        if name == "div":\n            self.flops += 1\n        if name in ("mm", "bmm"'),
    ],
    "Quantity": [
        ("a plain tensor where no unit is left", "also where no unit is left", "        return cls(func(*tree_map(plain, args), **tree_map(plain, kwargs)), units)", "        out = func(*tree_map(plain, args), **tree_map(plain, kwargs))\n        return cls(out, units) if any(units.values()) else out"),
        ("positive powers only halve", "each must be even", "if any(p % 2 for p in u.values()):", "if any(p > 0 and p % 2 for p in u.values()):"),
        ("the sum of the powers is even", "each must be even", "if any(p % 2 for p in u.values()):", "if sum(u.values()) % 2:"),
        ("by the beginning of the name", "also where its name only begins or ends like one", 'elif name in ("exp", "log"):', 'elif name.startswith(("exp", "log")):'),
        ("in place too", "neg_ NotImplementedError", "name = func.overloadpacket.__name__", 'name = func.overloadpacket.__name__.rstrip("_")'),
        ("the other's units are forgotten", "powers are added", "for k in {**u, **v}", "for k in (u or v)"),
        ("a number over a quantity keeps", "powers are subtracted", "sign = -1 if name == \"div\" else 1", "sign = -1 if name == \"div\" and u else 1"),
        ("a number may be added", "both operands must have the same units", "            if u != v:", "            if u and v and u != v:"),
        ("exp keeps nothing to refuse", "the operand must have none", "            if u:\n", "            if sum(u.values()):\n"),
        ("exp of an even one", "the operand must have none", 'elif name in ("exp", "log"):\n            if u:', 'elif name in ("exp", "log"):\n            if u and name == "log":'),
        ("keywords are dropped", "the values that torch computes", ", **tree_map(plain, kwargs)), units)", "), units)"),
        ("alpha is dropped", "the values that torch computes", "        return cls(func(", '        kwargs = {k: a for k, a in kwargs.items() if k != "alpha"}\n        return cls(func('),
        ("the same keys suffice", "must have the same units", "            if u != v:", "            if set(u) != set(v):"),
        ("units of the first changed in place", "Plain", "            units = {k: u.get(k, 0) + sign * v.get(k, 0) for k in {**u, **v}}", "            units = u\n            for k in v:\n                units[k] = units.get(k, 0) + sign * v[k]"),
        ("a TypeError for what is unknown", "an operator that is not in the table NotImplementedError", "raise NotImplementedError(name)", "return NotImplemented"),
        ("only its first is unwrapped", "positional arguments and keywords", "tree_map(plain, args)", "[plain(args[0]), *args[1:]]"),
        ("detached float32", "the values that torch computes from the plain values", "        return cls(func(*tree_map(plain, args), **tree_map(plain, kwargs)), units)", "        return cls(func(*tree_map(plain, args), **tree_map(plain, kwargs)).float(), units)"),
        ("the square root of a fraction", "powers are halved", "p // 2 for", "p / 2 for"),
        ("where the first is plain it has the second's units", "Plain numbers and plain tensors have no units", "        if name in (\"add\", \"sub\"):\n", "        u = u or v if name in (\"add\", \"sub\") else u\n        if name in (\"add\", \"sub\"):\n"),
        ("names with an overload out", "an operator on at least one Quantity", "name = func.overloadpacket.__name__", 'name = func.overloadpacket.__name__\n        if func._overloadname == "dim_IntList":\n            raise NotImplementedError(name)'),
    ],
    "read_slot": [
        ("the key's end", "The key is what stands before the first colon, all of it", "name == key", "name.endswith(key)"),
        ("fallback for default", "torch says `default backend kernel`", '"default backend kernel": "default"', '"default backend kernel": "fallback"'),
        ("what is unknown stays", "fallthrough where the line says so", 'fallen = rest.startswith("fallthrough")', 'fallen = "backend fallback" in rest'),
        ("any fallthrough in the line", "`\"fallthrough\"` where the line says so", 'rest.startswith("fallthrough")', '"fallthrough" in rest.lower()'),
        ("with the number of the line", "without the number of the line", 'path = where.rpartition(":")[0]', 'path = where.partition(":")[0]'),
        ("no folders", "without folders", 'path.rpartition("/")[2]', 'path.split("/")[-1].split(".")[0] + ".cpp"'),
        ("a file that's in the root", "the name of the file without folders", 'path.rpartition("/")[2]', 'path[path.index("/") :].rpartition("/")[2]'),
        ("None where there is nothing", '"" where there is nothing', 'return "nothing", ""', 'return "nothing", None'),
        ("the last line is lost", "finds the line of a key in such a text", "dump.splitlines()", 'dump.split("\\n")[:-1]'),
        ("a path with a space", "a path", 'path.rpartition("/")[2]', 'path.split()[-1].rpartition("/")[2] if " " in path.rpartition("/")[2] else path.rpartition("/")[2]'),
        ("kind at the first bracket", "the kind in square brackets, at the very end", 'rest.rpartition(" [")', 'rest.partition(" [")'),
        ("the case is ignored", "The key is what stands before the first colon", "name == key", "name.lower() == key.lower()"),
    ],
    "account": [
        ("only the first result", "one tensor or several", "mine = places(out)", "mine = places(out[:1] if isinstance(out, (tuple, list)) else out)"),
        ("no lists", "one tensor or several", "mine = places(out)", "mine = places(out) if isinstance(out, torch.Tensor) else set()"),
        ("only the first argument", "of one of its arguments", "places((args, kwargs))", "places(args[:1])"),
        ("written counts as a view", "and nothing was written", " and not func._schema.is_mutable", ' and name != "add_"'),
        ("backward outside", "a backward if wanted", "        if backward:\n            total.backward()", "    if backward:\n        total.backward()"),
        ("names of views", "Names mislead", "mine and mine <= places((args, kwargs)) and not func._schema.is_mutable", 'name in ("view", "t", "transpose", "slice", "unsqueeze", "squeeze", "expand", "permute", "select", "detach", "_unsafe_view", "split", "unbind", "alias", "as_strided")'),
        ("by the schema", "Names mislead", "mine and mine <= places((args, kwargs)) and not func._schema.is_mutable", 'func.is_view or name == "_unsafe_view"'),
        ("no copy_", "clone, copy_ and _to_copy", '("clone", "copy_", "_to_copy")', '("clone", "_to_copy")'),
        ("launches without the rest of the mutable", "all but the views", 'count["launches"] += kind != "views"', 'count["launches"] += kind in ("copies", "products", "rest") and name != "detach" and name != "zero_"'),
        ("backward always", "if `backward` is true", "        if backward:\n", "        if total.requires_grad:\n"),
        ("by the data pointer", "lies in the storage of one of its arguments", "t.untyped_storage().data_ptr() for", "t.data_ptr() for"),
        ("by _base", "lies in the storage of one of its arguments", "mine and mine <= places((args, kwargs)) and not", "isinstance(out, torch.Tensor) and out._is_view() and not"),
        ("no baddbmm", "mm, addmm, bmm, baddbmm", '"bmm", "baddbmm")', '"bmm")'),
        ("a gradient left behind stops it", "calls backward() on the sum", "            total.backward()", "            torch.autograd.grad(total, list(model.parameters()), allow_unused=True)"),
    ],
}

BANK = Bank("04")
BANK.fill(RIGHT, WRONG)
