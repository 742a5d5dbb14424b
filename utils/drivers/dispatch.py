"""Drivers of lab 04: modes, a dispatcher and a tensor subclass, tried with plain values."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.drivers import WHOLE, driver
from utils.minigpt import MiniGPT, MiniGPTConfig

# A call that is always redispatched to the highest key never ends. It becomes slow long before
# Python's recursion limit.
DEEPEST = 50


class TooDeep(RecursionError):
    """A call was redispatched too often."""


class Misused(TypeError):
    """A kernel was called in the wrong way for its kind."""


class _Fallthrough:
    def __repr__(self) -> str:
        return "FALLTHROUGH"


# Registered for a key without work: the call continues to the next key.
FALLTHROUGH = _Fallthrough()


def _there_and_back(x: Tensor, w: Tensor) -> Tensor:
    weight = nn.Parameter(w.clone())
    F.linear(x, weight).square().mean().backward()
    assert weight.grad is not None
    return weight.grad


# Small programs, by name, whose operators a mode records.
PROGRAMS: dict[str, Callable[..., Tensor]] = {
    "two layers": lambda x, w1, w2: F.relu(x @ w1) @ w2,
    "joined": lambda a, b: torch.cat([a, b], dim=0).sum(dim=0, keepdim=True),
    "with itself": lambda x: torch.mul(twice := torch.cat([x, x]), twice),
    "made": lambda x: x + torch.ones(x.shape[-1]) * torch.arange(x.shape[-1]),
    "in place": lambda x: x.clone().multiply_(2).subtract_(x, alpha=-3),
    "with keywords": lambda x: torch.add(x, x[0], alpha=2, out=torch.empty(x.shape)),
    "there and back": _there_and_back,
    "sorted": lambda x: torch.searchsorted(x, x, sorter=x.argsort(dim=-1)),
    "vectors": lambda x: torch.mv(x, x[0]) + torch.dot(x[0], x[0]),
    "a matrix and a vector": lambda x: x @ x[0] + x[0] @ x[0],
    "attention": lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v,
    "linear": F.linear,
    # the first argument has one column and is broadcast, so its shape differs from the product's
    "a sum of products": lambda total, a, b: torch.baddbmm(total[..., :1], a, b, beta=2),
}


def _shuffled(hidden: Tensor) -> Tensor:
    left, right = hidden.chunk(2, dim=-1)
    joined = torch.cat([right.unsqueeze(0)[0], left], dim=-1).mul_(2)
    kept = torch.empty(joined.shape).copy_(joined).to(torch.float64)
    return torch.baddbmm(kept, kept, torch.ones(len(hidden), 4, 4, dtype=torch.float64))


# Steps after an embedding of shape (batch, length, 4), by their effect.
STEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "nothing": lambda hidden: hidden,
    "a slice that begins in the middle": lambda hidden: hidden[:, 1:],
    "two views from `chunk`": lambda hidden: hidden.chunk(2, dim=-1)[0],
    "`mul_`, which writes in place": lambda hidden: hidden.mul_(2),
    "`clone`": lambda hidden: hidden.clone(),
    "`copy_` into a new tensor": lambda hidden: torch.empty(hidden.shape).copy_(hidden),
    "a cast": lambda hidden: hidden.to(torch.float64),
    "a cast to whole numbers, and a slice of them": lambda hidden: hidden.to(torch.int64)[:, 1:],
    "a comparison, and its transpose": lambda hidden: (hidden > 0).transpose(0, 1),
    "a diagonal": lambda hidden: hidden.diagonal(dim1=1, dim2=2),
    "a product with a matrix": lambda hidden: hidden @ torch.ones(4, 3),
    "a linear layer": lambda hidden: F.linear(hidden[0], torch.ones(3, 4), torch.ones(3)),
}


SHUFFLE = "a shuffle"  # several steps: it splits, joins, writes in place, copies, casts, multiplies


class _Embedded(nn.Module):
    """An embedding of tokens from 0 to 7, and a step after it."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self.words = nn.Embedding(8, 4)
        self.step = _shuffled if step == SHUFFLE else STEPS[step]

    def forward(self, tokens: Tensor) -> Tensor:
        return self.step(self.words(tokens))


_CONTAINERS = dict, list, set, Counter, OrderedDict, defaultdict


@contextlib.contextmanager
def put_back(thing: Any) -> Iterator[None]:
    """Undo changes of the state that all calls of a class or function share.

    Calls share the attributes of a class, the defaults of functions, and the global containers and
    numbers that functions name. With this context, no driver's call depends on an earlier call. If
    a driver uses two objects in one context, it still sees state that they share by mistake.
    """
    classes = [c for c in getattr(thing, "__mro__", ()) if c.__module__.split(".")[0] != "torch"]
    owned = [(c, name, value) for c in classes for name, value in vars(c).items()]
    undo: list[Callable[[], Any]] = []
    for owner, name, value in owned:
        if type(value) in (int, float):
            undo.append(partial(setattr, owner, name, value))
        undo += _restorers(value)
    for function in (thing, *(value for *_, value in owned)):
        function = inspect.unwrap(getattr(function, "fget", function))
        if not isinstance(function, FunctionType):
            continue
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            undo += _restorers(default)
        scope = function.__globals__
        for name in _named(function.__code__) & scope.keys():
            if type(scope[name]) in (int, float):
                undo.append(partial(scope.__setitem__, name, scope[name]))
            undo += _restorers(scope[name])
    try:
        yield
    finally:
        for step in undo:
            step()


def _restorers(value: Any, deepest: int = 3) -> list[Callable[[], Any]]:
    """Return functions that restore the current content of a container and its inner containers."""
    if type(value) not in _CONTAINERS or "__builtins__" in value:  # a module's dict of names
        return []
    kept = value.copy()

    def restore() -> None:
        value.clear()
        value.extend(kept) if isinstance(value, list) else value.update(kept)

    inner = kept.values() if isinstance(kept, dict) else kept
    deeper = [step for one in inner for step in _restorers(one, deepest - 1)] if deepest else []
    return [restore, *deeper]


def _named(code: CodeType) -> set[str]:
    """Return the names that a function, or a function inside it, looks up in its module."""
    within = (one for one in code.co_consts if inspect.iscode(one))
    return {*code.co_names}.union(*map(_named, within))


@driver("ops", "result")
def log_ops(log_class: type, program: str, *tensors: Tensor, times: int = 1) -> dict:
    """Return the ``ops`` of an ``OpLog``, and the ``result`` of a program in PROGRAMS.

    ``ops`` is a list of (name, shapes). The program runs ``times`` times under the same log.
    """
    log, result = log_class(), None
    log.ops.clear()  # remove what an earlier log left, if all logs write into one list
    for _ in range(times):
        with log:
            result = PROGRAMS[program](*tensors)
    PROGRAMS[program](*tensors)  # outside the log
    return {"ops": _plain_log(log.ops), "result": result}


@driver("outer", "inner")
def log_nested(log_class: type, program: str, *tensors: Tensor) -> dict:
    """Return the records of two nested logs; the inner log starts later and ends earlier."""
    outer, inner = log_class(), log_class()
    outer.ops.clear()
    with outer:
        tensors[0] + 1
        with inner:
            PROGRAMS[program](*tensors)
        tensors[0] * 2
    return {"outer": _plain_log(outer.ops), "inner": _plain_log(inner.ops)}


def _plain_log(ops: Any) -> list:
    return [(name, [tuple(shape) for shape in shapes]) for name, shapes in ops]


@driver("flops", "result", observed={"new": "that a new counter is at 0"})
def count_flops(
    counter_class: type, program: str, *tensors: Tensor, inference: bool = False
) -> dict:
    """Return the ``flops`` that a ``FlopCounter`` counts, and the program's ``result``.

    ``new`` is the counter's count before the program.
    """
    with put_back(counter_class):
        counter = counter_class()
        new = counter.flops
        with torch.inference_mode(inference), counter:
            result = PROGRAMS[program](*tensors)
        return {"flops": counter.flops, "result": result.clone(), "new": new}


@driver("first", "second")
def count_by_two(counter_class: type, program: str, *tensors: Tensor) -> dict:
    """Return the counts of two counters. The second is made after the first has counted."""
    with put_back(counter_class):
        counters = []
        for _ in range(2):
            counters.append(counter_class())
            with counters[-1]:
                PROGRAMS[program](*tensors)
        return {"first": counters[0].flops, "second": counters[1].flops}


@driver(WHOLE)
def flops_of_minigpt(
    counter_class: type,
    config: MiniGPTConfig,
    tokens: Tensor,
    *,
    backward: bool = False,
    inference: bool = False,
) -> int:
    """Return the FLOPs that a ``FlopCounter`` counts in a new MiniGPT for tokens (batch, length).

    With ``backward``, the counter also counts a backward from the sum of the logits.
    """
    with put_back(counter_class):
        model, counter = MiniGPT(config), counter_class()
        with torch.inference_mode(inference), counter:
            logits = model(tokens)
            if backward:
                logits.sum().backward()
        return counter.flops


@driver(WHOLE)
def account(
    function: Callable, model: MiniGPTConfig | str, tokens: Tensor, backward: bool
) -> dict[str, int]:
    """Return the result of the learner's ``account`` for a model and tokens (batch, length).

    model: the sizes of a MiniGPT, or the name of a step: a key of STEPS, or SHUFFLE. The model of a
        step is an embedding of 8 tokens with the step after it.
    """
    with put_back(function):
        made = _Embedded(model) if isinstance(model, str) else MiniGPT(model)
        return dict(function(made, tokens, backward))


@driver("first", "second")
def account_of_two(function: Callable, tokens: Tensor) -> dict[str, dict[str, int]]:
    """Return the learner's accounts of two models in turn: first the shuffle, then the clone."""
    with put_back(function):
        models = {"first": _Embedded(SHUFFLE), "second": _Embedded("`clone`")}
        return {name: dict(function(model, tokens, True)) for name, model in models.items()}


@driver(WHOLE)
def play_dispatcher(
    dispatcher_class: type, order: Sequence[str], script: Sequence[tuple]
) -> list[Any]:
    """Let a ``Dispatcher`` take registrations and calls, and return the result of each call.

    order: the dispatcher's keys, from the highest to the lowest.
    script: steps in plain values:
        ("impl", op, key, kernel)           register a kernel of an operator
        ("fallback", key, kernel)           register a fallback
        ("composite", op, keys, kernel)     register a composite
        ("call", op, keys, value)           call an operator
        ("another", steps)                  make a second dispatcher, and play its steps

    A kernel is also a plain value:
        ("answer", text)        returns the text, the call's value and the call's keys
        ("nothing",)            returns None
        ("redispatch", text)    calls the same operator with the keys that it got, and returns the
                                text and the result
        ("call", text, op)      does the same with another operator
        ("fallthrough",)        has no code

    The result of a call is its return value, or ``("raised", type, message)``. If a kernel was
    called in the wrong way for its kind, the type is ``Misused``, and the message is the wrong
    call.
    """
    with put_back(dispatcher_class):
        return _played(dispatcher_class, order, script)


def _played(dispatcher_class: type, order: Sequence[str], script: Sequence[tuple]) -> list[Any]:
    dispatcher = dispatcher_class(order)
    depth = 0

    def go_on(op: Any, keys: Any, value: Any) -> Any:
        nonlocal depth
        depth += 1
        try:
            if depth > DEEPEST:
                raise TooDeep(f"a call of {op} was passed on {DEEPEST} times")
            return dispatcher.call(op, keys, value)
        finally:
            depth -= 1

    def kernel(kind: str, own_op: Any, described: Any) -> Any:
        what, *words = described
        if what == "fallthrough":
            return FALLTHROUGH

        def run(*given: Any) -> Any:
            called = f"{kind}({', '.join(map(_role, given))})"
            if called != CALLS[kind]:
                raise Misused(called)
            *told, keys, value = given
            if what == "nothing":
                return None
            if what == "answer":
                return words[0], value, sorted(keys)
            if told:  # only a fallback gets the operator's name, because it is for any operator
                return words[0], told[0], go_on(told[0], keys, value)
            return words[0], go_on(own_op if what == "redispatch" else words[1], keys, value)

        return run

    results = []
    for step, *rest in script:
        if step == "impl":
            op, key, described = rest
            dispatcher.impl(op, key, kernel("an impl", op, described))
        elif step == "composite":
            op, keys, described = rest
            dispatcher.composite(op, keys, kernel("a composite", op, described))
        elif step == "fallback":
            key, described = rest
            dispatcher.fallback(key, kernel("a fallback", None, described))
        elif step == "another":
            _played(dispatcher_class, order, *rest)
        else:
            op, keys, value = rest
            try:
                results.append(dispatcher.call(op, frozenset(keys), value))
            except (TooDeep, Misused) as error:
                results.append(("raised", type(error).__name__, str(error)))
            except NotImplementedError as error:
                results.append(("raised", "NotImplementedError", str(error)))
    return results


# The roles of the arguments with which each kind of kernel is called.
CALLS = {
    "an impl": "an impl(keys, value)",
    "a composite": "a composite(keys, value)",
    "a fallback": "a fallback(name, keys, value)",
}


def _role(given: Any) -> str:
    """Return the role of a kernel's argument."""
    if isinstance(given, (frozenset, set)):
        return "keys"
    if isinstance(given, (list, tuple, dict)):
        return "no set"
    return "name" if isinstance(given, str) else "value"


@driver(WHOLE)
def measure(
    quantity_class: type, given: dict[str, tuple], program: Sequence[tuple]
) -> dict[str, Any]:
    """Combine ``Quantity`` objects, and return the result of each step by its name.

    quantity_class: the learner's class. Its arguments are a tensor and a dict of units.
    given: name -> (tensor, units), or name -> (tensor or number,) without units.
    program: the steps, each ``(name, operator, arguments...)``. A step calls an operator of torch,
        and stores the result under the step's name. An argument is a plain value, or the name of a
        given value or of an earlier result. If the last argument is a dict, it has the keyword
        arguments.

    The result of a step is (class, values, units) for a quantity and (class, values) for any other
    tensor. If the step raised a ValueError, NotImplementedError or TypeError, the result is
    ``("raised", type)``.
    """
    known: dict[str, Any] = {
        name: quantity_class(*value) if len(value) == 2 else value[0]
        for name, value in given.items()
    }
    results: dict[str, Any] = {}
    for name, operator, *arguments in program:
        keywords = arguments.pop() if isinstance(arguments[-1], dict) else {}
        values = [known.get(a, a) if isinstance(a, str) else a for a in arguments]
        try:
            known[name] = came = getattr(torch, operator)(*values, **keywords)
        except (ValueError, NotImplementedError, TypeError) as error:
            kinds = (ValueError, NotImplementedError, TypeError)
            results[name] = ("raised", next(k.__name__ for k in kinds if isinstance(error, k)))
            continue
        if isinstance(came, quantity_class):
            quantity: Any = came
            results[name] = ("Quantity", quantity.values, dict(quantity.units))
        else:
            results[name] = (type(came).__name__, came)
    return results


def table(op: str) -> str:
    """Return the dispatcher's table of ``aten::<op>``, without the folders of this machine."""
    dump = torch._C._dispatch_dump_table(f"aten::{op}")
    return re.sub(r" at /.*site-packages(?=/torch/)", " at /pytorch", dump.strip())
