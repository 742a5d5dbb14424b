"""Each view draws its input, describes the input in words, and stays small, even for odd inputs."""

from __future__ import annotations

import importlib
import io

import pytest
import torch
from PIL import Image
from torch import nn

from hood.learner.contents import PHASES
from tests.utils.views.examples import graph_of_a_layer
from tests.utils.views.sheets import check
from utils import views
from utils.notebook.figures import png
from utils.notebook.style import WIDTH
from utils.views._canvas import TITLE
from utils.views._floats import format_of
from utils.views._text_outlines import text_width
from utils.views.roofline import Roof, sentence, works
from utils.views.share_map import storages

pytestmark = pytest.mark.slow(10)

X = torch.arange(12.0).reshape(3, 4)
ROOF = Roof(1e12, 1e11)


def drawing(name: str):
    return importlib.import_module(f"utils.views.{name}").draw


ODD = {
    "transposed": (X.t(), (1, 2), "strides (1, 4)", "1·1 + 2·4 = element 9", "byte 36; it holds 9"),
    "sliced": (X[1:, ::2], (1, 1), "offset 4", "4 + 1·4 + 1·2 = element 10"),
    "expanded": (torch.arange(3)[:, None].expand(3, 5), (1, 2), "Stride 0", "5 indices reach"),
    "0-D": (X[1, 2], (), "no strides", "is 6 = element 6", "it holds 6"),
    "empty": (torch.zeros(3, 0), (), "reaches no element", "0 elements (0 B)"),
    "emptied": (X[:0], (), "reaches no element", "12 elements"),
    "1-D": (torch.arange(5), (3,), "element 3 of the storage, at byte 24"),
    "3-D": (torch.randn(2, 3, 4), (1, 2, 3), "element 23"),
    "5-D": (torch.zeros(2, 2, 3, 4, 30), (1, 1, 2, 3, 29), "element 1439"),
    "bool": (X > 3, (1, 1), "dtype bool", "it holds True"),
    "int8": (X.to(torch.int8), (2, 3), "at byte 11"),
    "complex": (torch.randn(3, 40, dtype=torch.complex64), (2, 39), "at byte 952"),
    "float8": (X.to(torch.float8_e5m2), (0, 1), "it holds 1"),
    "grad": (nn.Parameter(X.clone()), (0, 1), "it holds 1"),
    "nan": (torch.tensor([float("nan"), -float("inf")]), (0,), "it holds nan"),
    "meta": (X.to("meta"), (0, 1), "it has no value to show"),
    "windows": (torch.arange(9).unfold(0, 4, 1), (2, 1), "Overlapping windows"),
    "huge": (torch.zeros(1).expand(10**6, 10**6), (999_999, 5), "1,000,000,000,000 indices"),
    "wide": (torch.zeros(4000, 300).t(), (299, 3999), "element 1199999"),
    "long numbers": (torch.full((2, 2), 10**15), (1, 1), "it holds 1e15"),
}


@pytest.mark.parametrize("case", ODD)
def test_stride_explorer(case):
    tensor, index, *words = ODD[case]
    check(*drawing("stride_explorer")(tensor, index), *words)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.1, ["fraction 1001101;", "stored as 0.100097656 (normal)", "gap to the next number"]),
        (70000.0, ["too large for float16", "stored as inf (inf)"]),
        (1e-6, ["(subnormal)", "too near zero for float8_e4m3fn"]),
        (1.0, ["exact in each"]),
        (-3.3, ["sign 1"]),
        (0.0, ["(zero)"]),
        (float("nan"), ["nan has special bits"]),
        (float("-inf"), ["-inf has special bits"]),
        (1e300, ["inf"]),
        (5e-324, ["zero"]),
    ],
)
def test_dtype_ruler(value, words):
    check(*drawing("dtype_ruler")(value), *words)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(64, 1), (64,)], ["repeat each other", "(64, 64)", "(64,): repeated along dim -2"]),
        ([(32, 600), (600,)], ["(600,) is repeated to (32, 600)", "(32, 600): used as it is"]),
        ([(3, 4), (3, 4)], ["nothing is repeated"]),
        ([(8, 3, 5), (4, 5)], ["do not broadcast", "dim -2 has 3 and 4"]),
        ([(), ()], ["nothing is repeated"]),
        ([(1, 2, 3, 1, 50000, 1, 7), (3, 4, 1, 6, 1)], ["50000"]),
        ([(0, 3), (1,)], ["repeated to (0, 3)"]),
    ],
)
def test_broadcast_aligner(shapes, words):
    check(*drawing("broadcast_aligner")(shapes), *words)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ({"a": (1e6, 1e6)}, ["Memory is the bound", "a: 1 FLOP per byte", "at 100 GFLOP/s"]),
        ({"a": (1e9, 1e6)}, ["Compute is the bound"]),
        ({"a": (1e6, 1e6), "b": (1e9, 1e6, 2e-3)}, ["Below 10 FLOP", "500 GFLOP/s, 50% of that"]),
        ({f"b{k}": (k, k) for k in range(1, 9)}, ["b8"]),
        ({"cached": (1e6, 1e6, 1e-6)}, ["1000% of that"]),
    ],
)
def test_roofline(points, words):
    ops = works(points)
    check(*drawing("roofline")(ops, ROOF, sentence(ops, ROOF)), *words)


def test_share_map():
    found = storages({"x": X, "xt": X.t(), "copy": X.t().contiguous(), "none": torch.zeros(0)})
    words = ["x and xt share one storage; copy and none have their own", "bytes 0 to 47", "no byte"]
    check(*drawing("share_map")(found), *words)


def test_share_map_of_fine_bytes_and_long_names():
    weight = torch.zeros(600, 64)
    found = storages({"weight": weight, "a_name_that_is_much_too_long": weight[:, 3]})
    check(*drawing("share_map")(found), "with gaps")


def test_memory_bars():
    parts = {"parameters": 4096, "gradients": 4096, "AdamW's state": 8192, "b": 1, "a": 0}
    check(*drawing("memory_bars")(parts), "4 times the parameters", "gradients 4 KiB (25%)")


def test_dtype_range():
    forms = [format_of(dtype) for dtype in (torch.float16, torch.bfloat16)]
    check(*drawing("dtype_range")(forms), "from 6.1e-5 to 65504", "8 exponent and 7 fraction bits")


def test_autograd_graph():
    loss, named = graph_of_a_layer()
    words = ["7 steps to reach 2 leaves", "TanhBackward0 4 (result (5, 4))", "weight (4, 3)"]
    check(*drawing("autograd_graph")(loss, named), *words, "a leaf (4)", "140 B kept")
    check(*drawing("autograd_graph")(loss, named), "3 of the blue entries share their bytes")
    alone = drawing("autograd_graph")(torch.sin(named["weight"]), {})[1]
    assert "share" not in alone


def test_autograd_graph_after_backward_is_torchs_error():
    loss, named = graph_of_a_layer()
    loss.backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        drawing("autograd_graph")(loss, named)


def test_autograd_graph_of_a_long_chain_is_cut():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(40):
        y = torch.sin(y)
    check(*drawing("autograd_graph")(y, {}), "17 nodes more not shown")


STEPS = {"c": "a * b", "d": "c + a", "L": "d ** 2"}


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (0, ["Forward is done: L = 64", "Not visited yet: L, d, c, b, a"]),
        (1, ["begins at L"]),
        (3, ["Only d uses c: d's adjoint", "Not visited yet: b, a"]),
        (5, ["2 paths meet at a, and paths add: 64", "a: 16 · 1 + 16 · 3 = 64", "b: 16 · 2 = 32"]),
    ],
)
def test_backward_stepper(step, words):
    tape = importlib.import_module("utils.views.backward_stepper").record(STEPS, {"a": 2, "b": 3})
    check(*drawing("backward_stepper")(tape, step), *words)


def test_backward_stepper_reads_functions_and_repeated_names():
    stepper = importlib.import_module("utils.views.backward_stepper")
    tape = stepper.record({"y": "x * x", "z": "tanh(y) / 2 - -y"}, {"x": 1.5, "unused": 1.0})
    assert tape.inputs["y"] == {"x": (1.5, 1.5)}
    x = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    (torch.tanh(x * x) / 2 + x * x).backward()
    assert tape.adjoints["x"] == pytest.approx(x.grad.item())
    check(*stepper.draw(tape, 4), "unused: 0")


def test_each_use_is_a_path_of_its_own():
    stepper = importlib.import_module("utils.views.backward_stepper")
    tape = stepper.record({"y": "x * x"}, {"x": 5.0})
    check(*stepper.draw(tape, 2), "2 paths meet at x, and paths add: 10", "x: 1 · 5 + 1 · 5 = 10")
    far = {"y": "a * a * a + b", "z": "y * a / b / b"}
    tape = stepper.record(far, {"a": 2.0, "b": 4.0})
    a = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    ((a**3 + 4) * a / 16).backward()
    assert tape.adjoints["a"] == pytest.approx(a.grad.item())
    check(*stepper.draw(tape, 4), "4 paths meet at a")


def test_finite_difference_error():
    module = importlib.import_module("utils.views.finite_difference_error")
    exact, curves = module.measure(torch.exp, 1.0)
    central, one_sided, single = (module.STEPS[curve.best] for curve in curves)
    assert 1e-7 < central < 1e-4
    assert one_sided < central < single
    check(*module.draw(exact, curves, 1.0), "A large h truncates", "central, float32")


def test_finite_difference_error_of_a_line_has_no_truncation():
    module = importlib.import_module("utils.views.finite_difference_error")
    exact, curves = module.measure(lambda x: 2 * x, 0.0)
    check(*module.draw(exact, curves, 0.0), "the derivative at x = 0 is 2".replace("the", "The"))


def test_course_path():
    check(
        *drawing("course_path")(PHASES, {0}, 1),
        "You are here: 01",
        "00 Hello, done",
        "needs 02 and 04",
    )
    check(*drawing("course_path")(PHASES), "Each phase builds on")


def test_the_words_of_the_course_path_stay_in_their_boxes(monkeypatch):
    module, written = importlib.import_module("utils.views.course_path"), []

    def text(self, x, y, words, *_, size=14, mono=False):
        written.append((x, x + text_width(words, size=size, mono=mono), words, size))

    monkeypatch.setattr(module.Canvas, "text", text)
    module.draw(PHASES)
    shares = [link.box for link in module.links_of(PHASES, (), None)]
    boxes = {(x * WIDTH, (x + wide) * WIDTH) for x, _, wide, _ in shares}
    inside = [row[:3] for row in written if row[3] != TITLE]
    assert len(inside) >= 2 * len(PHASES)
    for left, right, words in inside:
        assert any(a < left < right < b for a, b in boxes), words


def test_the_boxes_of_the_course_path_link_their_lessons():
    module = importlib.import_module("utils.views.course_path")
    links = module.links_of(PHASES, (), None)
    assert [link.href for link in links] == [f"{phase.name}.ipynb" for phase in PHASES]
    assert links[7].words == "lesson 07, Training"
    boxes = [link.box for link in links]
    assert all(0 < x < x + w < 1 and 0 < y < y + h < 1 for x, y, w, h in boxes)
    assert len({(x, y) for x, y, _, _ in boxes}) == len(PHASES)  # no label is over another label


def test_loss_curves_say_what_y_counts(monkeypatch):
    module, said = importlib.import_module("utils.views.loss_curves"), []
    monkeypatch.setattr(
        module.Canvas, "text", lambda self, x, y, words, *a, **k: said.append(words)
    )
    runs = {"float32": {1: 2.0, 2: 1.0}, "in parts": {1: 2.0, 2: 1.1}}
    module.draw(runs, {}, 1)
    module.draw_bands(runs, {"in parts": {1: 0.1, 2: 0.1}}, 1)
    assert "loss" in said
    assert "distance of the loss from “float32”" in said


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: views.stride_explorer(X.to_sparse()), TypeError, "to_dense"),
        (lambda: views.stride_explorer([1, 2]), TypeError, "torch.tensor"),
        (lambda: views.stride_explorer(X, index=(9, 9)), IndexError, "out of range"),
        (lambda: views.share_map(), ValueError, "at least one"),
        (lambda: views.share_map(x=X, y=3), TypeError, "y must be a torch.Tensor"),
        (lambda: format_of(torch.int8), TypeError, "floating-point"),
        (lambda: views.broadcast_aligner("ab"), TypeError, "shape such as"),
        (lambda: views.broadcast_aligner(), ValueError, "at least one"),
        (lambda: views.roofline({}, peak_flops=1, peak_bandwidth=1), ValueError, "at least one"),
        (
            lambda: views.roofline({"a": (1, 1)}, peak_flops=0, peak_bandwidth=1),
            ValueError,
            "above 0",
        ),
        (lambda: views.autograd_graph([1]), TypeError, "torch.Tensor"),
        (lambda: views.autograd_graph(X), ValueError, "requires grad"),
        (lambda: views.autograd_graph(X.clone().requires_grad_()), ValueError, "a leaf"),
        (lambda: views.backward_stepper({}), ValueError, "1 to 12 steps, got 0"),
        (lambda: views.backward_stepper({"y": "x +"}, x=1.0), ValueError, "invalid syntax"),
        (lambda: views.backward_stepper({"y": "open(x)"}, x=1.0), ValueError, "or more of x"),
        (lambda: views.backward_stepper({"y": "z * x"}, x=1.0), ValueError, "'z' is not defined"),
        (lambda: views.backward_stepper({"x": "x * x"}, x=1.0), ValueError, "twice"),
        (lambda: views.backward_stepper({"y": "3 + 4"}, x=1.0), ValueError, "one or more of x"),
        (lambda: views.backward_stepper({"y": "log(x)"}, x=0.0), ValueError, "-inf"),
        (lambda: views.finite_difference_error(torch.cos, 0.0), ValueError, "another x"),
        (lambda: views.memory_bars({}), ValueError, "0 or more"),
        (lambda: views.memory_bars({"a": -1}), ValueError, "0 or more"),
        (lambda: views.block_mask(-1, 4), ValueError, "n: expected 0 to 16"),
        (lambda: views.block_mask(10, 3), ValueError, "BLOCK: expected 1, 2"),
    ],
)
def test_invalid_input_is_refused_in_words(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_the_learners_tensor_is_not_changed():
    x = torch.randn(3, 4, requires_grad=True)
    before, version = x.detach().clone(), x._version
    drawing("stride_explorer")(x.t(), (1, 1))
    assert torch.equal(x.detach(), before)
    assert x._version == version
    assert x.grad is None


def test_the_lit_element_moves_in_the_picture():
    draw = drawing("stride_explorer")
    one, other = (Image.open(io.BytesIO(png(draw(X, at)[0]))) for at in ((0, 0), (2, 3)))
    assert one.size == other.size
    assert one.tobytes() != other.tobytes()
