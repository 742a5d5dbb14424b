"""Views of modules: what is registered, what two modes do, where a port begins to differ."""

import importlib
import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.utils.views.sheets import check
from utils import views
from utils.minigpt import load_minigpt


def view(name):
    return importlib.import_module(f"utils.views.{name}")


def tree(module):
    return view("module_tree").draw(view("module_tree").read(module))


def test_the_tree_of_minigpt():
    words = ["MiniGPT: 179,544 parameters, 701 KiB in 38 tensors", "blocks.0.mlp.up: Linear with"]
    check(*tree(load_minigpt()), *words, "parameter weight (256, 64)")


def test_a_tied_parameter_counts_once_and_is_named():
    model = nn.ModuleDict({"words": nn.Embedding(6, 4), "head": nn.Linear(4, 6)})
    model["head"].weight = model["words"].weight
    words = ["30 parameters", "a tied tensor counts once", "weight (6, 4) is words.weight"]
    check(*tree(model), *words)


def test_unregistered_tensors_are_marked():
    class Lost(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(3, 3)]
            self.gain = torch.ones(3, requires_grad=True)
            self.register_buffer("seen", torch.zeros(3))

    words = ["0 parameters, 12 B; 3 tensors are not registered", "layers[0].weight (3, 3) not reg"]
    check(*tree(Lost()), *words, "buffer seen (3)")


def test_a_list_of_registered_tensors_holds_nothing_new():
    check(*tree(nn.LSTM(2, 3)), "84 parameters, 336 B in 4 tensors")


def test_a_buffer_that_is_there_twice_counts_once():
    norm = nn.BatchNorm1d(4, affine=False)
    check(
        *tree(nn.ModuleDict({"a": norm, "b": norm})), "40 B", "running_mean (4) is a.running_mean"
    )


@pytest.mark.parametrize("module", [nn.ReLU(), nn.Sequential(*map(nn.Linear, [1] * 60, [1] * 60))])
def test_empty_and_very_large_modules_are_drawn(module):
    figure, alt = tree(module)
    check(figure, alt, type(module).__name__)


def test_the_tree_does_not_change_the_module():
    model = nn.Linear(2, 2)
    before = model.weight
    tree(model)
    assert model.weight is before
    assert set(vars(model)) == set(vars(nn.Linear(2, 2)))


def modes(layer, x, training, calls=40):
    module = view("dropout_modes")
    return module.draw(x, module.outputs(layer, x, training, calls), training)


def test_dropout_in_both_modes():
    x = torch.linspace(0.5, 2.0, 24)
    told = modes(nn.Dropout(0.75), x, True)
    check(*told, "the others 4 times as large", "the mean of 40 calls differs from the input by")
    check(*modes(nn.Dropout(0.75), x, False), "In eval the layer does nothing")
    check(*modes(nn.Dropout(1.0), x, True, 1), "24 of 24 are gone.")
    check(*modes(nn.Identity(), x[:1], True, 1), "In training the layer does nothing")


def test_a_layer_keeps_its_mode_and_the_generator_its_state():
    layer = nn.Sequential(nn.Dropout(0.5)).eval()
    state = torch.get_rng_state()
    view("dropout_modes").outputs(layer, torch.ones(3), True, 2)
    assert not layer.training
    assert not layer[0].training
    assert torch.equal(torch.get_rng_state(), state)


def port(original, ours):
    module = view("port_difference")
    return module.draw(module.measure(original, ours))


def test_a_port_that_agrees_and_one_that_does_not():
    stages = {name: np.arange(1.0, 5.0) * k for k, name in enumerate("abcd", 1)}
    check(*port(stages, stages), "All 4 stages are the same to the last bit")
    near = {name: torch.from_numpy(array) * (1 + 1e-7) for name, array in stages.items()}
    check(*port(stages, near), "All 4 stages agree")
    bad = near | {"b": near["b"] + 0.1, "d": near["d"] * 2}
    check(*port(stages, bad), "b is the first stage that differs", "c 1e-7")


def test_unmeasurable_differences_count_as_different():
    module = view("port_difference")
    stages = {name: np.ones((2, 3)) for name in "abc"}
    ours = {"a": np.ones((3, 2)), "b": np.full((2, 3), np.nan)}
    found = module.measure(stages, ours)
    assert [stage.error for stage in found] == [math.inf] * 3
    assert [stage.why for stage in found] == [
        "shape (3, 2), not (2, 3)",
        "NaN or infinite",
        "not there",
    ]
    check(*module.draw(found), "The port differs from the first stage on: look into a")


def test_infinite_values_of_the_original_must_be_infinite_in_the_port():
    masked = np.array([1.0, 2.0, -np.inf])
    check(*port({"a": masked}, {"a": masked.copy()}), "to the last bit")
    check(*port({"a": masked}, {"a": masked * (1 + 1e-7)}), "agree")
    for wrong in ([1.0, 2.0, 7.0], [1.0, 2.0, np.inf], [5.0, 2.0, -np.inf], [1.0, np.nan, -np.inf]):
        check(*port({"a": masked}, {"a": np.array(wrong)}), "look into a")
    empty = {"a": np.full(3, np.nan)}
    check(*port(empty, empty), "to the last bit")


def test_a_missing_stage_is_not_reported_as_different():
    stages = {name: np.ones((2, 3)) for name in "abc"}
    check(*port(stages, {"a": stages["a"], "c": stages["c"]}), "The port has no b to compare, and")
    check(*port(stages, {"c": stages["c"]}), "The port has no a to compare.")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: views.module_tree([1]), TypeError, "nn.Module"),
        (lambda: views.dropout_modes(torch.nn.functional.dropout, torch.ones(1)), TypeError, "Mod"),
        (lambda: views.dropout_modes(nn.Dropout(), torch.ones(25)), ValueError, "1 to 24"),
        (lambda: views.port_difference({}, {}), ValueError, "1 to 40"),
    ],
)
def test_invalid_input_is_refused_in_words(call, error, says):
    with pytest.raises(error, match=says):
        call()
