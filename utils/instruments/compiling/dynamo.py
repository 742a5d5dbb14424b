"""The graphs that Dynamo captures, and the guards that it keeps with them."""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

CHECKS = re.compile(r"\+- (?P<kind>[A-Z_]+): (?P<what>.*?)\s*(?:  # .*)?$")


def captured(function: Callable[..., Any], *args: Any) -> list[fx.GraphModule]:
    """Return Dynamo's graphs of `function(*args)` in the order in which they run."""
    found: list[fx.GraphModule] = []
    fresh(function, _collecting(found))(*args)
    return found


def _collecting(graphs: list[fx.GraphModule]) -> Callable[..., fx.GraphModule]:
    def backend(graph: fx.GraphModule, inputs: Any) -> fx.GraphModule:
        graphs.append(graph)
        return graph

    return backend


@dataclass(frozen=True)
class Kept:
    """One compiled version of a function, and its guards."""

    number: int  # its number in the order of compilation, from 0
    code: types.CodeType  # the bytecode that replaced the function's bytecode
    # the guards as (kind, what is checked), in the order in which they are tried
    checks: tuple[tuple[str, str], ...]
    # A function that takes the compiled function's arguments by name. It returns the reason why
    # these arguments can't use this version, or None.
    refusal: Callable[..., str | None]


def kept(function: Callable[..., Any]) -> list[Kept]:
    """Return Dynamo's versions of a function or a module, the oldest first."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    found = []
    for entry in _debug_get_cache_entry_list(_plain(function).__code__):
        manager = entry.guard_manager
        checks = [match for line in str(manager).splitlines() if (match := CHECKS.search(line))]
        found.append(
            Kept(
                number=int(entry.compile_id.frame_compile_id or 0),
                code=entry.code,
                checks=tuple((match["kind"], match["what"]) for match in checks),
                refusal=lambda manager=manager, **names: _refusal(manager, names),
            )
        )
    return sorted(found, key=lambda one: one.number)


def _plain(function: Callable[..., Any]) -> Any:
    if isinstance(function, torch.nn.Module):
        return type(function).forward
    return inspect.unwrap(function)


@dataclass(frozen=True)
class Answer:
    """The result of one call of a compiled function."""

    graphs: int  # the number of graphs after the call
    # for each version that existed before the call: the reason why it refused the call, or None if
    # it did not refuse
    refusals: tuple[str | None, ...]
    # the number of the version that ran; None if the function ran without the compiler
    used: int | None
    value: Any  # the result of the call


def replay(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Answer]:
    """Compile `function`, make the calls one after the other, and return the result of each."""
    graphs: list[fx.GraphModule] = []
    compiled = fresh(function, _collecting(graphs))
    signature, answers = inspect.signature(_plain(function)), []
    own = (function,) if isinstance(function, torch.nn.Module) else ()
    for args in calls:
        names = signature.bind(*own, *args)
        names.apply_defaults()
        refusals = tuple(version.refusal(**names.arguments) for version in kept(function))
        before = len(graphs)
        with listening():
            value = compiled(*args)
        taken = next((k for k, reason in enumerate(refusals) if reason is None), None)
        used = len(refusals) if len(graphs) > before else taken
        answers.append(Answer(len(graphs), refusals, used, value))
    return answers


def fresh(function: Callable[..., Any], backend: Any, dynamic: bool | None = None) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, dynamic=dynamic)


def _refusal(manager: Any, names: Mapping[str, Any]) -> str | None:
    found = manager.check_verbose(dict(names))
    if found.result:
        return None
    return re.sub(r"\s+# .*", "", str(found.verbose_code_parts[0]))


@contextlib.contextmanager
def listening(**artifacts: Any) -> Iterator[list[str]]:
    """Collect the compiler's log messages, instead of printing them.

    artifacts: switches of `torch._logging.set_logs` and TORCH_LOGS, such as `graph_breaks=True`.
        Without a switch, only warnings are logged. At the end, the switches are reset.
    """
    before = copy.deepcopy(torch._logging._internal._get_log_state())
    said: list[str] = []
    collector = logging.Handler()
    collector.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("torch._dynamo")
    torch._logging.set_logs(**artifacts)
    handlers, logger.handlers = logger.handlers, [collector]
    try:
        yield said
    finally:
        logger.handlers = handlers
        torch._logging._internal._set_log_state(before)
        torch._logging._internal._init_logs()
