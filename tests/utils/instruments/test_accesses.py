"""A kernel's accesses are recorded in order, and the kernel still works."""

from __future__ import annotations

import pytest
import torch

from utils.notebook.figures import mime_bundle

triton = pytest.importorskip("triton", reason="Triton has no build for this system")
import triton.language as tl  # noqa: E402

from utils import views  # noqa: E402
from utils.instruments.accesses import accesses  # noqa: E402
from utils.softmax import compile_kernel  # noqa: E402
from utils.views.kernel_ptx import draw, instructions, source_lines  # noqa: E402


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    total = tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, total, mask=mask)


@triton.jit
def shift_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i + 1, tl.load(x_ptr + i))


def test_each_load_and_store_of_each_program():
    x, y, out = torch.arange(6.0), torch.ones(6), torch.zeros(6)
    found = accesses(add_kernel, (2,), x, y, out, 6, BLOCK=4)
    assert [(one.program, one.kind, one.tensor) for one in found] == [
        (program, *what)
        for program in (0, 1)
        for what in (("load", "x_ptr"), ("load", "y_ptr"), ("store", "out_ptr"))
    ]
    assert [one.touched for one in found[:3]] == [(0, 1, 2, 3)] * 3
    assert [one.touched for one in found[3:]] == [(4, 5)] * 3
    assert found[3].elements == (4, 5, 6, 7)
    assert str(found[5]) == "program 1  store  out_ptr  4 5 [6] [7]"
    assert torch.equal(out, x + y)


def test_the_language_is_restored():
    from triton.runtime.interpreter import interpreter_builder

    before = interpreter_builder.create_masked_load
    accesses(shift_kernel, (1,), torch.zeros(5), BLOCK=4)
    with pytest.raises(TypeError):
        accesses(shift_kernel, (1,), torch.zeros(5))
    assert interpreter_builder.create_masked_load == before


def test_elements_are_counted_in_the_tensors_own_width_and_from_its_own_start():
    x = torch.arange(12, dtype=torch.float64)[4:]
    load, store = accesses(shift_kernel, (1,), x, BLOCK=4)
    assert load.touched == (0, 1, 2, 3)
    assert store.touched == (1, 2, 3, 4)
    assert x[:5].tolist() == [4, 4, 5, 6, 7]


def test_each_instruction_knows_its_line():
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    code = compile_kernel(add_kernel, types, {"BLOCK": 128})
    found, text = instructions(code.ptx), source_lines(add_kernel)
    assert text[3].strip().startswith("total =")
    of = {name: [one.line for one in found if name in one.text] for name in ("ld.global", "setp")}
    assert of == {"ld.global": [4, 4], "setp": [3]}
    assert [one.line for one in found if "st.global" in one.text] == [5]
    figure, alt = draw(text, found, 3)
    assert "Line 3, mask = i < n, became: setp.lt.s32" in alt
    assert mime_bundle(figure, alt=alt)["text/html"]
    with pytest.raises(ValueError, match="expected 1 to 5, got 6"):
        views.kernel_ptx(add_kernel, code, line=6)
