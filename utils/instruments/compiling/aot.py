"""The joint graph that AOTAutograd makes, and the tensors that a partitioner saves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx

from utils.instruments.compiling.dynamo import fresh


@dataclass(frozen=True)
class Split:
    """A joint graph, and the result of a partitioner."""

    joint: fx.Graph  # forward and backward in one graph
    forward: fx.Graph  # its last outputs are the saved tensors
    backward: fx.Graph
    # the tensors that the forward saves for the backward: name -> bytes. A view has the name of its
    # base.
    saved: dict[str, int]
    again: tuple[str, ...]  # the names of forward nodes that the backward repeats


def split(
    function: Callable[..., Any], *args: Any, partition: str = "min-cut", budget: float = 1.0
) -> Split:
    """Return the joint graph of `function(*args)`, cut into a forward and a backward.

    partition: "plain" saves the tensors that the backward's nodes use. "min-cut", which Inductor
        uses, may compute a value again if this is cheaper than saving it.
    budget: 0 to 1, the share of the bytes that min-cut may save (`activation_memory_budget`).

    Raises ValueError unless compiling `function(*args)` makes exactly one graph with a gradient.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch import config, partitioners
    from torch._inductor.decomposition import select_decomp_table

    cuts: dict[str, Callable[..., Any]] = {
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
        fresh(function, backend)(*args)
    if len(found) != 1:
        raise ValueError(f"expected one graph with a gradient, got {len(found)}")
    joint, forward, backward, outputs = found[0]
    results: Any = forward.graph.output_node().args[0]
    bases = [_base(node) for node in results[outputs:] if isinstance(node, fx.Node)]
    saved = {node.name: nbytes(node) for node in bases}
    names = {node.name for node in forward.graph.nodes if node.op == "call_function"}
    inside = [node.name for node in backward.graph.nodes if node.op == "call_function"]
    again = tuple(name for name in inside if name in names)
    return Split(joint, forward.graph, backward.graph, saved, again)


def _base(node: fx.Node) -> fx.Node:
    """Return the node whose memory a view shares. Return any other node unchanged."""
    while getattr(node.target, "is_view", False) and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node


def nbytes(node: fx.Node) -> int:
    """Return the bytes of a node's result; 0 if it is not a tensor."""
    value = node.meta.get("val", node.meta.get("example_value"))
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 0
