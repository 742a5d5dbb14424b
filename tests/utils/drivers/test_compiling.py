"""The shipped modules equal Inductor's code for the functions named in their first lines."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._inductor import config

from utils.drivers import compiling as driver
from utils.instruments.compiling import written
from utils.softmax import softmax

pytestmark = pytest.mark.slow(20)


def mlp(x, w, v):  # x: (32, 64), w: (256, 64), v: (64, 256)
    h = F.gelu(F.linear(x, w), approximate="tanh")
    return x + F.linear(h, v)


def head(x, w, b):  # x: (16, 64), w: (600, 64), b: (600,)
    return softmax(F.linear(x, w, b))  # softmax is phase 05's


MLP, HEAD = ((32, 64), (256, 64), (64, 256)), ((16, 64), (600, 64), (600,))


def statements(text: str) -> list[str]:
    """The lines of a module without comments, which contain paths."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not re.match(r" *#( |$)", line)]


def tensors(shapes: tuple, *, gradient: bool) -> list[Tensor]:
    return [torch.randn(shape).requires_grad_(gradient) for shape in shapes]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("name", "function", "shapes"),
    [("mlp_backward_cpu", mlp, MLP), ("head_backward_cpu", head, HEAD)],
)
def test_the_backward_for_a_cpu_is_inductors(name: str, function: Callable, shapes: tuple) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)  # with one thread, no loop is parallel
    try:
        # use AVX2 even if a machine has wider vectors, because the text states the vectors' width
        with config.patch({"cpp.simdlen": 256}):
            found = written(function, *tensors(shapes, gradient=True), backward=True)
    finally:
        torch.set_num_threads(before)
    (backward,) = [module for module in found if module.backward]
    assert statements(backward.code) == statements(driver.written(name))


def test_the_module_for_a_gpu_is_inductors() -> None:
    (module,) = written(mlp, *tensors(MLP, gradient=False), device="cuda")
    assert statements(module.code) == statements(driver.written("mlp_gpu"))
