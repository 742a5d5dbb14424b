"""Driver of lab 06 for functions that get the code that Inductor wrote for a call."""

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

# What may be left on, in words, as a report says it.
LOG, SETTING = "a log", "a setting"
VARIABLE, FUNCTION = "an environment variable", "a function of torch"
TRACE = "torch.__trace"  # every `set_logs` gives this logger a handler, and never takes it away


class CallFails(Exception):
    """What a call raises that is meant to fail."""


class _Watch:
    """What is seen of a call, and done in it, between its first two graphs."""

    passed = 0
    breaks_the_way_back = False


@torch._dynamo.disable
def _pass(x: Tensor) -> Tensor:
    """Stand between two graphs: Dynamo leaves it to Python, at every call."""
    _Watch.passed += 1
    if _Watch.breaks_the_way_back and x.requires_grad:
        x.register_hook(_fail)
    return x


def _fail(gradient: Tensor) -> None:
    raise CallFails


@functools.lru_cache(maxsize=64)
def products(*counts: int, cut: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of x (M, N) and w (N, N): a chain of products, in up to three graphs.

    Each graph has a count of products; where it is 0, the function raises CallFails. Inductor has a
    library compute them, so for M and N from 2 up no C++ is compiled, there or back to x. Where it
    is ``cut``, the result requires no gradient, whatever x does.
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
    """Let the learner's ``generated(function, *inputs)`` get the code of some calls, in turn.

    Inductor's folder is an empty one. What is left switched on is noted, and switched off. What is
    written to stderr is not shown.

    A call has the counts of :func:`products`, x and w; where the counts are the same, so is the
    function. ``back``: x requires a gradient. ``before``: each function is compiled and called
    before it is handed in. ``cut``: the result requires no gradient, also where x does. ``wide``: x
    is part of a wider tensor, in every call but the first. ``fails``: the way back raises
    CallFails, where there are two graphs and more.

    Of each call comes in ``texts`` what was returned, None where the call's error came out, and in
    ``raised`` whether it did; ``passed`` is how often the function was called, if it has two graphs
    and more, and else 0; ``python`` is whether Python can read each text, and ``left`` what is not
    as it was before.
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
    """Call a function of tensors, and go back from the sum of its result if there is a graph."""
    result = function(*inputs)
    if result.requires_grad:
        result.sum().backward()


@functools.cache
def _first_call() -> None:
    """Compile something: a process's first call imports modules that set variables and more."""
    with fresh():
        call(torch.compile(products(1)), torch.ones(2, 2), torch.ones(2, 2))


Hung = tuple[logging.Logger, int, list[logging.Handler]]  # a logger, its level and its handlers
Place = tuple[str, Any, dict[str, Any]]  # its kind, a config, class or module, and what it holds


def _places() -> list[Place]:
    """What torch's settings are now, and the functions by which one may listen to Inductor."""
    from torch._dynamo import config as dynamo
    from torch._functorch import config as functorch
    from torch._inductor import codecache, compile_fx, graph
    from torch._inductor import config as inductor

    # the last holds settings that another has under a name of its own
    configs: list[Any] = [inductor, dynamo, functorch, torch.compiler.config]
    owners = [graph.GraphLowering, codecache.PyCodeCache, codecache, compile_fx, graph]
    settings = [(SETTING, config, config.get_config_copy()) for config in configs]
    return [*settings, *((FUNCTION, owner, _functions(owner)) for owner in owners)]


def _put_back(places: list[Place]) -> list[str]:
    """Put settings and functions back, and return the kinds of those that were others."""
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
    """What stands in torch's settings and functions when this is first called; its variables; and
    the handlers of logs.
    """
    return _places(), _torchs_variables(), _hung()


def _as_at_first() -> None:
    """Put back what was left on outside of :func:`dumped`, where nobody notes it.

    What is on already can't be left on.
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
    """Append to ``left`` what is not as it was when the context is closed, and put it right.

    Logs are switched off first, so that it tells nothing against a function that somebody has
    switched them on outside of it.
    """
    torch._logging.set_logs()
    log_state = torch._logging._internal.log_state
    listened, other = logging.getLogger("torch._inductor"), logging.NullHandler()
    listened.addHandler(other)  # somebody else's, which an answer has to leave there
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
    """Put levels and handlers back."""
    for logger, level, hung in handlers:
        logger.setLevel(level)
        logger.handlers[:] = hung


def _logs() -> dict[str, tuple[int, list[Any]]]:
    """Of each logger its level and its handlers.

    Of those that torch makes itself the number counts: each `set_logs` puts others in their place.
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
    """The functions of a class or module, and the places that are empty until one is put there."""
    kinds = (staticmethod, classmethod, property, type(None))
    return {
        name: value
        for name, value in vars(owner).items()
        if not name.startswith("__") and (callable(value) or isinstance(value, kinds))
    }
