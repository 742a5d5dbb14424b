"""Answer the grader's calls of the learner's code, in the learner's process, without judging.

A request says what to call and with which arguments. The reply has the result, the arguments'
tensors and arrays after the call, and the recorded calls and operators. The learner's code can
forge a reply, but every forged reply is one that some function could have caused.
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

from hood.judge.connection import codec, effects, originals
from hood.judge.connection.drivers import find_driver
from hood.judge.connection.settings import usual_settings
from hood.judge.values.table import stored_in

connection = -1  # file descriptor of the kernel's end of the socket; set when the kernel starts


class Answerer:
    """Answer requests about a learner's function, class, value, or dict of functions.

    Requests and replies are dicts. A key is left out if its value is None, False or empty. A
    request has ``id``, ``listen`` (whether to record calls of torch) and ``do``, which is one of:

    - ``call``, with ``args``, ``kwargs`` and ``trace`` (whether to record operators): call the
      learner's object. If the object has several functions, ``name`` says which function to call.
      With ``driver`` (a full name), call this driver, with the object as first argument. With
      ``made`` and ``method``, call this method of an instance from an earlier call. With
      ``generator``, the result may be an iterator, which stays in this process. With ``prints``,
      the value is the text that the call printed. With ``draws``, the value is the figure that the
      call returned or drew. With ``leaves``, the value is the list of arguments after the call.
      With ``watch``, the reply also has ``left``, the arguments and keyword arguments after the
      call.
    - ``resume``, with ``made`` and ``value``: resume a generator from an earlier call. Its
      ``yield`` returns ``value``.
    - ``gradients``, with ``made``, ``args`` and ``upstream``: gradients of a call of an instance.
    - ``get``, with ``made`` and ``attribute``: an attribute of an instance.
    - ``value``: the learner's object itself.
    - ``surroundings``: ``replaced`` and ``own_files`` of :mod:`hood.judge.connection.originals`.

    A reply has ``id``, ``called`` (the calls that :mod:`.torch_calls` recorded, if asked), and one
    of these keys:

    - ``value``: the result. For a call, there are also ``after`` (the arguments' tensors and arrays
      after the call) and ``ops``.
    - ``made``: the number of an instance or generator.
    - ``raised``: the exception, from :func:`describe`.
    - ``refused``: why the result cannot be sent.
    - ``interrupted``: whether the time limit interrupted the code.
    """

    def __init__(self, thing: Any):
        self._thing = thing
        self._made: list[Any] = []
        originals.remember()

    def answer(self, request: dict[str, Any]) -> bytes:
        """Return the packed reply to one request.

        An exception of the learner's code becomes part of the reply and is not raised here.
        """
        reply: dict[str, Any]
        told: dict[str, Any] = {"id": request["id"]}
        listening: contextlib.AbstractContextManager = contextlib.nullcontext()
        if request.get("listen") and request["do"] != "resume":  # a generator may leave modes open
            listening = listener = _torch_calls().CallRecorder()
            told["called"] = listener.lines
        recorded = request.get("listen") or request.get("trace")
        uncompiled = _torch_calls().uncompiled() if recorded else contextlib.nullcontext()
        try:
            with _interruptible(), usual_settings(), uncompiled:
                with listening:
                    reply = self._answer(request)
                # pack inside the try, because reading the result may run the learner's code
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
        capture = effects.printed if request.get("prints") else contextlib.nullcontext
        with watch or contextlib.nullcontext(), capture() as text:
            result = function(*args, **kwargs)
        if text is not None:
            result = text.getvalue()
        if request.get("draws"):
            result = effects.drawn(result)
        if request.get("leaves"):
            result = list(args)
        if isinstance(function, type) and function is self._thing:
            return self._keep(result)
        if request.get("generator") and isinstance(result, Iterator):
            return self._keep(result)
        if "made" in request and result is self._made[request["made"]]:
            return {"made": request["made"]}  # a method such as eval() returns its own instance
        # One message has the result and the arguments, so that a view of an argument stays a view.
        # Arguments without a storage, such as a large graph of names, are not sent back.
        after = stored_in((args, kwargs))
        reply = {"value": result, "after": after}
        if request.get("watch"):
            reply["left"] = [args, kwargs]
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
    """Resume a generator; return ``("yield", x)``, or ``("return", x)`` at its end."""
    knows = "torch" in sys.modules
    with _torch_calls().grad_mode_of(generator) if knows else contextlib.nullcontext():
        try:
            if isinstance(generator, GeneratorType) and value is not None:
                return "yield", generator.send(value)
            return "yield", next(generator)
        except StopIteration as end:
            return "return", end.value


def _torch_calls() -> Any:
    """Return the module that records calls of torch; importing it imports torch."""
    from hood.judge.connection import torch_calls

    return torch_calls


def describe(error: BaseException) -> dict[str, Any]:
    """Describe an exception as data that can be sent.

    ``kinds`` are the names of the exception's type and of the type's bases, nearest first.
    ``message`` is the first line of the message, and also the second line if the first ends in a
    colon.
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
    """Answer requests over the inherited socket, until the grader sends ``end`` or closes its side.

    The grader executes this in the kernel for a graded cell. ``thing`` is the learner's object; a
    dict for an exercise with several functions.
    """
    answerer = Answerer(thing)
    with (
        socket.socket(fileno=os.dup(connection)) as grader,
        _undisturbed(),
        usual_settings(),  # also while arguments are decoded, because arguments may be tensors
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
        with contextlib.suppress(KeyboardInterrupt):  # a late interrupt has no code to stop
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
