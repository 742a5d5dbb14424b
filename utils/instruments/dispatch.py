"""Read how the dispatcher would handle a call, and why: key sets, tables, and the call's path.

This is the only module of the course that uses the dispatcher's private interface (of torch 2.13).
Names of keys are the names in `torch._C.DispatchKey`, such as ``AutogradCPU``. Names of operators
are ``namespace::name.overload``, such as ``aten::mul.Tensor``; the default overload has no dot.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

# The text in square brackets at the end of a line of a dump, and the course's name for it.
KINDS = {
    "kernel": "kernel",
    "autograd kernel": "autograd kernel",
    "math kernel": "composite",
    "default backend kernel": "default for backends",
    "batched kernel": "opened for vmap",
    "backend fallback": "fallback",
}
LINE = re.compile(
    r"(?P<key>\w+): (?P<fallthrough>fallthrough )?registered at (?P<file>.+):(?P<line>\d+) "
    r"\[(?P<kind>[^\]]+)\]"
)
# Where PyTorch's tree begins in a file's path, on the build machine or in an installation.
TREE = re.compile(r".*?/(?:pytorch/(?:pytorch/)?(?:build/)?|site-packages/)")
OPERATOR = re.compile(r"\w+::\w+(\.\w+)?")  # other names are names of autograd's nodes, or labels
COMPOSITE = "composite"
# Keys whose code does a part of the work and passes the call to the next key.
RECORDING = ("Autograd", "ADInplaceOrView")
PASSING_ON = (*RECORDING, "BackendSelect", "Conjugate", "Negative", "PythonTLSSnapshot")
# Keys that a mode or a subclass adds; they are removed while its code runs.
PYTHON = ("Python", "PythonTLSSnapshot")


@dataclass(frozen=True)
class Entry:
    """One slot of an operator's table."""

    key: str  # the dispatch key
    kind: str  # a value of KINDS
    fallthrough: bool  # whether the slot has no code, so that the next key is tried
    # the path of the file with the registration, from the top of PyTorch's tree; for a file of
    # other code, only the file's name
    file: str
    line: int  # the line in that file; for generated code, the line of the registration's block


def op_name(op: Any) -> str:
    """Return the name of an overload such as `torch.ops.aten.mul.Tensor`, or a string unchanged."""
    return op if isinstance(op, str) else op.name()


def table(op: str) -> dict[str, Entry]:
    """Return an operator's table: key -> entry. Raises LookupError for an unknown operator."""
    dump = torch._C._dispatch_dump_table(op)
    if not dump:
        raise LookupError(f"there is no operator {op!r}")
    return _parsed(dump)


@cache
def _parsed(dump: str) -> dict[str, Entry]:
    """Parse a table's text. This can be cached, because a registration changes the text."""
    found = [parse_line(line) for line in dump.splitlines() if line.strip()]
    return {entry.key: entry for entry in found}


def parse_line(line: str) -> Entry:
    """Return the entry in one line of a dump. Raises ValueError if the line has another form."""
    match = LINE.fullmatch(line.strip())
    if match is None:
        raise ValueError(f"not a line of a dispatch table: {line!r}")
    file = TREE.sub("", match["file"], count=1)
    return Entry(
        key=match["key"],
        kind=KINDS.get(match["kind"], match["kind"]),
        fallthrough=match["fallthrough"] is not None,
        file=os.path.basename(file) if os.path.isabs(file) else file,
        line=int(match["line"]),
    )


def is_composite(op: str) -> bool:
    """Return whether an operator only calls other operators, and has no kernel for a backend."""
    entry = table(op).get("CPU")
    return entry is not None and entry.kind == COMPOSITE


def keys_of(*tensors: torch.Tensor) -> tuple[str, ...]:
    """Return all keys that these tensors add to a call, the highest first.

    If the tensors are on several backends, only the highest backend counts, as in PyTorch.
    """
    return _in_order(_together(tensors))


def call_keys(*tensors: torch.Tensor) -> tuple[str, ...]:
    """Return the keys with which a call on these tensors would start now, the highest first."""
    return _in_order((_together(tensors) | _included()) - _excluded())


@dataclass(frozen=True)
class ThreadKeys:
    """The keys that this thread adds to each call, and the keys that this thread removes.

    In both, the highest key is first.
    """

    included: tuple[str, ...]
    excluded: tuple[str, ...]


def thread_keys() -> ThreadKeys:
    """Return the current key sets of the thread. Modes and contexts change them."""
    away = _excluded()
    excluded = tuple(
        name for name, key, alone in _every() if (alone - away).highestPriorityTypeId() != key
    )
    return ThreadKeys(_in_order(_included()), excluded)


@dataclass(frozen=True)
class Decision:
    """How one call finds its kernel."""

    op: str  # the operator
    brought: tuple[str, ...]  # keys of the tensors
    included: tuple[str, ...]  # keys that the thread adds, without keys of the tensors
    excluded: tuple[str, ...]  # keys of the tensors that the thread removes
    considered: tuple[Entry, ...]  # the slots of all remaining keys, the highest first
    winner: Entry  # the first slot that is not a fallthrough: its code runs


def decide(op: Any, *tensors: torch.Tensor) -> Decision:
    """Return which kernel a call on these tensors would reach first if it were made now."""
    name = op_name(op)
    slots = table(name)
    keys, own = call_keys(*tensors), keys_of(*tensors)
    considered = tuple(slots[key] for key in keys if key in slots)
    winner = next((entry for entry in considered if not entry.fallthrough), None)
    if winner is None:
        raise LookupError(f"{name} has no kernel for any of {', '.join(keys) or 'no keys'}")
    return Decision(
        op=name,
        brought=own,
        included=tuple(key for key in keys if key not in own),
        excluded=tuple(key for key in own if key not in keys),
        considered=considered,
        winner=winner,
    )


@dataclass(frozen=True)
class Call:
    """One call in a trace, with the calls that its kernels made."""

    name: str  # the operator without its overload, such as ``aten::addmm``; or an autograd node
    # shapes of the call's arguments; ``()`` for an argument that is not a tensor with dimensions
    shapes: tuple[tuple[int, ...], ...]
    # The slots whose code ran, in order. The code of each slot except the last passed the call to
    # the next slot. Empty for an autograd node.
    path: tuple[Entry, ...] = ()
    calls: tuple[Call, ...] = field(default=())  # the calls that its kernels made
    # the keys with which the call started, highest first; empty for an autograd node
    keys: tuple[str, ...] = ()

    def walk(self) -> Iterable[tuple[int, Call]]:
        """Yield this call and all calls inside it, as pairs (depth, call)."""
        yield 0, self
        for call in self.calls:
            yield from ((depth + 1, inner) for depth, inner in call.walk())


def trace(function: Callable[..., Any], *args: Any) -> tuple[Call, ...]:
    """Call a function, and return the calls of operators, each with its inner calls.

    The nesting comes from PyTorch's profiler. The path of a call is computed from the operator's
    table and from the remaining keys at the call's depth. At first, these are the keys of the
    tensors in ``args``, with the keys that the thread adds, and without the keys that it removes.
    Inside a backend's kernel, the remaining keys are the keys below Autograd.
    """
    from torch._C._profiler import _ExperimentalConfig

    from utils.instruments.quiet_profiler import profile

    tensors = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    tensors = tensors or [torch.empty(0)]
    keys = call_keys(*tensors)
    how = _ExperimentalConfig(capture_overload_names=True)
    with profile(record_shapes=True, experimental_config=how) as recorded:
        function(*args)
    return tuple(
        _as_call(event, keys) for event in recorded.function_events if event.cpu_parent is None
    )


def _as_call(event: Any, keys: tuple[str, ...]) -> Call:
    path, below = _path(event, keys)
    return Call(
        name=event.name,
        shapes=tuple(tuple(shape) for shape in event.input_shapes),
        path=path,
        calls=tuple(_as_call(child, below) for child in event.cpu_children),
        keys=keys if path else (),
    )


def _path(event: Any, keys: tuple[str, ...]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return the slots that a call passes, and the remaining keys for calls inside it."""
    name = ".".join(filter(None, (event.name, event.overload_name)))
    if not (OPERATOR.fullmatch(name) and torch._C._dispatch_has_kernel(name)):
        return (), keys
    slots, path = table(name), []
    for key in keys:
        entry = slots.get(key)
        if entry is None or entry.fallthrough:
            continue
        path.append(entry)
        if entry.kind == COMPOSITE or not key.startswith(PASSING_ON):
            break
    last = path[-1] if path else None
    if last is None or last.kind == COMPOSITE:
        spent: tuple[str, ...] = ()
    elif last.key.startswith("Autocast"):
        # The kernel excludes its own key and calls the operator again, from the top.
        spent = ("Autocast",)
    else:
        spent = (*RECORDING, *PYTHON) if last.key == "Python" else RECORDING
    return tuple(path), tuple(key for key in keys if not key.startswith(spent))


def _together(tensors: Iterable[torch.Tensor]) -> Any:
    sets = [torch._C._dispatch_keys(tensor) for tensor in tensors]
    return reduce(lambda a, b: a | b, sets, torch._C.DispatchKeySet(torch._C.DispatchKey.Undefined))


def _included() -> Any:
    return torch._C._dispatch_tls_local_include_set()


def _excluded() -> Any:
    return torch._C._dispatch_tls_local_exclude_set()


@cache
def _every() -> tuple[tuple[str, Any, Any], ...]:
    """Return all keys of tensors and threads, as (name, key, set with only this key)."""
    no_keys = ("StartOf", "EndOf", "Composite", "Undefined")  # limits of ranges, and aliases
    sets = [
        (name, key, torch._C.DispatchKeySet(key))
        for name, key in torch._C.DispatchKey.__members__.items()
        if not name.startswith(no_keys)
    ]
    found = [row for row in sets if _in_order(row[2]) == (row[0],)]
    return tuple(sorted(found, key=lambda row: row[2].raw_repr(), reverse=True))


def _in_order(keys: Any) -> tuple[str, ...]:
    found = []
    while (key := keys.highestPriorityTypeId()) != torch._C.DispatchKey.Undefined:
        found.append(_name(int(key)))
        keys = keys.remove(key)
    return tuple(found)


@cache
def _name(key: int) -> str:
    # Cached, because a key searches a list of all names each time its name is read.
    return torch._C.DispatchKey(key).name
