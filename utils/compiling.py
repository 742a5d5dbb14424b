"""What `torch.compile` captured, believed, saved and wrote, as plain facts.

All that the course knows of the compiler's private interface is reached here. It was read on
torch 2.13; `tests/utils/test_compiling.py` names the part that broke when a version changes it.

Every function starts with an empty compiler (`torch._dynamo.reset`), so that what it finds depends
on its arguments alone.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import re
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor, fx

CHECKS = re.compile(r"\+- (?P<kind>[A-Z_]+): (?P<what>.*?)\s*(?:  # .*)?$")
LINE = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<name>.*)\n\s*(?P<text>.*)')
# The GPU that Inductor is told of: the figures of an H100's data sheet. None need be there.
HOPPER = {
    "multi_processor_count": 132,
    "major": 9,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
    "max_threads_per_block": 1024,
    "warp_size": 32,
}


# Dynamo: graphs and guards


def captured(function: Callable[..., Any], *args: Any) -> list[fx.GraphModule]:
    """Return the graphs that Dynamo makes of `function(*args)`, in the order in which they ran."""
    found: list[fx.GraphModule] = []
    _fresh(function, lambda graph, inputs: found.append(graph) or graph)(*args)
    return found


@dataclass(frozen=True)
class Kept:
    """One compiled version of a function, and what must hold for it to be used.

    Attributes:
        number: in which order it was compiled, from 0.
        code: the bytecode that replaced the function's own.
        checks: the guards as (kind, what is checked), in the order in which they are tried.
        refusal: called with the function's arguments by name, returns why this version may not be
            used for them; None where it may.
    """

    number: int
    code: types.CodeType
    checks: tuple[tuple[str, str], ...]
    refusal: Callable[..., str | None]


def kept(function: Callable[..., Any]) -> list[Kept]:
    """Return the versions that Dynamo keeps of a function, the oldest first."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    found = []
    for entry in _debug_get_cache_entry_list(inspect.unwrap(function).__code__):
        manager = entry.guard_manager
        checks = [match for line in str(manager).splitlines() if (match := CHECKS.search(line))]
        found.append(
            Kept(
                number=entry.compile_id.frame_compile_id,
                code=entry.code,
                checks=tuple((match["kind"], match["what"]) for match in checks),
                refusal=lambda manager=manager, **names: _refusal(manager, names),
            )
        )
    return sorted(found, key=lambda one: one.number)


@dataclass(frozen=True)
class Answer:
    """What became of one call of a compiled function.

    Attributes:
        graphs: how many graphs there are after it.
        refusals: for each version that was there before it, why it was refused; None for one that
            takes the call.
        used: the number of the version that ran; None where the function ran without the compiler.
        value: what the call returned.
    """

    graphs: int
    refusals: tuple[str | None, ...]
    used: int | None
    value: Any


def replay(
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    dynamic: bool | None = None,
) -> list[Answer]:
    """Compile `function`, make the calls one after the other, and say what became of each."""
    graphs: list[fx.GraphModule] = []
    compiled = _fresh(function, lambda graph, inputs: graphs.append(graph) or graph, dynamic)
    signature, answers = inspect.signature(function), []
    for args in calls:
        names = signature.bind(*args)
        names.apply_defaults()
        refusals = tuple(version.refusal(**names.arguments) for version in kept(function))
        before = len(graphs)
        with _quiet():
            value = compiled(*args)
        taken = next((k for k, reason in enumerate(refusals) if reason is None), None)
        used = len(refusals) if len(graphs) > before else taken
        answers.append(Answer(len(graphs), refusals, used, value))
    return answers


def _fresh(function: Callable[..., Any], backend: Any, dynamic: bool | None = None) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, dynamic=dynamic)


def _refusal(manager: Any, names: Mapping[str, Any]) -> str | None:
    found = manager.check_verbose(dict(names))
    if found.result:
        return None
    return re.sub(r"\s+# .*", "", str(found.verbose_code_parts[0]))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dynamo's log from the page: what it would say is asked for and shown on purpose."""
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


# AOTAutograd: forward and backward


@dataclass(frozen=True)
class Split:
    """A joint graph, and what a partitioner made of it.

    Attributes:
        joint: forward and backward in one graph.
        forward: the part that runs first; its last outputs are what is saved.
        backward: the part that runs when a gradient comes.
        saved: what the forward hands to the backward: name -> bytes.
        again: the names of nodes of the forward that stand in the backward, too.
    """

    joint: fx.Graph
    forward: fx.Graph
    backward: fx.Graph
    saved: dict[str, int]
    again: tuple[str, ...]


def split(
    function: Callable[..., Any], *args: Any, partition: str = "min-cut", budget: float = 1.0
) -> Split:
    """Return the joint graph of `function(*args)`, cut into a forward and a backward.

    partition: "plain" saves what the backward's nodes use; "min-cut", Inductor's, may compute
    again what is cheaper to compute than to keep. budget: 0 to 1, the part of the bytes that
    min-cut may save (`activation_memory_budget`).

    Raises:
        ValueError: for another partition, for several graphs, or where nothing needs a gradient.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch import config, partitioners
    from torch._inductor.decomposition import select_decomp_table

    cuts = {
        "plain": partitioners.default_partition,
        "min-cut": partitioners.min_cut_rematerialization_partition,
    }
    if partition not in cuts:
        raise ValueError(f"partition: expected one of {', '.join(cuts)}, got {partition!r}")
    found: list[tuple[fx.Graph, fx.GraphModule, fx.GraphModule, int]] = []

    def cut(joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **rest: Any) -> Any:
        whole = fx.Graph()
        whole.output(whole.graph_copy(joint.graph, {}))
        parts = cuts[partition](joint, inputs, num_fwd_outputs=num_fwd_outputs, **rest)
        found.append((whole, *parts, num_fwd_outputs))
        return parts

    backend = aot_autograd(
        fw_compiler=lambda graph, inputs: graph,
        bw_compiler=lambda graph, inputs: graph,
        partition_fn=cut,
        decompositions=select_decomp_table(),
    )
    with config.patch(activation_memory_budget=budget):
        _fresh(function, backend)(*args)
    if len(found) != 1:
        raise ValueError(f"expected one graph with a gradient, got {len(found)}")
    joint, forward, backward, outputs = found[0]
    results = forward.graph.output_node().args[0]
    saved = {node.name: nbytes(node) for node in results[outputs:] if isinstance(node, fx.Node)}
    names = {node.name for node in forward.graph.nodes if node.op == "call_function"}
    inside = [node.name for node in backward.graph.nodes if node.op == "call_function"]
    again = tuple(name for name in inside if name in names)
    return Split(joint, forward.graph, backward.graph, saved, again)


def nbytes(node: fx.Node) -> int:
    """The bytes of what a node gives; 0 for what is no tensor."""
    value = node.meta.get("val", node.meta.get("example_value"))
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 0


# Inductor: passes and code


@dataclass(frozen=True)
class Pass:
    """Operations that Inductor's scheduler put together, so that they share their loops.

    Attributes:
        name: the scheduler's, such as "op0_op1".
        lines: the lines of Python whose operations are in it, in the order of the file.
        operators: what it computes, by the operators' names.
        reads: buffers and inputs that it loads: name -> bytes.
        writes: buffers that it stores: name -> bytes. What lives only within a pass is not there.
        library: whether it is a call of a library, and not code that Inductor wrote.
    """

    name: str
    lines: tuple[str, ...]
    operators: tuple[str, ...]
    reads: dict[str, int]
    writes: dict[str, int]
    library: bool


@dataclass(frozen=True)
class Written:
    """One module that Inductor wrote.

    Attributes:
        code: its text.
        passes: the scheduler's groups, in order.
        backward: whether it is the backward's.
    """

    code: str
    passes: tuple[Pass, ...]
    backward: bool


def written(
    function: Callable[..., Any], *args: Any, device: str = "cpu", backward: bool = False
) -> list[Written]:
    """Return what Inductor writes for `function(*args)`; nothing is built and nothing runs.

    For "cuda" the tensors are fakes, and Inductor is told of an H100 (HOPPER): what it writes is
    what it would write there, as far as that depends on these figures, and forward alone. With
    `backward` the backward's module comes too, where an argument requires a gradient.

    Raises:
        ValueError: for a device other than "cpu" and "cuda".
    """
    from torch._functorch import config as functorch
    from torch._inductor import config as inductor
    from torch._inductor.graph import GraphLowering

    if device not in ("cpu", "cuda"):
        raise ValueError(f'device: expected "cpu" or "cuda", got {device!r}')
    found: list[Written] = []

    class NotBuilt:
        __file__ = key = ""

        @staticmethod
        def call(*_: Any) -> None:
            raise NotRun

    def instead(lowering: Any) -> type[NotBuilt]:
        code = lowering.codegen()[0].value
        passes = tuple(_pass(lowering, node) for node in lowering.scheduler.nodes)
        found.append(Written(code, passes, bool(lowering.is_backward)))
        return NotBuilt

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(GraphLowering, "compile_to_module", instead))
        # What is caught here must not be kept: another call would be given a module without code.
        stack.enter_context(inductor.patch(force_disable_caches=True))
        stack.enter_context(functorch.patch(force_non_lazy_backward_lowering=backward))
        stack.enter_context(_quiet())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # that the caches are off
        if device == "cuda":
            args = stack.enter_context(_described_gpu(args))
        with contextlib.suppress(NotRun):
            _fresh(function, "inductor")(*args)
    torch._dynamo.reset()
    return found


class NotRun(Exception):
    """Raised in place of running a module that was written and not built."""


def _pass(lowering: Any, group: Any) -> Pass:
    inner = group.get_nodes()
    made = [name for node in inner for name in node.get_buffer_names()]
    reads = {dep.name for node in inner for dep in node.read_writes.reads} - set(made)
    kept_names = {name for name in made if _outlives(lowering, name, {n.get_name() for n in inner})}
    origins = {origin for node in inner for origin in node.node.origins}
    lines = sorted({where for origin in origins if (where := _line(origin))})
    calls = sorted((o for o in origins if o.op == "call_function"), key=lambda o: o.name)
    return Pass(
        name=group.get_name(),
        lines=tuple(text for _, text in lines),
        operators=tuple(sorted({str(o.target).split(".")[1] for o in calls})),
        reads={name: _buffer_bytes(lowering, name) for name in sorted(reads)},
        writes={name: _buffer_bytes(lowering, name) for name in sorted(kept_names)},
        library=bool(group.is_extern()),
    )


def _outlives(lowering: Any, name: str, inside: set[str]) -> bool:
    """Whether a buffer is used outside its group, or is a result."""
    buffer = lowering.scheduler.name_to_buf[name]
    users = {user.get_name() for user in buffer.users}
    return not users <= inside and name not in lowering.removed_buffers


def _line(node: fx.Node) -> tuple[int, str] | None:
    """The number and text of the line of Python that a node comes from."""
    found = LINE.findall(node.meta.get("stack_trace") or "")
    return (int(found[-1][1]), found[-1][3].strip()) if found else None


def _buffer_bytes(lowering: Any, name: str) -> int:
    buffer = lowering.try_get_buffer(name)
    if buffer is None:
        return 0
    count = 1
    for size in buffer.get_size():
        count *= int(size)
    return count * buffer.get_dtype().itemsize


@contextlib.contextmanager
def _described_gpu(args: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Fakes of the tensors on a GPU that is only described, while Inductor writes for it."""
    from torch._inductor import scheduler
    from torch._inductor.fx_passes import joint_graph, post_grad
    from torch._inductor.runtime.hints import DeviceProperties
    from torch._subclasses import FakeTensorMode

    told = DeviceProperties(type="cuda", index=0, cc=90, **HOPPER)
    shown = types.SimpleNamespace(**HOPPER, minor=0, name="H100", total_memory=80 * 2**30)
    cpu = torch.device("cpu")
    joint_graph.lazy_init(cpu)
    post_grad.lazy_init(cpu)
    with contextlib.ExitStack() as stack:
        for where, name, value in (
            (DeviceProperties, "create", lambda device: told),
            (torch.cuda, "get_device_properties", lambda device=None: shown),
            (torch.cuda, "current_device", lambda: 0),
            (scheduler, "has_triton", lambda: True),
            (torch.utils._triton, "triton_hash_with_backend", lambda: ""),
            # Their patterns are traced on tensors of the device, once; on the CPU they are the same.
            (joint_graph, "lazy_init", lambda device=None: None),
            (post_grad, "lazy_init", lambda device=None: None),
        ):
            stack.enter_context(mock.patch.object(where, name, value))
        stack.enter_context(FakeTensorMode())
        yield tuple(_fake_on_gpu(arg) if isinstance(arg, Tensor) else arg for arg in args)


def _fake_on_gpu(tensor: Tensor) -> Tensor:
    """A fake like `tensor`. It needs no gradient: autograd asks a real device for a stream."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda:0")
