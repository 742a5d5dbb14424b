"""The inputs of lab 10's drivers: buckets of parameters, and pieces of a list of tensors."""

from __future__ import annotations

import pytest
import torch

from utils.drivers import distributed as driver

SIZES = (3, 2, 5, 1)  # numbers of float32: 12, 8, 20 and 4 bytes


@pytest.mark.parametrize(
    ("most", "lengths"),
    [
        (1, [[3], [2], [5], [1]]),
        (12, [[3], [2], [5], [1]]),
        (19, [[3], [2], [5], [1]]),
        (20, [[3, 2], [5], [1]]),
        (24, [[3, 2], [5, 1]]),
        (1000, [[3, 2, 5, 1]]),
    ],
)
def test_a_bucket_takes_parameters_that_fit(most, lengths):
    parameters = [torch.zeros(size, requires_grad=True) for size in SIZES]
    found = driver.buckets(iter(parameters), most)
    assert [[len(p) for p in bucket] for bucket in found] == lengths
    assert all(a is b for a, b in zip(sum(found, []), parameters, strict=True))


def test_no_parameters_fill_no_bucket():
    assert driver.buckets([], 100) == []


@pytest.mark.parametrize(("world", "size"), [(1, 6), (2, 3), (4, 2), (5, 2), (7, 1)])
def test_pieces_are_equal_and_padded_at_the_end(world, size):
    tensors = [torch.arange(1.0, 5.0).reshape(2, 2).requires_grad_(), torch.tensor([5.0, 6.0])]
    found = driver.pieces(tensors, world)
    assert [tuple(piece.shape) for piece in found] == [(size,)] * world
    flat = torch.cat(found)
    assert flat[:6].tolist() == [1, 2, 3, 4, 5, 6]
    assert not flat[6:].any()
    assert not flat.requires_grad


def test_the_formulas_of_a_layer_are_autograds():
    h, weight = torch.randn(5, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    z, above = h @ weight.T, torch.randn(5, 2)
    want = torch.autograd.grad(z, (weight, h), above)
    found = driver.linear_backward(h.detach(), weight.detach(), above)
    assert all(torch.allclose(a, b) for a, b in zip(found, want, strict=True))
