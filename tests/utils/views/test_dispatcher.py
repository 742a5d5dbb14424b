"""Views of the dispatcher: who wins a call, what a call passes, what is in the table, and FLOPs."""

from __future__ import annotations

import importlib
import itertools
from contextlib import ExitStack
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from tests.utils.notebook.test_style import contrast
from tests.utils.views.examples import KEYS, OPS
from tests.utils.views.sheets import check
from utils import views
from utils.instruments import dispatch
from utils.minigpt import MiniGPT, MiniGPTConfig
from utils.notebook.style import CARD, IDLE, INK, KERNEL, MUTED, PARAMETER
from utils.views import _slots
from utils.views._canvas import INNER
from utils.views._text_outlines import cut, text_width

pytestmark = pytest.mark.slow(9)

X = torch.ones(2, 3)


def view(name):
    return importlib.import_module(f"utils.views.{name}")


explorer, table, bars, flops = map(
    view, ("key_explorer", "dispatch_table", "dispatch_bars", "flops_by_operator")
)


def explore(tensor, op="aten::mm", **change):
    return explorer.draw(tensor, replace(explorer.situation(op, tensor), **change))


def linear_trace(*shape):
    return dispatch.trace(F.linear, torch.ones(shape), torch.ones(600, 64), torch.ones(600))


@pytest.fixture(scope="module")
def model_trace():
    return dispatch.trace(MiniGPT(MiniGPTConfig()), torch.zeros(1, 32, dtype=torch.int64))


@pytest.fixture(scope="module")
def counted():
    return flops.measure(MiniGPT(MiniGPTConfig()), torch.zeros(2, 32, dtype=torch.int64))


# key_explorer


BROUGHT = "brought by the tensor"
AWAY = f"{BROUGHT} and taken away by the thread"
STORIES = [
    (
        {},
        [
            "AutogradCPU runs first: VariableType_",
            f"AutocastCPU: {AWAY}; kernel",
            f"ADInplaceOrView: {BROUGHT} and added by the thread; falls through",
            "these do not: + requires_grad, + lazy conj, + no_grad and dtype float16",
        ],
    ),
    ({"no_grad": True}, ["AutogradCPU runs first", "Switched on: no_grad"]),
    ({"requires_grad": True}, ["AutogradCPU runs first"]),
    ({"inference_mode": True}, [". CPU runs first: RegisterCPU_0.cpp", f"AutogradCPU: {AWAY}"]),
    ({"inference_tensor": True}, [". CPU runs first", "AutogradCPU: not in the call"]),
    ({"autocast": True}, ["AutocastCPU runs first: autocast_mode.cpp"]),
    (
        {"autocast": True, "op": "aten::mul.Tensor"},
        ["AutogradCPU runs first", f"AutocastCPU: {BROUGHT}; falls through"],
    ),
    ({"mode": True}, ["PythonTLSSnapshot runs first, then AutogradCPU"]),
    ({"mode": True, "inference_mode": True}, ["runs first, then Python: PythonFallback"]),
    ({"device": "meta"}, ["AutogradMeta runs first", "AutocastCPU: taken away by the thread"]),
    ({"device": "cuda (fake)"}, ["then AutogradCUDA", f"Python: {BROUGHT}"]),
    ({"conj": True, "inference_mode": True, "op": "aten::relu"}, ["Conjugate runs first"]),
    ({"op": "aten::linear"}, ["AutogradCPU runs first: RegisterCompositeImplicitAutograd_"]),
]


@pytest.mark.parametrize(("change", "words"), STORIES)
def test_key_explorer(change, words):
    check(*explore(X, **change), *words)


SWITCHES = ("requires_grad", "inference_tensor", "conj", "inference_mode", "autocast", "mode")


@pytest.mark.parametrize("device", ["cpu", "meta", "cuda (fake)"])
def test_the_rows_are_the_keys_of_the_call_in_their_order(device):
    heights = set()
    for setting in itertools.product((False, True), repeat=len(SWITCHES)):
        now = replace(
            explorer.situation("aten::mul.Tensor", X),
            device=device,
            **dict(zip(SWITCHES, setting, strict=True)),
        )
        rows, runs = explorer.read(X, now)
        tensor = explorer.made(X, now)
        assert (tensor.requires_grad, tensor.is_inference(), tensor.is_conj()) == setting[:3]
        with ExitStack() as stack:
            if now.inference_mode:
                stack.enter_context(torch.inference_mode())
            if now.autocast and device == "cpu":
                stack.enter_context(torch.autocast("cpu"))
            elif now.autocast:
                continue  # this machine may have no such autocast
            if now.mode:
                stack.enter_context(explorer._Listens())
            expected = dispatch.call_keys(tensor)
            winner = dispatch.decide("aten::mul.Tensor", tensor).winner
        assert tuple(row.key for row in rows if row.left) == expected
        assert runs.first == winner
        heights.add(len(rows))
    assert len(heights) == 1


def test_the_switches_leave_the_thread_as_it_was():
    before = dispatch.thread_keys(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    explore(X, autocast=True, inference_mode=True, mode=True, no_grad=True)
    assert before == (
        dispatch.thread_keys(),
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
    )


def test_the_explorer_begins_in_the_callers_contexts():
    with torch.inference_mode(), torch.autocast("cpu"):
        start = explorer.situation("aten::mm", X)
    assert (start.inference_mode, start.autocast, start.no_grad) == (True, True, False)
    with torch.no_grad(), explorer._Listens():
        start = explorer.situation(torch.ops.aten.mm.default, X.half().requires_grad_())
    assert (start.op, start.no_grad, start.mode, start.requires_grad) == (
        "aten::mm",
        True,
        True,
        True,
    )
    assert start.dtype == torch.float16


def test_a_tensor_of_another_kind_keeps_its_own_keys():
    sparse = X.to_sparse()
    check(*explore(sparse), "SparseCPU: brought by the tensor; kernel from RegisterSparseCPU")
    check(*explore(sparse, device="cpu"), "AutogradCPU runs first")
    with pytest.raises(ValueError, match="Only an ordinary tensor"):
        explore(sparse, conj=True)
    with pytest.raises(ValueError, match="int64 can't require a gradient"):
        explore(torch.ones(2, dtype=torch.int64), requires_grad=True)


def test_an_operator_that_nobody_can_run():
    with torch.library._scoped_library("hood_views", "DEF") as library:
        library.define("nothing(Tensor x) -> Tensor")
        told = explore(X, op="hood_views::nothing", inference_mode=True)
        check(*told, "the call fails", "CPU: brought by the tensor; nothing.")


# dispatch_bars


def test_dispatch_bars_of_a_linear_layer():
    calls = linear_trace(2, 8, 64)
    every = [call for top in calls for _, call in top.walk()]
    check(
        *bars.draw(calls, bars.fitting(calls)),
        f"{len(every)} calls, 4 deep: 4 pass autograd's kernel",
        "Level 1: aten::linear (2, 8, 64) (600, 64) (600,), AutogradCPU (composite).",
        "Level 2: aten::view (2, 8, 64), AutogradCPU to ADInplaceOrView to CPU.",
        "Level 2: aten::addmm (600,) (16, 64) (64, 600), AutogradCPU to CPU.",
    )
    check(*bars.draw(calls, 1), f"AutogradCPU (composite), {len(every) - 1} more inside.")


def test_one_call_is_described_with_its_keys_its_winner_and_the_files():
    calls = linear_trace(2, 8, 64)
    inside = [call.name for _, call in calls[0].walk()]
    keys = "dispatched at AutogradCPU, ADInplaceOrView, BackendSelect and CPU: AutogradCPU"
    composite = f"aten::linear was {keys} (composite, aten/src/ATen/RegisterCompositeImplicitAuto"
    for lit, depth in ((0, 4), (9, 1)):  # the last of those that are drawn
        check(*bars.draw(calls, depth, lit=lit), composite)
    check(
        *bars.draw(calls, 4, lit=inside.index("aten::addmm")),
        f"aten::addmm was {keys} (autograd kernel, torch/csrc/autograd/generated/VariableType_",
        "then CPU (kernel, aten/src/ATen/RegisterCPU_",
    )
    check(
        *bars.draw(calls, 4, lit=inside.index("aten::expand")),
        "aten::expand was dispatched at BackendSelect and CPU: CPU (",
    )


def test_functions_other_than_operators_are_not_dispatched():
    def backward():
        torch.ones(2, requires_grad=True).relu().sum().backward()

    calls = dispatch.trace(backward)
    nodes = [call for call in calls if not call.path]
    check(*bars.draw([*nodes, *calls], 1), "is not an operator: nothing is looked up. Level 1")


def test_the_bars_are_the_calls_and_omitted_ones_are_counted(model_trace):
    total = sum(1 for top in model_trace for _ in top.walk())
    for depth, first in itertools.product((1, 2, 9), (0, 7, len(model_trace) - 1)):
        shown = bars.bars(model_trace[first:], depth)
        assert len(shown) <= bars.MOST
        assert max(bar.depth for bar in shown) < depth
        outer = [bar for bar in shown if bar.depth == 0]
        assert [bar.call for bar in outer] == list(model_trace[first:][: len(outer)])
        assert sum(bar.rows for bar in outer) == len(shown)
        for bar in shown:
            assert bar.rows + bar.hidden == sum(1 for _ in bar.call.walk())
    assert total > 300
    assert bars.fitting(model_trace) == 1


def test_dispatch_bars_of_a_model(model_trace):
    calls = len(model_trace)
    figure, alt = bars.draw(model_trace, 9, 4, bars.MOST)
    check(figure, alt, "4 deep", "Level 1: aten::layer_norm (1, 32, 64)")
    assert (
        figure.get_figheight() == bars.draw(model_trace, 1, calls - 1, bars.MOST)[0].get_figheight()
    )


def test_bars_lie_inside_their_callers_and_over_nobody_else(model_trace):
    for calls in (model_trace, linear_trace(2, 8, 64)):
        shown = bars.bars(calls, 9)
        tops = bars._tops(shown, 0.0)
        boxes = [bars._box(shown, tops, k) for k in range(len(shown))]
        for k, (bar, (x, y, wide, high)) in enumerate(zip(shown, boxes, strict=True)):
            for x2, y2, wide2, high2 in boxes[k + 1 : k + bar.rows]:
                assert x < x2
                assert x2 + wide2 < x + wide
                assert y + bars.BAR <= y2
                assert y2 + high2 < y + high
            after = boxes[k + bar.rows :]
            assert all(y + high < y2 for _, y2, _, _ in after)


def test_a_composite_is_one_colour_and_each_layer_has_its_own():
    assert len({kind.fill for kind in _slots.LAYERS}) == len(_slots.LAYERS)
    slots = dispatch.table("aten::linear")
    assert {_slots.layer(slots[key]) for key in ("CPU", "AutogradCPU")} == {_slots.OPENED}
    slots = dispatch.table("aten::t")
    found = [_slots.layer(slots[key]) for key in ("AutogradCPU", "ADInplaceOrView", "CPU")]
    assert found == [_slots.AUTOGRAD, _slots.VIEWS, _slots.BACKEND]
    assert _slots.layer(dispatch.table("aten::mm")["AutocastCPU"]) is _slots.AUTOCAST
    assert _slots.layer(dispatch.table("aten::mm")["Python"]) is _slots.ELSE


# dispatch_table


def test_dispatch_table():
    check(
        *table.draw(OPS, KEYS, "aten::mm", "AutogradCPU"),
        "4 of 12 operators are composites",
        "aten::mm at AutogradCPU: an autograd kernel, registered at torch/csrc/autograd/generated/",
        "aten::reshape: ",
        "composite at AutogradCPU, Meta, SparseCPU, CUDA and CPU",
        "aten::t: kernel at FuncTorchBatched and ADInplaceOrView; falls through at AutocastCPU",
    )
    check(*table.draw(["aten::mm"], ["Lazy"], "aten::mm", "Lazy"), "has its own kernel", "Lazy: ")


def test_the_table_says_what_a_slot_holds():
    at_cuda = table.in_words("aten::relu", "CUDA")
    assert ("aten::relu at CUDA: nothing." in at_cuda) is not torch.backends.cuda.is_built()
    assert "fall through" in table.in_words("aten::mul.Tensor", "AutocastCPU")
    assert table.in_words("aten::linear", "CPU").startswith("aten::linear at CPU: a composite, reg")


def test_each_kind_of_slot_has_a_colour_and_a_mark_of_its_own():
    shown = [*_slots.KINDS.values(), _slots.FALLS_THROUGH, _slots.NOTHING, _slots.OTHER]
    assert len({kind.fill for kind in shown}) == len({kind.mark for kind in shown}) == len(shown)
    assert set(_slots.KINDS) == set(dispatch.KINDS.values())


# flops_by_operator


def test_flops_by_operator(counted):
    at = counted.lengths.index(32)
    assert counted.flops[at] == {"addmm": 2 * 8_749_056, "bmm": 2 * 524_288}
    check(
        *flops.draw(counted, 32),
        "Attention is 5.7% of the FLOPs at 32 tokens, half or more from 534 on.",
        "bmm: 1,048,576 FLOP, 5.7%, at 32 tokens; 1,073,741,824 at 1024.",
    )


def test_the_count_is_that_of_pytorchs_own_counter_and_of_real_tensors():
    model = MiniGPT(MiniGPTConfig())
    found = flops.measure(model, torch.zeros(3, 7, dtype=torch.int64))
    for length in (1, 7, 32):
        tokens = torch.zeros(3, length, dtype=torch.int64)
        with FlopCounterMode(display=False) as theirs:
            model(tokens)
        counts = found.flops[found.lengths.index(length)]
        assert sum(counts.values()) == theirs.get_total_flops()
        assert counts == flops.count_products(model, tokens)


class Fused(nn.Module):
    """A model with a config, whose attention is PyTorch's own and whose layers have no bias."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.context, config.d_model)
        self.out = nn.Linear(config.d_model, 10, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)[:, None]
        return self.out(F.scaled_dot_product_attention(x, x, x)[:, 0])


def test_fused_attention_is_counted_too():
    found = flops.measure(Fused(MiniGPTConfig()), torch.zeros(2, 8, dtype=torch.int64))
    counts = found.flops[found.lengths.index(8)]
    assert counts == {"bmm": 2 * 2 * (2 * 8 * 8 * 64), "mm": 2 * 2 * 8 * 64 * 10}
    tokens = torch.zeros(2, 8, dtype=torch.int64)
    assert flops.count_products(Fused(MiniGPTConfig()), tokens) == counts


class Cubed(nn.Module):
    """A model whose products grow as the cube of the length."""

    config = MiniGPTConfig()

    def forward(self, tokens):
        square = torch.ones(len(tokens), tokens.shape[1], tokens.shape[1])
        return square @ square


def test_counts_that_no_parabola_fits_are_refused():
    with pytest.raises(ValueError, match="not a polynomial of degree 2"):
        flops.measure(Cubed(), torch.zeros(1, 4, dtype=torch.int64))


def test_without_a_product_of_activations_attention_is_never_half():
    found = flops.Counted(1, (1, 2, 4), ({"mm": 10}, {"mm": 20}, {"mm": 40}))
    check(*flops.draw(found, 2), "Attention is 0.0% of the FLOPs at 2 tokens, never half.")


# all


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: views.key_explorer("aten::mm", [1]), TypeError, "torch.Tensor"),
        (lambda: views.key_explorer("aten::mmm", X), LookupError, "no operator 'aten::mmm'"),
        (lambda: views.dispatch_bars(lambda x: x, X), ValueError, "no operator was called"),
        (lambda: views.dispatch_table([], ["CPU"]), ValueError, "1 to 20"),
        (lambda: views.dispatch_table(["aten::mm"], map(str, range(15))), ValueError, "got 15"),
        (lambda: views.dispatch_table(["aten::mmm"], ["CPU"]), LookupError, "no operator"),
        (lambda: views.flops_by_operator(nn.Linear(2, 2), X), TypeError, "MiniGPT"),
        (lambda: views.flops_by_operator(MiniGPT(), X[0]), ValueError, "(batch, length)"),
        (lambda: views.flops_by_operator(MiniGPT(), torch.zeros(1, 2000)), ValueError, "to 1024"),
    ],
)
def test_invalid_input_is_refused_in_words(call, error, says):
    with pytest.raises(error, match=says.replace("(", r"\(").replace(")", r"\)")):
        call()


def test_words_can_be_read_on_every_background():
    shown = [*_slots.KINDS.values(), _slots.NOTHING, _slots.FALLS_THROUGH, _slots.OTHER]
    for kind in (*shown, *_slots.LAYERS):
        assert contrast(kind.fill, kind.ink) >= 4.5, kind
    for ground in (CARD, IDLE, KERNEL.tint, PARAMETER.tint):
        assert contrast(MUTED, ground) >= 4.5
        assert contrast(INK, ground) >= 7


def test_long_names_are_cut_in_the_middle():
    name = "RegisterCompositeExplicitAutogradNonFunctional_0.cpp"
    short = cut(name, 200)
    assert short.startswith("Register")
    assert short.endswith("_0.cpp")
    assert text_width(short) <= 200
    assert cut(name, INNER) == name
