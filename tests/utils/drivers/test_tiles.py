"""The drivers of lab 11 count what code does, and leave models as they were."""

import pytest
import torch
import triton
import triton.language as tl

from utils.drivers import tiles
from utils.instruments.launching import launch
from utils.minigpt import MiniGPTConfig


@pytest.mark.parametrize(
    ("product", "largest"),
    [
        (lambda a, b: a @ b, 8),
        (lambda a, b: torch.einsum("ik,kj->ij", a, b), 8),
        (lambda a, b: (a[:, :, None] * b).sum(1), 8),
        (lambda a, b: a[:2, :3] @ b[:3], 3),
        (lambda a, b: torch.bmm(torch.zeros(4, 2, 2), torch.zeros(4, 2, 2)), 4),
        (lambda a, b: torch.zeros(4, 3).addmm_(a, b), 8),
        (lambda a, b: 2 * a, 0),
    ],
)
def test_the_largest_factor_of_a_product(product, largest):
    came = tiles.tiled(lambda a, b, block: product(a, b), torch.ones(4, 8), torch.ones(8, 3), 2)
    assert came["largest"] == largest


def test_sizes_of_attention():
    def whole(q, k, v, causal, block):
        scores = q @ k.mT
        return scores.softmax(-1) @ v, scores.logsumexp(-1)

    came = tiles.attention(whole, *torch.ones(3, 1, 1, 10, 2), False, 2)
    assert (came["largest"], came["flops"]) == (100, 2 * 2 * 10 * 10 * 2)


@triton.jit
def copy(x_ptr, y_ptr, count):
    i = tl.arange(0, 16)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < count), mask=i < count - 1)


def copied(x):
    y = torch.empty(len(x))
    launch(copy, (2,), x, y, len(x))
    return y


def test_loads_and_stores_are_counted_without_masked_lanes():
    came = tiles.launched(copied, torch.ones(5))
    assert (came["loads"], came["stores"], came["launches"]) == (10, 8, 1)


def test_a_place_that_nobody_writes_is_nan():
    assert tiles.computed(copied, torch.ones(5))["output"].isnan().tolist() == [False] * 4 + [True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_kernel_without_products_has_no_tensor_cores():
    assert tiles.tensor_cores(copied, torch.ones(5)) is False
    with pytest.raises(LookupError, match="no kernel was launched"):
        tiles.tensor_cores(lambda: None)


@pytest.mark.parametrize("causal", [False, True])
def test_the_given_forward_is_attention(causal):
    q, k, v = torch.randn(3, 1, 2, 5, 4, dtype=torch.float64)
    scores = q @ k.mT / 2
    if causal:
        scores = scores.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf)
    output, lse = tiles.attended(q, k, v, causal)
    assert torch.allclose(output, scores.softmax(-1) @ v)
    assert torch.allclose(lse, scores.logsumexp(-1))


def test_numbers_that_are_kept_for_a_backward():
    class Mixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, causal, block):
            ctx.save_for_backward(q, v)
            return q * v

        @staticmethod
        def backward(ctx, grad):
            q, v = ctx.saved_tensors
            return grad * v, None, grad * q, None, None

    q, k, v, upstream = torch.randn(4, 1, 1, 3, 2)
    came = tiles.backward(Mixed, q, k, v, True, 2, upstream, between=True)
    assert came["saved"] == 12
    assert torch.equal(came["gradients"][0], upstream * v)
    assert came["gradients"][1] is None


def test_a_changed_class_is_restored():
    from utils.minigpt.model import CausalSelfAttention

    before = CausalSelfAttention.forward

    def swap(model, attention):
        CausalSelfAttention.forward = lambda own, x: x

    config = MiniGPTConfig(7, 8, 2, 1, 12, 6)
    tokens = torch.tensor([[1, 2, 3]])
    came = tiles.swapped(swap, config, 0, tokens, tokens[:, :2])
    assert CausalSelfAttention.forward is before
    assert torch.equal(came["logits"], came["others"][0])
