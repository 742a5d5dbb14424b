"""Verdicts on wrong answers to lab 02 that look like a listed one, or nearly right."""

import pytest
import torch

from hood.judge.catalogue import find_check
from hood.judge.verdicts.judge import judge

ONCE = torch.autograd.function.once_differentiable


def run_with(function):
    """The lab's given `run_softmax`, on this Function."""

    def run_softmax(x, grad_output, direction=None):
        x = x.detach().requires_grad_()
        upstream = grad_output.detach().requires_grad_()
        y = function.apply(x)
        (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
        found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
        if direction is not None:
            found["of x"], found["of upstream"] = torch.autograd.grad(
                first, (x, upstream), direction
            )
        return found

    return run_softmax


def softmax_of(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


class MarkedOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = softmax_of(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @ONCE
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))


class NeitherInputNorOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = softmax_of(x)
        ctx.save_for_backward(y)
        return y.clone()

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))


class AskedByAnotherName(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = getattr(torch, "soft" + "max")(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))


@pytest.fixture(scope="module")
def softmax():
    return find_check("run_softmax")[1]


@pytest.mark.parametrize("function", [MarkedOnce, NeitherInputNorOutput])
def test_every_way_to_cut_backward_off_gets_one_name(softmax, function):
    verdict = judge(softmax, run_with(function), "s")
    assert (verdict.earned, verdict.misconceptions) == (2, ["cut off from x"])


def test_torchs_own_softmax_is_refused_under_any_name(softmax):
    verdict = judge(softmax, run_with(AskedByAnotherName), "s")
    assert verdict.earned == 0
    assert "torch's own `_softmax`" in verdict.parts[0].problem


def test_a_softmax_without_a_function_gets_a_message(softmax):
    def plain(x, grad_output, direction=None):
        return run_with(MarkedOnce)(x, grad_output) | {"node": "DivBackward0"}

    problem = judge(softmax, plain, "s").parts[0].problem
    assert problem == "the output does not come from your own Function."


@pytest.mark.slow(1)
def test_paths_of_a_play_are_in_words():
    said = {
        "scalar_adjoints": (lambda a, b: {"L": 1.0, "d": 1.0, "c": 1.0, "b": 1.0, "a": 1.0},
                            "the adjoint of `d`: the number is not"),
        "backward_order": (lambda graph, root: sorted(graph),
                           "the list should contain the nodes that the root depends on, each "
                           "exactly once"),
    }  # fmt: skip
    for name, (thing, words) in said.items():
        assert words in judge(find_check(name)[1], thing, "s").parts[0].problem
    wrong = judge(find_check("scalar_adjoints")[1], lambda a, b: (1.0, 2.0), "s").parts[0].problem
    assert wrong.endswith("expected a dict, got a tuple")


def test_low_precision_is_not_mistaken_for_another_order():
    def rounded(name, x, grad_output, h):
        f, x, found = getattr(torch, name), x.double(), []
        for i in range(x.numel()):
            nudge = torch.zeros(x.numel(), dtype=torch.float64)
            nudge[i] = h
            nudge = nudge.view(x.shape)
            pair = f(x + nudge).float() - f(x - nudge).float()
            found.append((grad_output * pair).sum() / (2 * h))
        return torch.stack(found).view(x.shape).double()

    parts = judge(find_check("numeric_vjp")[1], rounded, "s").parts
    assert not any("order" in part.problem for part in parts)
    assert parts[1].problem
