"""The operations that Inductor puts into one pass, and the code that it writes."""

from __future__ import annotations

import contextlib
import math
import re
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from utils.instruments.compiling.dynamo import fresh, listening
from utils.instruments.toolchain import require_compiler

LINE = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<name>.*)\n\s*(?P<text>.*)')
KERNEL = re.compile(r'extern "C".*?\n\{\n(.*?)\n\}\n', re.DOTALL)
# The GPU for which Inductor compiles, from an H100's data sheet. No GPU is needed.
HOPPER = {
    "multi_processor_count": 132,
    "major": 9,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
    "max_threads_per_block": 1024,
    "warp_size": 32,
}


@dataclass(frozen=True)
class Pass:
    """Operations that Inductor's scheduler combined, so that they share their loops."""

    name: str  # the scheduler's name, such as "op0_op1"
    # the lines of Python whose operations are in the pass, in the order of the file
    lines: tuple[str, ...]
    operators: tuple[str, ...]  # the names of its operators
    reads: dict[str, int]  # buffers and inputs that the pass loads: name -> bytes
    # buffers that the pass stores: name -> bytes, without values that exist only within the pass
    writes: dict[str, int]
    library: bool  # whether the pass is a call of a library, and not Inductor's code


@dataclass(frozen=True)
class Written:
    """One module that Inductor wrote."""

    code: str  # its text
    passes: tuple[Pass, ...]  # the scheduler's groups, in order
    backward: bool  # whether the module is for the backward


def written(
    function: Callable[..., Any], *args: Any, device: str = "cpu", backward: bool = False
) -> list[Written]:
    """Return Inductor's code for `function(*args)`, without building or running it.

    device: "cpu" or "cuda". For "cuda", Inductor gets fake tensors, and writes only the forward.
        The code is the same as on a real H100 if it depends only on the numbers in HOPPER.
    backward: whether to include the module for the backward. It exists if an argument requires a
        gradient.

    For "cpu", Inductor asks the C++ compiler which of the processor's instructions it supports. So
    NoCompiler is raised if C++ can't be compiled.
    """
    from torch._functorch import config as functorch
    from torch._inductor import config as inductor
    from torch._inductor.graph import GraphLowering

    if device not in ("cpu", "cuda"):
        raise ValueError(f'device: expected "cpu" or "cuda", got {device!r}')
    if device == "cpu":
        require_compiler()
    found: list[Written] = []

    class NotBuilt:
        __file__ = key = ""

        @staticmethod
        def call(*_: Any) -> None:
            raise NotRun

    def instead(lowering: Any) -> type[NotBuilt]:
        code = lowering.codegen()[0].value
        groups = [node for node in lowering.scheduler.nodes if not _is_part(node)]
        passes = tuple(_pass(lowering, node) for node in groups)
        found.append(Written(code, passes, bool(lowering.is_backward)))
        return NotBuilt

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(GraphLowering, "compile_to_module", instead))
        # NotBuilt must not get into the cache. Otherwise another call would get a module without
        # code.
        stack.enter_context(inductor.patch(force_disable_caches=True))
        stack.enter_context(functorch.patch(force_non_lazy_backward_lowering=backward))
        stack.enter_context(listening())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # a warning that the caches are off
        if device == "cuda":
            args = stack.enter_context(_described_gpu(args))
        with contextlib.suppress(NotRun):
            fresh(function, "inductor")(*args)
    torch._dynamo.reset()
    return found


class NotRun(Exception):
    """A module was called that Inductor has written, but not built."""


def _is_part(group: Any) -> bool:
    from torch._inductor.ir import MultiOutput

    return all(isinstance(node.node, MultiOutput) for node in group.get_nodes())


def _pass(lowering: Any, group: Any) -> Pass:
    inner = group.get_nodes()
    made = [name for node in inner for name in node.get_buffer_names()]
    if group.is_extern():  # name its input by the operations that made it
        made += [user.get_name() for name in made for user in _parts(lowering, name)]
        origins = {node.node.get_origin_node() for node in inner} - {None}
    else:
        # a pass that prepares the input of a library does not do the library's operations
        calls_of = [each for each in lowering.scheduler.nodes if each.is_extern()]
        others = {node.node.get_origin_node() for each in calls_of for node in each.get_nodes()}
        origins = {origin for node in inner for origin in node.node.origins} - others
    reads = {dep.name for node in inner for dep in node.read_writes.reads} - set(made)
    names = {node.get_name() for node in inner}
    users_of = {
        name: {user.get_name() for user in lowering.scheduler.name_to_buf[name].users}
        for name in made
        if name not in lowering.removed_buffers
    }
    outside = [name for name, users in users_of.items() if not users <= names]
    traces = [LINE.findall(origin.meta.get("stack_trace") or "") for origin in origins]
    lines = sorted({(int(trace[0][1]), trace[0][3].strip()) for trace in traces if trace})
    calls = {str(o.target).split(".")[1] for o in origins if o.op == "call_function"}
    return Pass(
        name=group.get_name(),
        lines=tuple(text for _, text in lines),
        operators=tuple(sorted(calls)),
        reads={name: size for name in sorted(reads) if (size := _buffer_bytes(lowering, name))},
        writes={name: size for name in sorted(outside) if (size := _buffer_bytes(lowering, name))},
        library=bool(group.is_extern()),
    )


def _parts(lowering: Any, name: str) -> list[Any]:
    """Return the buffers of a library call with several results, one buffer for each result."""
    users = (user.node for user in lowering.scheduler.name_to_buf[name].users)
    parts = (user for user in users if hasattr(user, "get_outputs") and _is_part(user))
    return [buffer for user in parts for buffer in user.get_outputs()]


def _buffer_bytes(lowering: Any, name: str) -> int:
    buffer = lowering.try_get_buffer(name)
    size = None if buffer is None else buffer.maybe_get_size()
    if size is None:  # a call with several results: each result has a separate buffer
        return 0
    return math.prod(int(length) for length in size) * buffer.get_dtype().itemsize


@contextlib.contextmanager
def _described_gpu(args: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    from torch._inductor import scheduler
    from torch._inductor.fx_passes import joint_graph
    from torch._inductor.runtime.hints import DeviceProperties
    from torch._subclasses import FakeTensorMode

    told = DeviceProperties(type="cuda", index=0, cc=90, **HOPPER)
    # A torch without CUDA takes any GPU for an AMD GPU, and reads the name of the architecture.
    names = {"name": "H100", "gcnArchName": "H100"}
    shown = types.SimpleNamespace(**HOPPER, **names, minor=0, total_memory=80 * 2**30)
    joint_graph.lazy_init(torch.device("cpu"))
    with contextlib.ExitStack() as stack:
        for where, name, value in (
            (DeviceProperties, "create", lambda device: told),
            (torch.cuda, "get_device_properties", lambda device=None: shown),
            (torch.cuda, "current_device", lambda: 0),
            (scheduler, "has_triton", lambda: True),
            (torch.utils._triton, "triton_hash_with_backend", lambda: ""),
            # Inductor traces its patterns once, on tensors of the device. The CPU's patterns are
            # the same.
            (joint_graph, "lazy_init", lambda device=None: None),
        ):
            stack.enter_context(mock.patch.object(where, name, value))
        stack.enter_context(FakeTensorMode())
        # these tensors require no gradient, because autograd would ask a real device for a stream
        yield tuple(
            torch.empty_strided(arg.shape, arg.stride(), dtype=arg.dtype, device="cuda:0")
            if isinstance(arg, Tensor)
            else arg
            for arg in args
        )


def loops(code: str) -> str:
    """Return the loops of a C++ module that Inductor wrote, in a readable form.

    The statements stay the same. Casts of numbers are left out, and so are conditions that are
    always true. Indentation replaces braces.
    """
    return "\n\n".join(_tidy(body) for body in KERNEL.findall(code))


def _tidy(body: str) -> str:
    body = re.sub(r"static_cast<(?:int64_t|float|double)>\(([^()]*)\)", r"\1", body)
    body = re.sub(r"(?<=\d)L\b", "", body).replace("at::vec::", "").replace("int64_t", "int")
    found: list[str] = []
    blocks: list[bool] = []  # for each open brace: whether its lines are indented further
    header = False
    for line in map(str.strip, body.splitlines()):
        if line == "{":
            blocks.append(header)
            header = False
        elif line == "}":
            blocks.pop()
        elif line and not line.startswith(("if(C10_LIKELY", "int tid")) and "div_error" not in line:
            found.append("    " * sum(blocks) + line)
            header = line.startswith(("for", "#pragma omp parallel", "#pragma omp single"))
    return "\n".join(found)
