"""The driver of lab 06 for a function that returns the code that Inductor writes for a call."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from utils.drivers import driver
from utils.drivers.compiling import fresh

# Kinds of settings that may be left on, in the words of a report.
LOG, SETTING = "a log", "a setting"
VARIABLE, FUNCTION = "an environment variable", "a function of torch"
TRACE = "torch.__trace"  # every `set_logs` gives this logger a handler, and never removes it


class CallFails(Exception):
    """The error that a driver's function raises on purpose."""


class _Watch:
    """What the driver counts, and does, between the first two graphs of a call."""

    passed = 0
    breaks_the_way_back = False


@torch._dynamo.disable
def _pass(x: Tensor) -> Tensor:
    """Separate two graphs. Dynamo never compiles this function, so Python runs it in every call."""
    _Watch.passed += 1
    if _Watch.breaks_the_way_back and x.requires_grad:
        x.register_hook(_fail)
    return x


def _fail(gradient: Tensor) -> None:
    raise CallFails


@functools.lru_cache(maxsize=64)
def products(*counts: int, cut: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of x (M, N) and w (N, N): a chain of products, in up to three graphs.

    ``counts`` has the number of products of each graph. If the number is 0, the function raises
    CallFails in place of this graph. Inductor calls a library for products. So if M and N are at
    least 2, neither the forward nor the backward to x compiles C++. If the function is ``cut``, the
    result requires no gradient, even if x requires one.
    """

    def multiply(x: Tensor, w: Tensor, count: int) -> Tensor:
        for _ in range(count):
            x = x @ w
        return x

    def run(x: Tensor, w: Tensor) -> Tensor:
        if cut:
            x = x.detach()
        x = multiply(x, w, counts[0])
        if len(counts) > 1:  # not in a loop: a break there makes Dynamo leave the whole function
            x = multiply(_pass(x), w, counts[1])
        if len(counts) > 2:
            torch._dynamo.graph_break()
            x = multiply(x, w, counts[2])
        if 0 in counts:
            raise CallFails
        return x

    return run


@driver(
    "texts",
    "raised",
    observed={
        "passed": "how often the function is called",
        "python": "that Python can read the texts",
        "left": "that nothing is left switched on",
    },
)
def dumped(
    generated: Callable,
    *calls: tuple[Sequence[int], Tensor, Tensor],
    back: bool = False,
    before: bool = False,
    cut: bool = False,
    wide: bool = False,
    fails: bool = False,
) -> dict[str, list[Any]]:
    """Let the learner's ``generated(function, *inputs)`` return the code of several calls.

    Inductor's folder is empty. Settings that are left on are recorded and switched off. Output to
    stderr is not shown.

    calls: the counts of :func:`products`, x and w. Calls with the same counts have the same
        function.
    back: whether x requires a gradient.
    before: whether each function is compiled and called before the learner gets it.
    cut: whether the result requires no gradient, even if x requires one.
    wide: whether x is part of a wider tensor, in every call except the first.
    fails: whether the backward raises CallFails. This needs two or more graphs.

    Each value of the result has an entry for each call. ``texts`` has the result of ``generated``,
    or None if it raised CallFails. ``raised`` is True if ``generated`` raised CallFails. ``passed``
    is how often the function was called, or 0 for a function with one graph. ``python`` is True for
    each text that Python can read. ``left`` has the kinds of settings that were left changed.
    """
    found: dict[str, list[Any]] = {
        key: [] for key in ("texts", "raised", "passed", "python", "left")
    }
    _as_at_first()
    with (
        tempfile.TemporaryDirectory(prefix="inductor") as folder,
        mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder),
    ):
        _first_call()
        torch._dynamo.reset()
        for at, (counts, x, w) in enumerate(calls):
            function, leaf = products(*counts, cut=cut), x.detach().clone()
            if wide and at:
                leaf = torch.nn.functional.pad(leaf, (0, 1))[:, :-1]
            leaf.requires_grad_(back)
            if before:
                torch._dynamo.reset()
                call(torch.compile(function), leaf, w)
            left: list[str] = []
            texts, raised = None, False
            _Watch.passed, _Watch.breaks_the_way_back = 0, fails
            with _noted(left), contextlib.redirect_stderr(io.StringIO()):
                try:
                    texts = generated(function, leaf, w)
                except CallFails:
                    raised = True
                finally:
                    _Watch.breaks_the_way_back = False
            listed = texts if isinstance(texts, list | tuple) else []
            found["texts"].append(texts)
            found["raised"].append(raised)
            found["passed"].append(_Watch.passed)
            found["python"].append([_is_python(text) for text in listed])
            found["left"].append(left)
        torch._dynamo.reset()
    return found


def call(function: Callable, *inputs: Tensor) -> None:
    """Call a function of tensors. If the result has a graph, run a backward from its sum."""
    result = function(*inputs)
    if result.requires_grad:
        result.sum().backward()


@functools.cache
def _first_call() -> None:
    """Compile a function now, because a process's first call imports modules that set variables."""
    with fresh():
        call(torch.compile(products(1)), torch.ones(2, 2), torch.ones(2, 2))


Hung = tuple[logging.Logger, int, list[logging.Handler]]  # a logger, its level and its handlers
# a kind, an object (a config, a class or a module), and the object's content
Place = tuple[str, Any, dict[str, Any]]


def _places() -> list[Place]:
    """Return torch's current settings, and the functions that can observe Inductor."""
    from torch._dynamo import config as dynamo
    from torch._functorch import config as functorch
    from torch._inductor import codecache, compile_fx, graph
    from torch._inductor import config as inductor

    # the last config only repeats another config's settings, under other names
    configs: list[Any] = [inductor, dynamo, functorch, torch.compiler.config]
    owners = [graph.GraphLowering, codecache.PyCodeCache, codecache, compile_fx, graph]
    settings = [(SETTING, config, config.get_config_copy()) for config in configs]
    return [*settings, *((FUNCTION, owner, _functions(owner)) for owner in owners)]


def _put_back(places: list[Place]) -> list[str]:
    """Restore settings and functions, and return the kinds of the changed ones."""
    kinds = []
    for kind, place, before in places:
        now = place.get_config_copy() if kind == SETTING else vars(place)
        for name, value in before.items():
            same = now.get(name) == value if kind == SETTING else now.get(name) is value
            if not same:
                setattr(place, name, value)
                kinds.append(kind)
    return list(dict.fromkeys(kinds))


def _torchs_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TORCH")}


@functools.cache
def _at_first() -> tuple[list[Place], dict[str, str], list[Hung]]:
    """Torch's settings, functions, variables and handlers of logs, at the first call."""
    return _places(), _torchs_variables(), _hung()


def _as_at_first() -> None:
    """Restore settings that were left on outside :func:`dumped`, where no report records them.

    If a setting were already on before the call, no report could say that the call left it on.
    """
    places, variables, hung = _at_first()
    _put_back(places)
    _hang(hung)
    for name in _torchs_variables().keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _is_python(text: Any) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, TypeError, ValueError):
        return False
    return True


@contextlib.contextmanager
def _noted(left: list[str]) -> Iterator[None]:
    """When the context is closed, append all changes to ``left``, and undo them.

    Logs are switched off first. So a function is not blamed for logs that other code has switched
    on.
    """
    torch._logging.set_logs()
    log_state = torch._logging._internal.log_state
    listened, other = logging.getLogger("torch._inductor"), logging.NullHandler()
    listened.addHandler(other)  # a handler of other code, which an answer must not remove
    logs, environment = _logs(), dict(os.environ)
    hung, places = _hung(), _places()
    try:
        yield
    finally:
        now = _logs()
        if any(now.get(name) != one for name, one in logs.items()) or log_state.artifact_names:
            left.append(LOG)
        log_state.clear()
        _hang(hung)
        listened.removeHandler(other)
        left += _put_back(places)
        if dict(os.environ) != environment:
            left.append(VARIABLE)
            os.environ.clear()
            os.environ.update(environment)
        left.sort(key=(LOG, SETTING, VARIABLE, FUNCTION).index)


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict
    names = [name for name in known if name.partition(".")[0] == "torch" and name != TRACE]
    return [
        logging.root,
        *(one for name in names if isinstance(one := known[name], logging.Logger)),
    ]


def _hung() -> list[Hung]:
    return [(logger, logger.level, list(logger.handlers)) for logger in _loggers()]


def _hang(handlers: list[Hung]) -> None:
    """Restore the levels and handlers of loggers."""
    for logger, level, hung in handlers:
        logger.setLevel(level)
        logger.handlers[:] = hung


def _logs() -> dict[str, tuple[int, list[Any]]]:
    """Return the level and the handlers of each logger.

    For handlers that torch makes, only the number counts, because each `set_logs` replaces them.
    """
    torchs = torch._logging._internal._is_torch_handler
    return {
        logger.name: (
            logger.level,
            sorted(0 if torchs(one) else id(one) for one in logger.handlers),
        )
        for logger in _loggers()
    }


def _functions(owner: Any) -> dict[str, Any]:
    """Return the functions of a class or module, and its attributes that are still None."""
    kinds = (staticmethod, classmethod, property, type(None))
    return {
        name: value
        for name, value in vars(owner).items()
        if not name.startswith("__") and (callable(value) or isinstance(value, kinds))
    }
