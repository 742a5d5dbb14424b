"""Kernels are launched on the tensors' device, recorded, and compiled for an absent GPU."""

import re

import pytest
import torch
import triton
import triton.language as tl

from utils.instruments import launching
from utils.instruments.launching import CompileError, launch, ptx_of, recorded_launches
from utils.softmax.compiled import compile_kernel

pytestmark = pytest.mark.slow(6)

TWO = tl.constexpr(2)
LOW = tl.constexpr(-float("inf"))
PLAIN = 2


@triton.jit
def doubled(x):
    return x * TWO


@triton.jit
def row_top(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    """The maximum of a row, twice, by a method, a helper and constants."""
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + column, mask=column < columns, other=LOW)
    tl.store(y_ptr + tl.program_id(0), doubled(x.max(0)))


@triton.jit
def with_a_global(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + column, mask=column < columns, other=0.0)
    tl.store(y_ptr + tl.program_id(0), tl.max(x, 0) * PLAIN)


@triton.jit
def with_numpy(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + column, mask=column < columns, other=0.0)
    tl.store(y_ptr + tl.program_id(0), float(x.handle.data.max()))


def launched(kernel, columns=5, **options):
    x = torch.arange(3.0 * columns).reshape(3, columns)
    y = torch.zeros(3)
    with recorded_launches() as found:
        launch(kernel, (3,), x, y, columns, x.stride(0), BLOCK=8, **options)
    return found[0], y


@pytest.mark.parametrize(
    "around",
    [
        triton.autotune([triton.Config({"BLOCK": 8})], key=["columns"]),
        triton.heuristics({"BLOCK": lambda arguments: 8}),
    ],
)
def test_autotuning_and_heuristics_are_refused_in_a_sentence(around):
    kernel = around(row_top)
    with pytest.raises(TypeError, match=f"got a {type(kernel).__name__} around it. Remove that"):
        launch(kernel, (3,), torch.zeros(3, 5), torch.zeros(3), 5, 5)


def test_a_kernel_with_a_method_a_helper_and_constants_runs_and_compiles():
    found, y = launched(row_top, num_warps=2)
    assert y.tolist() == [8.0, 18.0, 28.0]
    assert (found.grid, found.num_warps, found.arguments["columns"]) == ((3,), 2, 5)
    text = ptx_of(found, "sm_80")
    assert ".target sm_80" in text
    assert ".reqntid 64" in text
    assert isinstance(doubled, triton.runtime.jit.JITFunction)  # as it was before the launch


def test_a_kernel_is_compiled_once_for_all_arguments_with_the_same_code(monkeypatch):
    compiled, lowered = [], launching._lowered
    monkeypatch.setattr(launching, "_lowered_before", {})
    monkeypatch.setattr(launching, "_lowered", lambda *a: compiled.append(a) or lowered(*a))
    texts = [ptx_of(launched(row_top, columns)[0]) for columns in (5, 6)]
    assert texts[0] == texts[1]
    assert len(compiled) == 1
    ptx_of(launched(row_top, 16)[0])  # the compiler knows that 16 divides 16
    assert ptx_of(launched(row_top, num_warps=2)[0]) != texts[0]
    assert ptx_of(launched(row_top)[0], "sm_80") != texts[0]
    assert len(compiled) == 4


def test_a_kernel_decorated_where_triton_interprets_compiles_as_any_other(monkeypatch):
    found, _ = launched(row_top)
    usual = ptx_of(found)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    for name in ("doubled", "row_top"):
        monkeypatch.setitem(globals(), name, triton.jit(globals()[name].fn))
    assert not isinstance(row_top, triton.JITFunction)
    found, y = launched(row_top)
    assert y.tolist() == [8.0, 18.0, 28.0]
    assert without_places(ptx_of(found)) == without_places(usual)
    again = compile_kernel(
        row_top,
        {"x_ptr": "*fp32", "y_ptr": "*fp32", "columns": "i32", "stride": "i32"},
        {"BLOCK": 8},
    )
    assert again.name == "row_top"


def without_places(text):
    return re.sub(r"\.loc .*|\.file .*", "", text)


@pytest.mark.parametrize("kernel", [with_a_global, with_numpy])
def test_code_that_only_the_interpreter_accepts_does_not_compile(kernel):
    found, y = launched(kernel)
    assert y.tolist() != [0.0, 0.0, 0.0]
    with pytest.raises(CompileError, match=rf"{kernel.__name__} does not compile for sm_90: .+"):
        ptx_of(found)


def test_an_argument_that_must_be_a_constant_is_named():
    @triton.jit
    def widened(x_ptr, ACC):
        tl.store(x_ptr, tl.load(x_ptr).to(ACC))

    with recorded_launches() as found:
        launch(widened, (1,), torch.zeros(1), tl.float32)
    with pytest.raises(CompileError, match="of type: dtype; .+ must be a tl.constexpr"):
        ptx_of(found[0])


def test_16_columns_are_known_to_be_aligned_and_600_are_not():
    @triton.jit
    def copy(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
        column = tl.arange(0, BLOCK)
        place = tl.program_id(0) * columns + column
        inside = column < columns
        tl.store(y_ptr + place, tl.load(x_ptr + place, mask=inside), mask=inside)

    wide = {}
    for columns in (600, 592):
        x = torch.zeros(1, columns)
        with recorded_launches() as found:
            launch(copy, (1,), x, torch.empty_like(x), columns, BLOCK=1024)
        wide[columns] = len(re.findall(r"ld\.global\S*\.v4\.", ptx_of(found[0])))
    assert wide == {600: 0, 592: 2}


def test_a_grid_with_a_0_runs_no_program():
    y = torch.full((3,), 7.0)
    launch(row_top, (0,), y, y, 3, 3, BLOCK=4)
    assert y.tolist() == [7.0] * 3


def test_each_of_two_recordings_ends_by_itself():
    y = torch.full((3,), 7.0)
    with recorded_launches() as outer:
        with recorded_launches():
            pass
        launch(row_top, (0,), y, y, 3, 3, BLOCK=4)
        with recorded_launches() as inner:
            launch(row_top, (0,), y, y, 3, 3, BLOCK=4)
    launch(row_top, (0,), y, y, 3, 3, BLOCK=4)
    assert (len(outer), len(inner)) == (2, 1)


def test_invalid_launches_are_refused():
    with pytest.raises(TypeError, match="is the decorator missing"):
        launch(lambda x: x, (1,), torch.zeros(1))
    with pytest.raises(TypeError, match="tuple of whole numbers as grid, got 3"):
        launch(row_top, 3, torch.zeros(1))
    with pytest.raises(TypeError, match="tensors on one device"):
        launch(row_top, (1,), torch.zeros(1), torch.zeros(1, device="meta"), 1, 1, BLOCK=1)


def test_helpers_and_constants_come_with_a_kernel_and_other_globals_are_named():
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "columns": "i32", "stride": "i32"}
    assert ".entry row_top" in compile_kernel(row_top, signature, {"BLOCK": 8}).ptx
    with pytest.raises(CompileError, match="global variable PLAIN"):
        compile_kernel(with_a_global, signature, {"BLOCK": 8})
