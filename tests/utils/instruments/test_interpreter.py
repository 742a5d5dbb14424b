"""Kernels can run interpreted at any time, and the language is restored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError

from utils.instruments.interpreter import interpreted

pytestmark = pytest.mark.slow(9)

ROOT = Path(__file__).parents[3]


@triton.jit
def row_maximum(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + column, mask=column < columns, other=0.0)
    tl.store(y_ptr + tl.program_id(0), tl.max(tl.softmax(x) * 0 + tl.cdiv(columns, 2) + x, 0))


def language() -> list[dict]:
    places = (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base)
    values = (tl.core.block_type, interpreter.interpreter_semantic, interpreter.interpreter_builder)
    names = [dict(vars(place)) for place in (*places, *values, interpreter)]
    for one in names:  # the place of the last program stays
        one.pop("grid_idx", None)
        one.pop("grid_dim", None)
    return names


def test_a_kernel_with_library_functions_in_it():
    x = torch.arange(12.0).reshape(3, 4)
    y = torch.full((3,), -1.0)
    before = language()
    interpreted(row_maximum)[(3,)](x, y, 4, BLOCK=4, num_warps=2)
    assert y.tolist() == [5.0, 9.0, 13.0]
    assert language() == before


def test_the_language_is_restored_when_a_kernel_fails():
    before = language()
    with pytest.raises(triton.runtime.errors.InterpreterError):
        interpreted(row_maximum)[(3,)](torch.zeros(3, 4), None, 4, BLOCK=3)
    assert language() == before


@triton.jit
def beyond_32_bits(x_ptr, y_ptr):
    x = tl.load(x_ptr)
    tl.store(y_ptr, x + x)
    tl.store(y_ptr + 1, x * x - x)


def test_integers_overflow_without_a_check_that_nothing_reads(monkeypatch):
    asserted = []
    monkeypatch.setattr(TritonSemantic, "device_assert", lambda *given: asserted.append(given))
    before = interpreter.interpreter_builder.options
    x, y = torch.tensor([2**30 + 1], dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    interpreted(beyond_32_bits)[(1,)](x, y)
    assert torch.equal(y, torch.cat([x + x, x * x - x]))
    assert not asserted
    assert interpreter.interpreter_builder.options is before


def test_kernels_run_if_triton_interprets_anyway():
    code = (
        "import torch; from utils.softmax import softmax; x = torch.randn(3, 7);"
        "torch.testing.assert_close(softmax(x), x.softmax(-1))"
    )
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, check=True)


@triton.jit
def unmasked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n, other=0.0))


def test_a_store_beside_a_view_is_allowed_and_one_outside_of_its_storage_is_refused():
    x, storage = torch.ones(4), torch.zeros(8)
    interpreted(unmasked)[(1,)](x, storage[:3], 3, BLOCK=8)
    assert storage.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    with pytest.raises(
        triton.runtime.errors.InterpreterError,
        match="program 0 stores element 8 of the storage of y_ptr, which has 8 elements",
    ):
        interpreted(unmasked)[(1,)](x, storage[:3], 3, BLOCK=16)
    wrong = triton.runtime.errors.InterpreterError
    with pytest.raises(wrong, match="loads element 4 of the storage of x_ptr"):
        interpreted(unmasked)[(1,)](x, torch.zeros(16), 9, BLOCK=16)


@triton.jit
def masked_by_a_number(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = n > 0
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=inside, other=0.0), mask=inside)


def test_a_mask_of_one_value_holds_for_the_whole_block():
    x = torch.arange(4096.0)
    for n, expected in ((1, x), (0, torch.full((4096,), -1.0))):
        y = torch.full((4096,), -1.0)
        interpreted(masked_by_a_number)[(1,)](x, y, n, BLOCK=4096)
        assert torch.equal(y, expected)


@triton.jit
def masked_by_a_block_and_a_number(x_ptr, y_ptr, columns, rows, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = (at < columns) & (tl.program_id(0) < rows)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=inside, other=0.0), mask=inside)


@pytest.mark.parametrize("columns", [1, 3, 4])
def test_a_mask_of_a_block_and_a_number_masks(columns):
    x, y = torch.arange(1.0, columns + 1), torch.full((columns,), -1.0)
    interpreted(masked_by_a_block_and_a_number)[(2,)](x, y, columns, 1, BLOCK=4)
    assert torch.equal(y, x)


def test_a_store_beside_the_tensor_is_refused_under_such_a_mask_too():
    with pytest.raises(InterpreterError, match="stores element 4"):
        interpreted(masked_by_a_block_and_a_number)[(1,)](
            torch.ones(8), torch.empty(4), 8, 1, BLOCK=8
        )


@triton.jit
def product(a_ptr, b_ptr, c_ptr):
    i = tl.arange(0, 16)
    place = i[:, None] * 16 + i[None, :]
    tl.store(c_ptr + place, tl.dot(tl.load(a_ptr + place), tl.load(b_ptr + place)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_blocks_are_multiplied_as_numbers_and_not_as_bits(dtype):
    a, b = (i * torch.ones(16, 16, dtype=dtype) for i in (1.5, -2.25))
    c = torch.zeros(16, 16)
    interpreted(product)[(1,)](a, b, c)
    assert torch.equal(c, a.float() @ b.float())
