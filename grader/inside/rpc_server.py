"""The side beside the learner's code: it answers calls, and decides nothing.

A request names what to call and brings the arguments; the reply brings what came back, the
arguments' tensors and arrays as they are afterwards, and what was seen besides. Whatever this code
is made to say by the learner's own, it can only be what their functions might have returned.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grader.inside import codec

LINK_VARIABLE = "OPEN_THE_HOOD_LINK"
MAX_OPS = 10_000


class Answerer:
    """Answers requests about a learner's function, class, value, or dict of functions.

    Requests and replies are dicts of values. A request's ``do`` is ``call`` (with ``name`` for one
    of several functions, ``driver`` for a function of ``utils.drivers`` that gets the learner's
    thing as its first argument, or ``made`` and ``method`` for an instance that a class made
    earlier),
    ``gradients`` (of a call of such an instance, with ``upstream``), ``get`` (an instance's
    attribute) or ``value``. A reply has one of ``value``, ``made`` (the number of an instance: a
    new one, or the one whose method returned it), ``raised``, ``refused`` and ``interrupted``.

    Args:
        thing: what the learner wrote.
    """

    def __init__(self, thing: Any):
        self._thing = thing
        self._made: list[Any] = []

    def answer(self, request: dict[str, Any]) -> bytes:
        """The reply to one request, packed; nothing that the learner's code does raises."""
        number = request["id"]
        reply: dict[str, Any]
        try:
            with _interruptible():
                # packed here: to look at what came back may run the learner's code, too
                return codec.pack({"id": number, **self._answer(request)})
        except KeyboardInterrupt:
            reply = {"interrupted": True}
        except codec.NotByValue as error:
            reply = {"refused": str(error)}
        except BaseException as error:
            reply = {"raised": describe(error)}
        return codec.pack({"id": number, **reply})

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "value":
            return {"value": self._thing}
        if request["do"] == "get":
            return {"value": getattr(self._made[request["made"]], request["attribute"])}
        if request["do"] == "gradients":
            made = self._made[request["made"]]
            return {"value": gradients(made, request["args"], request["upstream"])}
        args, kwargs = request["args"], request["kwargs"]
        watch = OpRecorder(tree_leaves((args, kwargs))) if request["trace"] else None
        function = self._function(request)
        if watch is None:
            result = function(*args, **kwargs)
        else:
            with watch:
                result = function(*args, **kwargs)
        if isinstance(function, type) and function is self._thing:
            self._made.append(result)
            return {"made": len(self._made) - 1}
        if request["made"] is not None and result is self._made[request["made"]]:
            return {"made": request["made"]}  # as eval() does
        # Sent together, so that a result that views an argument still does. Of the arguments only
        # what has a storage: a graph of thousands of names need not go both ways.
        stored = (torch.Tensor, np.ndarray)
        after = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, stored)]
        ops = watch.ops[:MAX_OPS] if watch else []
        return {"value": result, "after": after, "ops": ops}

    def _function(self, request: dict[str, Any]) -> Callable:
        if request["made"] is not None:
            return getattr(self._made[request["made"]], request["method"])
        thing = self._thing if request["name"] is None else self._thing[request["name"]]
        if request["driver"] is not None:
            return partial(find_driver(request["driver"]), thing)
        return thing


def find_driver(name: str) -> Callable:
    """The driver of a name such as ``dispatch:log_ops``.

    Raises:
        LookupError: when there is none.
    """
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(f"utils.drivers.{module}"), function)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"there is no driver {name!r} in utils/drivers") from error


def gradients(module: Any, args: tuple, upstream: torch.Tensor) -> dict[str, Any]:
    """What a gradient of ``module(*args)`` becomes on its way back, None where none arrives.

    Args:
        module: an instance; its parameters, by name, are those that ``named_parameters`` gives.
        args: tensors and other values.
        upstream: the gradient of the output, of its shape and dtype.
    """
    own = {name: p for name, p in module.named_parameters() if isinstance(p, torch.Tensor)}
    floating = [isinstance(a, torch.Tensor) and a.is_floating_point() for a in args]
    leaves = [a.requires_grad_() if is_so else a for a, is_so in zip(args, floating, strict=True)]
    # clones, since a leaf refuses to be changed in place: what comes of that is a call's affair
    given = [a.clone() if is_so else a for a, is_so in zip(leaves, floating, strict=True)]
    y = module(*given)
    wanted = [a for a, is_so in zip(leaves, floating, strict=True) if is_so]
    wanted += [p for p in own.values() if p.requires_grad]
    found: dict[int, Any] = {}
    alike = isinstance(y, torch.Tensor) and (y.shape, y.dtype) == (upstream.shape, upstream.dtype)
    if alike and y.requires_grad:
        arrived = torch.autograd.grad(y, wanted, upstream, allow_unused=True)
        found = {id(leaf): grad for leaf, grad in zip(wanted, arrived, strict=True)}
    return {
        "output": y,
        "arguments": [found.get(id(a)) for a in leaves],
        "parameters": {str(name): found.get(id(p)) for name, p in own.items()},
    }


def describe(error: BaseException) -> dict[str, Any]:
    """An exception by value: the names of its type and bases, nearest first; its first line.

    A first line that only announces the next, with a colon, brings that along.
    """
    kinds = [str(k.__name__) for k in type(error).__mro__ if k is not object]
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        announces = len(lines) > 1 and lines[0].endswith(":")
        message = " ".join(lines[: 2 if announces else 1])
    except Exception:
        message = ""
    return {"kinds": kinds, "message": str(message)[:1000]}


def serve(thing: Any) -> None:
    """Answer over the inherited socket, until the other end says ``end`` or is gone.

    Args:
        thing: what the learner wrote; a dict of functions for an exercise of several.
    """
    answerer = Answerer(thing)
    with socket.socket(fileno=os.dup(int(os.environ[LINK_VARIABLE]))) as link, _undisturbed():
        while True:
            request = receive(link)
            if request is None or request["do"] == "end":
                return
            link.sendall(answerer.answer(request))


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep the time limit's interrupt waiting: in the middle of a message it would break it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # one that waited has nothing left to stop
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let an interrupt through for a while, where it is kept waiting."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def receive(link: socket.socket) -> Any:
    """The next message, or None where the stream ends."""
    header = _exactly(link, codec.HEADER.size)
    if len(header) < codec.HEADER.size:
        return None
    body = _exactly(link, sum(codec.sizes(header)))
    return codec.unpack(header + body)


def _exactly(link: socket.socket, count: int) -> bytes:
    chunks = []
    while count:
        chunk = link.recv(min(count, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


class OpRecorder(TorchDispatchMode):
    """Write down each operator that reaches the dispatcher and touches an input's storage.

    Args:
        inputs: tensors, and anything else, which is passed over.
    """

    def __init__(self, inputs: list[Any]) -> None:
        super().__init__()
        self.ops: list[str] = []
        addresses = {_address(t) for t in inputs if isinstance(t, torch.Tensor)}
        self._inputs = addresses - {0}  # that of every empty storage

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default asks torch._dynamo to keep out, and so imports all of it: over a second.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        touched = {_address(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        if touched & self._inputs:
            self.ops.append(str(func._overloadpacket))
        return func(*args, **(kwargs or {}))


def _address(tensor: torch.Tensor) -> int:
    """Where a tensor's storage begins; 0 for a subclass that has none of its own."""
    try:
        return tensor.untyped_storage().data_ptr()
    except RuntimeError:
        return 0
