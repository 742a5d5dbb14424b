"""Compilation for an absent GPU: its code, and refusals."""

import re

import pytest
import torch
import triton
import triton.language as tl

from utils.instruments.launching import CompileError
from utils.softmax.compiled import compile_kernel, compiled

pytestmark = pytest.mark.slow(10)


def wide(text: str, what: str) -> int:
    """Loads ("ld") or stores ("st") in PTX that move several values at once."""
    return len(re.findall(rf"{what}\.global\S*\.v[24]\.", text))


def all_of(text: str, what: str) -> int:
    return len(re.findall(rf"{what}\.global", text))


def test_600_columns_are_loaded_16_bytes_at_a_time():
    kernel = compiled("sm_90", torch.float32, 600)
    assert (kernel.name, kernel.target, kernel.num_warps) == ("softmax_rows", "sm_90", 1)
    # 1024 lanes of 32 threads: 32 numbers a thread, 4 in a load
    assert all_of(kernel.ptx, "ld") == wide(kernel.ptx, "ld") == 8
    assert all_of(kernel.ptx, "st") == wide(kernel.ptx, "st") == 8
    assert ".target sm_90" in kernel.ptx
    assert "tt.reduce" in kernel.ttir
    assert "#ttg.blocked" in kernel.ttgir
    assert "define" in kernel.llir
    assert "shfl.sync" in kernel.ptx  # the reductions


def test_without_the_hint_they_are_loaded_one_by_one():
    kernel = compiled("sm_90", torch.float32, 600, align=1)
    assert wide(kernel.ptx, "ld") == wide(kernel.ptx, "st") == 0
    assert all_of(kernel.ptx, "ld") == 32


def test_the_wide_kernel_for_sm_80_with_its_machine_code():
    kernel = compiled("sm_80", torch.bfloat16, 131072, rows=1024)
    assert kernel.name == "softmax_loop"
    assert ".target sm_80" in kernel.ptx
    assert wide(kernel.ptx, "ld") == all_of(kernel.ptx, "ld") > 0
    assert kernel.stack == 0
    assert 0 < kernel.registers <= 64  # what 1024 threads can have
    assert "LDG.E" in kernel.sass


@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr, KIND: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(KIND)
    tl.store(y_ptr + at, x + x, mask=at < n)


def test_any_kernel_can_be_compiled_and_its_metadata_are_kept():
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    constants = {"BLOCK": 256, "KIND": tl.float16}
    kernel = compile_kernel(add, signature, constants, num_warps=2)
    assert kernel.name == "add"
    assert "add.f16" in kernel.ptx
    assert ".reqntid 64" in kernel.ptx


def test_tritons_message_about_a_wrong_kernel_is_shown():
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    with pytest.raises(CompileError, match=r"(?s)add did not compile for sm_90.*power of 2"):
        compile_kernel(add, signature, {"BLOCK": 100, "KIND": tl.float32})


def test_arguments_must_be_complete():
    with pytest.raises(ValueError, match="x_ptr, y_ptr, n, BLOCK, KIND: list each argument once"):
        compile_kernel(add, {"x_ptr": "*fp32"}, {"BLOCK": 256})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"target": "h100"}, 'expected "sm_80"'),
        ({"dtype": torch.int32}, "dtype: expected"),
        ({"align": 16}, "must divide the number of columns"),
        ({"align": 3}, "align must be 1, 2, 4, 8 or 16"),
    ],
)
def test_invalid_compilations_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        compiled(**arguments)
