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
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import GeneratorType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from hood.judge.connection import codec, course_code, originals
from hood.judge.connection.drivers import find_driver
from hood.judge.connection.settings import usual_settings, variable

MAX_OPS = 10_000
# Folders in which no code of a learner's lies.
LIBRARIES = (Path(os.__file__).parent, Path(torch.__file__).parents[1])
OTHERS = tuple(f"{path}{os.sep}" for path in (*LIBRARIES, *course_code.folders()))
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

    A reply has ``id``, ``called`` (what :class:`CallRecorder` heard, if asked), and one of:
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
            listening = listener = CallRecorder()
            told["called"] = listener.lines
        recorded = request.get("listen") or request.get("trace")
        try:
            with _interruptible(), usual_settings(), _uncompiled(bool(recorded)):
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
            return {"value": gradients(made, request["args"], request["upstream"])}
        args, kwargs = request["args"], request.get("kwargs", {})
        watch = OpRecorder(stored_in((args, kwargs))) if request.get("trace") else None
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
        return reply | {"ops": watch.ops[:MAX_OPS]} if watch else reply

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


def stored_in(value: Any) -> list[torch.Tensor | np.ndarray]:
    """Return the tensors and arrays inside nested containers, in order.

    torch's own function for this knows more containers, and takes many times as long.
    """
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [found for item in value for found in stored_in(item)]


def resume(generator: Iterator, value: Any) -> tuple[str, Any]:
    """Let a generator run on; return ``("yield", x)``, or ``("return", x)`` at its end."""
    outside = torch.is_grad_enabled()
    if isinstance(generator, GeneratorType):
        torch.set_grad_enabled(_grad_modes.get(generator, outside))
    try:
        if isinstance(generator, GeneratorType) and value is not None:
            return "yield", generator.send(value)
        return "yield", next(generator)
    except StopIteration as end:
        return "return", end.value
    finally:
        if isinstance(generator, GeneratorType):
            _grad_modes[generator] = torch.is_grad_enabled()
        torch.set_grad_enabled(outside)


# A generator may yield from inside of `with torch.no_grad()`, and others run before it goes on.
_grad_modes: WeakKeyDictionary[GeneratorType, bool] = WeakKeyDictionary()


def gradients(module: Any, args: tuple, upstream: torch.Tensor) -> dict[str, Any]:
    """Call ``module(*args)`` and send a gradient back through it.

    Returns ``output``; ``arguments``, the gradient of each of ``args``; and ``parameters``, the
    gradients by name. One is None where none arrives, and all are if the output does not have the
    shape and dtype of ``upstream``.
    """
    own = {name: p for name, p in module.named_parameters() if isinstance(p, torch.Tensor)}
    floating = [isinstance(a, torch.Tensor) and a.is_floating_point() for a in args]
    leaves = [a.requires_grad_() if is_so else a for a, is_so in zip(args, floating, strict=True)]
    # Clones, because autograd refuses to change a leaf in place. Whether the module may change its
    # inputs is judged by its calls and not here.
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


@contextlib.contextmanager
def _uncompiled(recorded: bool) -> Iterator[None]:
    """Let compiled code run as it was written while calls are recorded.

    A mode hears nothing of what a compiled function calls, and torch cannot compile one below it.
    """
    if not recorded:
        yield
        return
    with contextlib.ExitStack() as stack:
        if dynamo := sys.modules.get("torch._dynamo"):
            stack.enter_context(dynamo.set_stance("force_eager"))
        stack.enter_context(variable("TORCHDYNAMO_DISABLE", "1"))  # for what the call compiles
        yield


class OpRecorder(TorchDispatchMode):
    """Record each operator that reaches the dispatcher and has an input's storage as an argument.

    What an operator made of an input, such as a copy, is looked at like the input. Of the inputs
    those that are no tensors are ignored.
    """

    def __init__(self, inputs: list[Any]) -> None:
        super().__init__()
        self.ops: list[str] = []  # the recorded operators, such as ``aten.add``, in order
        self._inputs = _addresses(inputs) - {0}  # that of every empty storage
        self._kept: list[Any] = []  # so that no other tensor comes to lie at such an address

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch's default imports all of torch._dynamo, which takes over a second.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        touched = _addresses((args, kwargs))
        made = func(*args, **(kwargs or {}))
        if touched & self._inputs:
            self.ops.append(str(func._overloadpacket))
            self._kept.append(made)
            self._inputs |= _addresses(made) - {0}
        return made


class CallRecorder(TorchFunctionMode):
    """Record each function, method and attribute of torch that the learner's code calls or reads.

    It is heard whatever the code calls it by. What a library calls in turn is not, nor is code of
    the learner's that runs inside of a call of torch, such as a ``backward``.
    """

    def __init__(self) -> None:
        super().__init__()
        # The line in which the code first called it, by its path, such as ``torch.softmax``
        self.lines: dict[str, int] = {}
        self._heard: set[Any] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in self._heard and len(self.lines) < MAX_OPS:
            self._hear(func, sys._getframe(1))
        return func(*args, **kwargs) if kwargs else func(*args)

    def _hear(self, func: Any, frame: Any) -> None:
        own = getattr(func, "__code__", None)  # in Python it tells of itself, by torch's help
        while own and frame and frame.f_code is not own:
            frame = frame.f_back
        frame = frame.f_back if own and frame else frame
        while frame and frame.f_code.co_filename == torch._ops.__file__:
            frame = frame.f_back  # which calls an operator of `torch.ops`
        if frame and not frame.f_code.co_filename.startswith(OTHERS):
            self._heard.add(func)
            self.lines.setdefault(_path(func), frame.f_lineno)


def _path(func: Any) -> str:
    module, name = getattr(func, "__module__", None) or "torch", getattr(func, "__name__", "")
    if name == "__get__":  # of an attribute, which may be a property
        attribute = getattr(func.__self__, "fget", func.__self__)
        return f"torch.Tensor.{getattr(attribute, '__name__', '')}"
    if hasattr(func, "__objclass__") or module == "torch._tensor":
        module = "torch.Tensor"
    return f"{module}.{name}"


def _addresses(value: Any) -> set[int]:
    return {address(t) for t in stored_in(value) if isinstance(t, torch.Tensor)}


def address(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except RuntimeError:
        return 0
