"""The driver of lab 02: it distinguishes a checkpoint from a plain call."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from utils.drivers.checkpointing import WRITES, checkpoints

INPUTS = [torch.randn(5, 3), torch.randn(3), torch.tensor([3, 0, 0])]
WANTED = True, True, False
WEIGHTS = [[torch.randn(3, 4), torch.randn(4, 3)]]
UPSTREAM = torch.randn(3, 3)


def called(function, *inputs):
    return function(*inputs)


def torchs(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=False)


def ask(way, *, count=True, upstreams=(UPSTREAM,), **more):
    return checkpoints(way, INPUTS, WANTED, WEIGHTS, upstreams, count=count, **more)


def test_saved_tensors_and_runs_of_the_function_are_counted():
    plain, again = ask(called), ask(torchs)
    assert (plain["runs"], again["runs"]) == ([1, 1], [1, 2])
    assert plain["alive"] > 0
    assert again["alive"] == 0


def test_it_computes_the_same_as_without_a_checkpoint():
    more = {"upstreams": (UPSTREAM, 2 * UPSTREAM), "old": 0.5, "dropout": 0.5, "computed": True}
    plain, again = ask(called, seed=3, **more), ask(torchs, seed=3, **more)
    for key in ("output", "gradients", "parameters", "drawn"):
        torch.testing.assert_close(again[key], plain[key])


def test_a_parameter_that_is_used_twice_gets_both_of_its_gradients():
    x = torch.randn(5, 3)
    found = checkpoints(torchs, [x], [True], WEIGHTS, [torch.ones(5, 3)], tied=True)
    first, second = (w.clone().requires_grad_() for w in WEIGHTS[0])
    (torch.tanh(x @ first) @ (second + first.T)).sum().backward()
    torch.testing.assert_close(found["parameters"][0], [first.grad, second.grad])


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("how", WRITES)
def test_a_write_to_an_input_is_refused(how, which):
    assert ask(torchs, written=(which, how, 0))["refused"] == 0
    assert ask(torchs, written=(-1, how, 0))["refused"] is None


def test_only_a_write_between_forward_and_backward_is_refused():
    assert ask(torchs, before=True)["refused"] is None
    found = ask(torchs, upstreams=(UPSTREAM, UPSTREAM), written=(0, "added to", 1))
    assert found["refused"] == 1
    assert len(found["gradients"]) == 1


def test_an_error_of_the_learners_code_is_raised_without_a_write():
    with pytest.raises(RuntimeError, match="does not require grad"):
        ask(lambda function, *inputs: function(*inputs).detach())
