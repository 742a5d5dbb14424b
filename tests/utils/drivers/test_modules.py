"""The drivers of lab 03 on right and wrong modules."""

import pytest
import torch
from torch import nn

from hood.judge.catalogue import find_check
from utils.drivers import modules

RIGHT = find_check("MLP")[1].right
WIDTHS = 3, 4, 2


def a_state():
    torch.manual_seed(0)
    made = RIGHT(*WIDTHS)
    made.fit_inputs(torch.randn(9, 3) + 1)
    return dict(made.state_dict()), made


class Closure(RIGHT):
    """A module whose forward is a function that was made in `__init__`."""

    def __init__(self, *widths):
        super().__init__(*widths)
        self.through = lambda x: RIGHT.forward(self, x)

    def forward(self, x):
        return self.through(x)


class Plain(RIGHT):
    """A module with a tensor that is not registered."""

    def __init__(self, *widths):
        super().__init__(*widths)
        self.one = torch.ones(())

    def forward(self, x):
        return super().forward(x) * self.one


class Remembers(RIGHT):
    """A module that keeps its result in an attribute."""

    def forward(self, x):
        self.last = super().forward(x)
        return self.last


def test_a_module_made_on_meta_reports_its_state():
    state, made = a_state()
    x = torch.randn(5, 3)
    found = modules.revived(RIGHT, WIDTHS, state, x)
    assert torch.equal(found["output"], made(x))
    made.fit_inputs(x)
    assert torch.equal(found["scale"], made.scale)
    with pytest.raises(RuntimeError, match="meta"):
        modules.revived(Plain, WIDTHS, state, x)


def test_a_copy_is_independent_of_its_original():
    state, made = a_state()
    x = torch.randn(5, 3)
    found = modules.copied(RIGHT, WIDTHS, state, x)
    assert torch.equal(found["copy"], made(x))
    assert torch.equal(found["original"], made(x))
    assert not torch.allclose(modules.copied(Closure, WIDTHS, state, x)["copy"], made(x))
    with pytest.raises(RuntimeError, match="deepcopy"):
        modules.copied(Remembers, WIDTHS, state, x)


def test_x_is_overwritten_and_the_callers_tensor_stays():
    class Keeps(nn.Module):
        def __init__(self, *widths):
            super().__init__()

        def fit_inputs(self, x):
            self.centre = self.scale = x[0]

    x = torch.tensor([[1.0, 2.0, 3.0]])
    assert modules.overwritten(RIGHT, WIDTHS, x)["centre"].tolist() == [1.0, 2.0, 3.0]
    assert modules.overwritten(Keeps, WIDTHS, x)["centre"].tolist() == [7.0, 7.0, 7.0]
    assert x.tolist() == [[1.0, 2.0, 3.0]]


def test_counts_respect_frozen_and_tied_parameters():
    found = modules.counted(RIGHT, 3, ["hidden.weight", "output.bias"])
    assert found == {"fresh": 24, "frozen": 12, "thawed": 24, "tied": 15}
