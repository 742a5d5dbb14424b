"""A call of every view, with long words and large numbers if it takes any."""

from __future__ import annotations

import math
import operator
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from hood.learner.contents import PHASES
from utils import views
from utils.instruments.compiling import captured
from utils.instruments.traces import KINDS, drawn, recorded_step
from utils.instruments.world import Deadlock, Each, run
from utils.minigpt import MiniGPT, MiniGPTConfig

X = torch.arange(12.0).reshape(3, 4)
WORDS = ["<bos>", "<es>", "comprender", "<progressive>", "nosotros", "comprendiendo", "."]


# of the compiler


def half(x):
    return (x * 2 + 1).pow(2) / 4


def without_the_sum(gm):
    """The graph with x * 2 in place of x * 2 + 1."""
    for node in list(gm.graph.nodes):
        if node.target is operator.add:
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    return gm


def by_rows(x, gate):
    y = x * torch.sigmoid(gate)
    return y / y.sum(-1, keepdim=True)


def by_columns(x, gate):
    y = x * torch.sigmoid(gate)  # a comment
    return y / y.sum(0, keepdim=True)


def a_line_that_is_too_long(x, a_gate_with_a_name_of_many_letters):
    return x * torch.sigmoid(a_gate_with_a_name_of_many_letters) / (x.sum(-1, keepdim=True) + 1)


def names_of_the_length(x, k):
    return x * k


PAIR = [torch.randn(64, 48) for _ in range(2)]
CALLS = {f"{n} rows": (torch.ones(n, 6), 2) for n in (3, 4, 5, 1, 0, 7)} | {
    "a call with a name that is far too long": (torch.ones(3, 6).double(), 2)
}


# of kernels

HEAD = "\t.loc\t1 6 0 // kernel.py:6:0\n"
CALLED = "\t.loc\t2 263 15 // standard.py:263:15 @[ standard.py:293:36 @[ kernel.py:8:18 ] ]\n"
LONG = (
    HEAD
    + "\tld.param.b64 \t%rd1, [p];\n"
    + "\t.loc\t1 7 24 // kernel.py:7:24\n"
    + "\tmov.u32 %r1, 0;\n\t@%p1 ld.global.b32 { %r1 }, [ %rd1 ];\n" * 30
    + CALLED
    + "".join(f"\tadd.f32 %r{k}, %r{k}, %r1;\n\tshfl.sync %r{k};\n" for k in range(5))
    + "\tbar.sync 0;\n"
)


def kernel(x_ptr):
    x = x_ptr + 1
    return x.sum()


def kernel_steps():
    triton = pytest.importorskip("triton", reason="Triton has no build for this system")
    from tests.utils.views.test_kernels import double_rows

    assert triton
    x = torch.arange(48.0).reshape(8, 6).t()
    views.kernel_steps(double_rows, (6,), x, torch.empty(6, 8), 8, *x.stride(), BLOCK=8)


def odd(number):
    if number % 2 == 0:
        raise ValueError("an even number:\n  " + str(number))


def small(number):
    assert number < 4, "too large"


PROOFS = {
    "compare": odd, "gradgradcheck": small, "opcheck, transposed": odd, "compile": small,
    "gradcheck": odd, "opcheck": odd,
}  # fmt: skip


def softmax(batch):
    elements = batch * 32 * 600
    return {
        "LM head": (2 * 64 * elements, 4 * (elements + batch * 32 * 64 + 64 * 600)),
        "op by op": (5 * elements, 32 * elements),
        "one pass": (5 * elements, 8 * elements),
    }


# of worlds


def shift(rank, world, x, first):
    if rank in first:
        yield "send", (rank + 1) % world, x
    got = yield "recv", (rank - 1) % world
    if rank not in first:
        yield "send", (rank + 1) % world, x
    yield "compute", 0.5
    return (yield "all_reduce", got, "sum")


def stuck(**how):
    with pytest.raises(Deadlock) as raised:
        run(shift, 3, torch.ones(5), (0, 1, 2), **how)
    return raised.value


def tell(rank, world, x):
    for to in range(1, world) if rank == 0 else ():
        yield "send", to, x
    if rank:
        yield "recv", 0


def runs():
    return {
        "all send first": stuck(latency=1.0),
        "in turn": run(shift, 3, torch.ones(5), (1, 2), latency=1.0),
        "one tells all": run(tell, 8, Each([torch.ones(3)] * 8), latency=2e-5),
    }


def of(words):
    return [(word[0], int(word[1:])) for word in words.split()]


def all_forward(stages, micro):
    jobs = [*(("F", k) for k in range(micro)), *(("B", k) for k in range(micro))]
    return [jobs for _ in range(stages)]


ALTERNATING = [of("F0 F1 B0 F2 B1 B2"), of("F0 B0 F1 B1 F2 B2")]
WRONG = [of("F0 B0 F1 B1"), of("F0 F1 B0 B1")]


# of training and transformers

FALLING = [6.4 * 0.97**k for k in range(120)]
LEVELS = {"trigram": 1.26, "5-gram": 0.97}
POINTS = torch.linspace(-2, 2, 48)[:, None], 2 * torch.linspace(-2, 2, 48)[:, None] + 1
LINES = [(2 - 2 * 0.9**k, 1 - 0.9**k) for k in range(60)]
QUICK = [0.010 + 0.0001 * (k % 7) for k in range(40)]
SLOW = [2 * t for t in QUICK]


def gradients():
    torch.manual_seed(0)
    return [torch.randn(5000) * 2.0 ** torch.randint(-30, 6, (5000,))]


def maps(length=5, layers=2):
    torch.manual_seed(0)
    scores = torch.randn(layers, 4, length, length)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(-1)


def cache(config, words=5, rows=1, dtype=torch.float32):
    shape = rows, config.n_heads, words, config.d_model // config.n_heads
    return [(torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype))] * config.n_layers


def logits():
    torch.manual_seed(0)
    return 3 * torch.randn(600)


def lines_of_ones(x):
    return [row.sum().item() for row in x]


def at_once(x):
    return x.sum(-1)


def graph_of_a_layer():
    weight, bias = torch.ones(4, 3, requires_grad=True), torch.zeros(4, requires_grad=True)
    hidden = torch.tanh(torch.ones(5, 3) @ weight.T + bias)
    return (hidden * hidden + hidden).sum(), {"weight": weight}


def in_groups(program, down, across, group):
    first = program // (group * across) * group
    high = min(down - first, group)
    inside = program % (group * across)
    return first + inside % high, inside // high


OPS = [
    "aten::mm", "aten::mul.Tensor", "aten::relu", "aten::t", "aten::add_.Tensor", "aten::linear",
    "aten::matmul", "aten::reshape", "aten::softmax.int", "aten::_softmax",
    "aten::empty.memory_format", "aten::clone",
]  # fmt: skip
KEYS = [
    "FuncTorchBatched", "AutocastCPU", "AutogradCPU", "ADInplaceOrView", "Conjugate", "Python",
    "BackendSelect", "Meta", "SparseCPU", "CUDA", "CPU",
]  # fmt: skip


EXAMPLES = {
    "adamw_explorer": lambda: views.adamw_explorer([(-0.9) ** k * 1e-3 for k in range(120)]),
    "attention_heads": lambda: views.attention_heads([f"word{k}" for k in range(16)], maps(16)),
    "autograd_graph": lambda: views.autograd_graph(graph_of_a_layer()[0]),
    "backward_stepper": lambda: views.backward_stepper(
        {"c": "a * b", "d": "c + a", "L": "d ** 2"}, a=2.0, b=3.0
    ),
    "block_mask": lambda: views.block_mask(2404, 256),
    "broadcast_aligner": lambda: views.broadcast_aligner(X, (4,)),
    "cache_growth": lambda: views.cache_growth(
        cache(MiniGPTConfig(), 9), MiniGPTConfig(), prompt=5
    ),
    "causal_tiles": lambda: views.causal_tiles(4000, block_q=256, block_k=1024),
    "course_path": lambda: views.course_path(PHASES, here=1),
    "dispatch_bars": lambda: views.dispatch_bars(
        MiniGPT(MiniGPTConfig()), torch.zeros(1, 32, dtype=torch.int64)
    ),
    "dispatch_table": lambda: views.dispatch_table(OPS, KEYS),
    "dropout_modes": lambda: views.dropout_modes(nn.Dropout(), torch.ones(4)),
    "dtype_range": lambda: views.dtype_range(),
    "dtype_ruler": lambda: views.dtype_ruler(),
    "finite_difference_error": lambda: views.finite_difference_error(torch.exp, 1.0),
    "fitted_line": lambda: views.fitted_line(POINTS, POINTS, [(-1e3, -999.0), *LINES]),
    "flame_chart": lambda: views.flame_chart(recorded_step().events),
    "flops_by_operator": lambda: views.flops_by_operator(
        MiniGPT(MiniGPTConfig()), torch.zeros(2, 32, dtype=torch.int64)
    ),
    "fusion_map": lambda: views.fusion_map(
        {"by rows": by_rows, "by columns": by_columns, "long": a_line_that_is_too_long}, *PAIR
    ),
    "gradient_ruler": lambda: views.gradient_ruler(gradients()),
    "graph_rewrite": lambda: views.graph_rewrite(
        captured(half, PAIR[0])[0], without_the_sum(captured(half, PAIR[0])[0])
    ),
    "guard_counter": lambda: views.guard_counter(names_of_the_length, CALLS),
    "kernel_ptx": lambda: views.kernel_ptx(kernel, SimpleNamespace(ptx=LONG)),
    "kernel_steps": kernel_steps,
    "key_explorer": lambda: views.key_explorer("aten::mm", torch.ones(2, 3)),
    "loss_curves": lambda: views.loss_curves(
        {"never stopped": FALLING, "resumed": dict(enumerate(FALLING[80:], 81))}, levels=LEVELS
    ),
    "machine_report": lambda: views.machine_report(),
    "mask_builder": lambda: views.mask_builder(WORDS, new=7, padding=5, window=2),
    "memory_a_rank": lambda: views.memory_a_rank(
        {"embedding": 131072000, **{f"block {k}": 202383360 for k in range(32)}}, limit=80e9
    ),
    "memory_bars": lambda: views.memory_bars({"parameters": 10}),
    "memory_timeline": lambda: views.memory_timeline(
        recorded_step().events, recorded_step().allocations
    ),
    "message_lines": lambda: views.message_lines(runs()),
    "module_tree": lambda: views.module_tree(nn.Linear(2, 3)),
    "my_minigpt": lambda: views.my_minigpt(Linear=nn.Linear, LayerNorm=nn.BatchNorm1d),
    "next_word": lambda: views.next_word(logits(), [f"comprendiéramos{k}" for k in range(600)]),
    "online_softmax": lambda: views.online_softmax(
        [-12345.67, -math.inf, *(-1.2345 * (-1) ** k * k for k in range(30))], 4
    ),
    "pipeline_gantt": lambda: views.pipeline_gantt(
        {"GPipe": all_forward(8, 32), "1F1B": ALTERNATING, "with a mistake": WRONG}
    ),
    "port_difference": lambda: views.port_difference({"a": [1.0]}, {"a": [1.0]}),
    "proof_matrix": lambda: views.proof_matrix(
        {"right": 1, "bare kernel in backward": 2, "writes to its input": 6}, PROOFS
    ),
    "ring_stepper": lambda: views.ring_stepper([torch.randn(600, 64) * 1e4 for _ in range(8)]),
    "roofline": lambda: views.roofline(softmax, peak_flops=67e12, peak_bandwidth=4.8e12),
    "rotated_pairs": lambda: views.rotated_pairs(
        torch.arange(16) - 6.5, torch.ones(16), 10000.0, position=9, distance=9
    ),
    "row_lanes": lambda: views.row_lanes(601),
    "saved_bytes": lambda: views.saved_bytes(
        by_rows, *(one.clone().requires_grad_() for one in PAIR)
    ),
    "schedule_clip": lambda: views.schedule_clip([5 * v for v in FALLING], warmup=20),
    "share_map": lambda: views.share_map(x=X, t=X.t()),
    "step_counts": lambda: views.step_counts(
        {"row by row": lines_of_ones, "at once": at_once}, lambda n: (torch.ones(n, 8),), [1, 4, 64]
    ),
    "stride_explorer": lambda: views.stride_explorer(torch.randn(64, 600).t()),
    "tile_intensity": lambda: views.tile_intensity(
        65536, 128256, 16384, block_m=256, itemsize=4, peak_flops=67e12, peak_bandwidth=3.35e12
    ),
    "tile_order": lambda: views.tile_order(in_groups, 12, 12, group=5, at_once=7),
    "timing_spread": lambda: views.timing_spread({"before": [*SLOW, 0.9], "after": QUICK}),
    "two_lanes": lambda: views.two_lanes({kind: drawn(kind, 3, steps=1) for kind in KINDS}),
}
