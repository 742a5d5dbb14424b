"""Answer the grader's calls of the learner's code, in the learner's process. It judges nothing.

A request names what to call and carries the arguments. The reply carries the result, the tensors
and arrays of the arguments as they are after the call, and what was recorded. The learner's
code can change what this module says, but only to replies that their functions might have caused.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import GeneratorType
from typing import Any

from hood.judge.connection import codec, originals
from hood.judge.connection.drivers import find_driver
from hood.judge.connection.settings import usual_settings
from hood.judge.values.table import stored_in

connection = -1  # descriptor of the kernel's end of the socket; set when the kernel starts


class Answerer:
    """Answer requests about a learner's function, class, value, or dict of functions.

    Requests and replies are dicts, without keys for what is None, empty or False. A request has
    ``id``, ``listen`` (whether to record calls of torch) and ``do``, which is one of:

    - ``call``, with ``args``, ``kwargs`` and ``trace`` (whether to record operators): of the thing,
      of one of its functions (``name``), of a ``driver``, by its whole name, with the thing as
      first argument, or of a ``method`` of an instance (``made``) that came of an earlier call.
      With ``generator``, an iterator may come back, and stays here.
    - ``resume``, with ``made`` and ``value``: let such a generator run on, whose ``yield`` gives
      ``value``.
    - ``gradients`` of a call of an instance, with ``made``, ``args`` and ``upstream``.
    - ``get``, with ``made`` and ``attribute``; ``value``: the thing itself.
    - ``surroundings``: what :mod:`hood.judge.connection.originals` tells, ``replaced`` and
      ``own_files``.

    A reply has ``id``, ``called`` (what :mod:`.torch_calls` heard, if asked), and one of:
    ``value``, for a call with ``after`` (the tensors and arrays of the arguments, after the call)
    and ``ops``; ``made``, the number of an instance or generator; ``raised``, as :func:`describe`
    gives it; ``refused``, why the result cannot be sent; ``interrupted``, by the time limit.
    """

    def __init__(self, thing: Any):
        self._thing = thing
        self._made: list[Any] = []
        originals.remember()

    def answer(self, request: dict[str, Any]) -> bytes:
        """Return the packed reply to one request.

        Whatever the learner's code raises becomes part of the reply and is not raised here.
        """
        reply: dict[str, Any]
        told: dict[str, Any] = {"id": request["id"]}
        listening: contextlib.AbstractContextManager = contextlib.nullcontext()
        if request.get("listen") and request["do"] != "resume":  # which may leave its own modes
            listening = listener = _torch_calls().CallRecorder()
            told["called"] = listener.lines
        recorded = request.get("listen") or request.get("trace")
        uncompiled = _torch_calls().uncompiled() if recorded else contextlib.nullcontext()
        try:
            with _interruptible(), usual_settings(), uncompiled:
                with listening:
                    reply = self._answer(request)
                # pack inside of the try, because reading the result may run the learner's code
                return codec.pack(told | reply)
        except KeyboardInterrupt:
            reply = {"interrupted": True}
        except codec.NotByValue as error:
            reply = {"refused": str(error)}
        except BaseException as error:
            reply = {"raised": describe(error)}
        return codec.pack(told | reply)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "value":
            return {"value": self._thing}
        if request["do"] == "surroundings":
            told = {"replaced": originals.replaced(), "own_files": originals.own_files()}
            return {"value": told}
        if request["do"] == "get":
            return {"value": getattr(self._made[request["made"]], request["attribute"])}
        if request["do"] == "resume":
            return {"value": resume(self._made[request["made"]], request["value"])}
        if request["do"] == "gradients":
            made = self._made[request["made"]]
            return {"value": _torch_calls().gradients(made, request["args"], request["upstream"])}
        args, kwargs = request["args"], request.get("kwargs", {})
        watch = _torch_calls().OpRecorder(args, kwargs) if request.get("trace") else None
        function = self._function(request)
        with watch or contextlib.nullcontext():
            result = function(*args, **kwargs)
        if isinstance(function, type) and function is self._thing:
            return self._keep(result)
        if request.get("generator") and isinstance(result, Iterator):
            return self._keep(result)
        if "made" in request and result is self._made[request["made"]]:
            return {"made": request["made"]}  # a method such as eval() returns its own instance
        # Result and arguments go into one message, so that a result that is a view of an argument
        # stays one. Arguments without a storage, such as a large graph of names, are not sent back.
        after = stored_in((args, kwargs))
        reply = {"value": result, "after": after}
        return reply | {"ops": watch.ops[: _torch_calls().MAX_OPS]} if watch else reply

    def _keep(self, made: Any) -> dict[str, Any]:
        self._made.append(made)
        return {"made": len(self._made) - 1}

    def _function(self, request: dict[str, Any]) -> Callable:
        if "made" in request:
            return getattr(self._made[request["made"]], request["method"])
        thing = self._thing[request["name"]] if "name" in request else self._thing
        if "driver" in request:
            return partial(find_driver(request["driver"]), thing)
        return thing


def resume(generator: Iterator, value: Any) -> tuple[str, Any]:
    """Let a generator run on; return ``("yield", x)``, or ``("return", x)`` at its end."""
    knows = "torch" in sys.modules
    with _torch_calls().grad_mode_of(generator) if knows else contextlib.nullcontext():
        try:
            if isinstance(generator, GeneratorType) and value is not None:
                return "yield", generator.send(value)
            return "yield", next(generator)
        except StopIteration as end:
            return "return", end.value


def _torch_calls() -> Any:
    """Return the module that records calls of torch, which imports it."""
    from hood.judge.connection import torch_calls

    return torch_calls


def describe(error: BaseException) -> dict[str, Any]:
    """Describe an exception by value: ``kinds``, the names of its type and bases, nearest first;
    and ``message``, its first line, with the second if the first ends in a colon.
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
    """Answer requests over the inherited socket, until the grader sends ``end`` or closes it.

    The kernel calls this: it is the code that the grader executes for a graded cell. ``thing`` is
    what the learner wrote; a dict for an exercise with several functions.
    """
    answerer = Answerer(thing)
    with (
        socket.socket(fileno=os.dup(connection)) as grader,
        _undisturbed(),
        usual_settings(),  # for arguments, too, which are tensors
    ):
        while True:
            request = receive(grader)
            if request is None or request["do"] == "end":
                return
            grader.sendall(answerer.answer(request))


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Block the time limit's interrupt, which could break a message that is being sent."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # a pending interrupt has nothing to stop now
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def receive(connection: socket.socket) -> Any:
    """Receive and decode the next message; return None at the end of the stream.

    Raises NotByValue if the bytes are not a valid message.
    """
    header = _exactly(connection, codec.HEADER.size)
    if len(header) < codec.HEADER.size:
        return None
    body = _exactly(connection, sum(codec.sizes(header)))
    return codec.unpack(header + body)


def _exactly(connection: socket.socket, count: int) -> bytes:
    chunks = []
    while count:
        chunk = connection.recv(min(count, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)
