"""Live views: in a kernel they have controls and redraw; in a build they are one image."""

from __future__ import annotations

import html
from types import SimpleNamespace

import ipywidgets
import pytest
import torch

from hood import audience
from utils import views
from utils.notebook import screen_reader

WIDGET = "application/vnd.jupyter.widget-view+json"
X = torch.arange(12.0).reshape(3, 4)


@pytest.fixture
def published(monkeypatch):
    """What a notebook with a kernel would receive, as a list of MIME bundles."""
    found: list[dict] = []
    shell = SimpleNamespace(kernel=object())
    monkeypatch.delenv(audience.BUILD, raising=False)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.publish_display_data", found.append)
    return found


@pytest.fixture
def shown(published):
    """Calls a view and returns its box: controls, trouble, picture, spoken words."""

    def call(view, *args, **kwargs):
        made = set(ipywidgets.widgets.widget._instances)
        view(*args, **kwargs)
        boxes = [
            widget
            for key, widget in ipywidgets.widgets.widget._instances.items()
            if key not in made and isinstance(widget, ipywidgets.VBox)
        ]
        return [
            child.children[0] if type(child) is ipywidgets.Box else child
            for child in boxes[-1].children
        ]

    return call


def test_a_narrow_window_scrolls_a_live_picture_and_does_not_shrink_it_further(published):
    made = set(ipywidgets.widgets.widget._instances)
    views.stride_explorer(X)
    new = [w for key, w in ipywidgets.widgets.widget._instances.items() if key not in made]
    (window,) = [widget for widget in new if type(widget) is ipywidgets.Box]
    (picture,) = window.children
    assert window.layout.overflow == "auto"
    assert picture.layout.min_width == "560px"
    assert picture.layout.max_width == "100%"


@pytest.mark.parametrize("tensor", [torch.tensor(3.0), torch.zeros(0, 2)])
def test_nothing_to_move_means_only_the_image(published, tensor):
    views.stride_explorer(tensor)
    assert [set(bundle) for bundle in published] == [{"text/html", "text/plain"}]


def test_sliders_move_the_lit_element(shown):
    row, column, trouble, picture, spoken = shown(views.stride_explorer, X.t(), index=(0, 0))
    assert (row.max, column.max) == (3, 2)
    before = picture.value
    row.value, column.value = 3, 2
    assert picture.value != before
    assert bytes(picture.value).startswith(b"\xff\xd8")  # a JPEG
    assert "Index [3, 2] is 0 + 3·1 + 2·4 = element 11" in spoken.value
    assert screen_reader.SAID in spoken._dom_classes
    assert trouble.value == ""


def test_the_ruler_takes_another_number(shown):
    box, _, _, spoken = shown(views.dtype_ruler)
    box.value = 70000
    assert "too large for float16" in spoken.value


def test_an_invalid_shape_gives_a_message_and_can_be_corrected(shown):
    first, second, trouble, picture, spoken = shown(views.broadcast_aligner, (64, 1), (64,))
    before = picture.value
    second.value = "(batch,)"
    assert "batch" in html.unescape(trouble.value)
    assert picture.value == before
    second.value = "(3, 2)"
    assert trouble.value == ""
    assert "do not broadcast" in spoken.value


def test_the_batch_slider_asks_the_learners_function(shown):
    asked = []

    def points(batch):
        asked.append(batch)
        return {"op": (batch * 100, batch + 1000)}

    slider, _, _, spoken = shown(views.roofline, points, peak_flops=1e9, peak_bandwidth=1e9)
    slider.value = 1024
    assert asked[-1] == 1024
    assert "Batch 1024" in spoken.value


def test_the_stepper_walks_backward(shown):
    slider, _, picture, spoken = shown(views.backward_stepper, {"y": "x * x"}, x=3.0)
    assert (slider.value, slider.max) == (1, 2), "it begins with its first step"
    before = picture.value
    slider.value = 0
    assert picture.value != before
    assert "Forward is done: y = 9" in spoken.value


def test_the_mode_and_the_calls_can_be_switched(shown):
    mode, calls, _, picture, spoken = shown(views.dropout_modes, torch.nn.Dropout(0.5), X[0] + 1)
    before = picture.value
    calls.value = 3
    assert "mean of 3 calls" in spoken.value
    mode.value = False
    assert "In eval the layer does nothing" in spoken.value
    assert picture.value != before


def test_the_key_explorer_switches_contexts_and_tensors(shown):
    op, device, boxes, trouble, picture, spoken = shown(views.key_explorer, "aten::mm", X)
    switch = {box.description: box for box in boxes.children}
    before = picture.value
    switch["no_grad"].value = True
    assert "AutogradCPU runs first" in spoken.value
    switch["inference_mode"].value = True
    assert ". CPU runs first" in spoken.value
    assert picture.value != before
    switch["autocast"].value = True
    assert "AutocastCPU runs first" in spoken.value
    op.value = "aten::mul.Tensor"
    assert ". CPU runs first" in spoken.value
    device.value = "meta"
    assert ". Meta runs first" in spoken.value
    assert trouble.value == ""


def test_an_impossible_tensor_gives_a_message(shown):
    *_, boxes, trouble, picture, spoken = shown(views.key_explorer, "aten::mm", X.long())
    switch = {box.description: box for box in boxes.children}
    switch["requires_grad"].value = True
    assert "int64 can't require a gradient" in html.unescape(trouble.value)
    switch["requires_grad"].value = False
    assert trouble.value == ""


def test_the_depth_of_nested_calls_moves(shown):
    depth, lit, _, picture, spoken = shown(views.dispatch_bars, torch.matmul, X, X.t())
    lit.value = 2
    assert "aten::mm was dispatched at AutogradCPU" in spoken.value
    lit.value = 1
    assert (depth.min, depth.value) == (1, depth.max)
    before = picture.value
    depth.value = 1
    assert "more inside" in spoken.value
    assert picture.value != before


def test_many_calls_can_be_paged(shown):
    def many(x):
        for _ in range(50):
            x = x.neg()
        return x.relu()

    _, _, first, _, _, spoken = shown(views.dispatch_bars, many, X)
    assert (first.min, first.max) == (1, 51)
    assert "relu" not in spoken.value
    first.value = 51
    assert "Level 1: aten::relu" in spoken.value


def test_a_slot_of_the_table_can_be_chosen(shown):
    ops = [torch.ops.aten.mm.default, "aten::relu"]
    op, key, _, picture, spoken = shown(views.dispatch_table, ops, ["AutogradCPU", "CPU"])
    assert op.options == (("mm", "aten::mm"), ("relu", "aten::relu"))
    before = picture.value
    op.value, key.value = "aten::relu", "CPU"
    assert "aten::relu at CPU: a kernel, registered at" in spoken.value
    assert picture.value != before


@pytest.mark.slow(1)
def test_the_steps_of_a_kernel_move(shown):
    triton = pytest.importorskip("triton", reason="Triton has no build for this system")
    from tests.utils.views.test_kernels import copy_unmasked

    assert triton
    slider, _, picture, spoken = shown(
        views.kernel_steps, copy_unmasked, (2,), X[:2], torch.empty(3, 4), 4, BLOCK=4
    )
    assert (slider.min, slider.value, slider.max) == (1, 1, 4)
    before = picture.value
    slider.value = 4
    assert "Step 4 of 4: program 1 stores 4 elements into 1 sector of y_ptr." in spoken.value
    assert picture.value != before


def test_each_proof_runs_once_and_any_cell_can_be_read(shown):
    asked = []

    def positive(number):
        asked.append(number)
        assert number > 0

    version, proof, _, _, spoken = shown(
        views.proof_matrix, {"one": 1, "minus one": -1}, {"positive": positive, "any": print}
    )
    assert asked == [1, -1]
    assert (version.value, proof.value) == ("minus one", "positive")
    version.value, proof.value = "one", "any"
    assert "one, any: passes. No proof refuses it." in spoken.value
    assert asked == [1, -1]


def test_blocks_and_masks_move_on_a_sheet_of_one_height(shown):
    n, block, _, picture, spoken = shown(views.block_mask, 601, 1024)
    high = picture.value[20:24]  # of a PNG: its height in pixels
    n.value, block.value = 2404, 256
    assert "10 programs of 256 cover 2,404 elements" in spoken.value
    assert picture.value[20:24] == high


def doubled(x, factor=2.0):
    y = torch.sigmoid(x) * factor
    return y.square()


def centred(x):
    y = torch.sigmoid(x)
    return y - y.sum(0)


COMPILED = {
    "guard_counter": (
        lambda: (doubled, {"one": (X,), "two": (X.double(),)}),
        2,
        "So graph 2 is made.",
    ),
    "fusion_map": (
        lambda: ({"doubled": doubled, "centred": centred}, X),
        2,
        "Lines and passes. centred",
    ),
}


# the fusion map compiles what it shows
SLOW = {"fusion_map": pytest.mark.slow(10)}


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in COMPILED])
def test_the_compilers_views_move_on_a_sheet_of_one_height(name, shown, request):
    if name == "fusion_map":
        request.getfixturevalue("compiler")
    arguments, to, words = COMPILED[name]
    slider, _, picture, spoken = shown(getattr(views, name), *arguments())
    before = picture.value
    assert words not in spoken.value
    slider.value = to
    assert words in html.unescape(spoken.value)
    assert picture.value != before
    assert picture.value[20:24] == before[20:24]  # of a PNG: its height in pixels
