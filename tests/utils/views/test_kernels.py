"""Views of a kernel: its steps in memory, its PTX, its roof, and the results of proofs."""

from __future__ import annotations

import importlib
import sys
import warnings

import pytest
import torch

from tests.utils.notebook.test_style import contrast
from tests.utils.views.examples import LONG, odd
from tests.utils.views.sheets import check
from utils import views
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, MUTED, STORAGE, VIEW

triton = pytest.importorskip("triton", reason="Triton has no build for this system")
import triton.language as tl  # noqa: E402

from utils.instruments.accesses import accesses  # noqa: E402


def view(name):
    return importlib.import_module(f"utils.views.{name}")


steps, matrix, ptx, lanes = map(view, ("kernel_steps", "proof_matrix", "kernel_ptx", "row_lanes"))


@triton.jit
def double_rows(x_ptr, y_ptr, columns, x_row, x_column, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + place * x_column, mask=place < columns, other=0.0)
    tl.store(y_ptr + row * columns + place, 2 * x, mask=place < columns)


@triton.jit
def copy_unmasked(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


def recorded(kernel, grid, *args, **kwargs):
    """What `kernel_steps` draws from: the tensors of a launch, and its loads and stores."""
    found = accesses(kernel, grid, *args, **kwargs)
    names = [name for name in kernel.arg_names if name.endswith("_ptr")]
    return [steps.memory(name, args[k]) for k, name in enumerate(names)], found


def doubled(x):
    y = torch.empty(x.shape, dtype=x.dtype)
    tensors, found = recorded(double_rows, (len(x),), x, y, x.shape[1], *x.stride(), BLOCK=8)
    assert torch.equal(y, 2 * x)
    return tensors, found


# kernel_steps


X = torch.arange(48.0).reshape(8, 6)
HALF = torch.arange(96).half()[5:53].view(8, 6)


@pytest.mark.parametrize(
    ("x", "step", "words"),
    [
        (X, 1, ["Step 1 of 16: program 0 loads 6 elements from 1 sector of x_ptr.",
                "elements 0, 1, 2, 3, 4, 5 of its storage: 24 bytes of the 32 in 1 sector",
                "Masked off: 2 lanes of 8.", "x_ptr: shape (8, 6), strides (6, 1), float32."]),
        (X, 4, ["program 1 stores 6 elements into 2 sectors of y_ptr.", "elements 6, 7, 8"]),
        (X.t(), 1, ["program 0 loads 8 elements from 6 sectors of x_ptr.",
                    "elements 0, 6, 12, 18, 24, 30, 36, 42", "32 bytes of the 192"]),
        (HALF, 3, ["program 1 loads 6 elements from 2 sectors", "elements 11, 12, 13, 14, 15, 16"]),
        (X.double(), 2, ["48 bytes of the 64 in 2 sectors"]),
    ],
)  # fmt: skip
def test_each_step_is_described_in_elements_and_sectors_of_the_storage(x, step, words):
    tensors, found = doubled(x)
    check(*steps.draw(tensors, found, step), *words)


def test_elements_beside_a_tensor_are_lit_when_touched():
    ground = torch.full((40,), 7.0)
    x, y = torch.arange(40.0)[8:32].view(4, 6), ground[8:32].view(4, 6)
    tensors, found = recorded(copy_unmasked, (4,), x, y, 6, BLOCK=8)
    assert tensors[1].outside(found[7]) == [32, 33]
    check(
        *steps.draw(tensors, found, 8),
        "program 3 stores 2 elements beside y_ptr's own.",
        "Not in the tensor: 32, 33.",
    )
    assert tensors[1].outside(found[1]) == []  # a neighbouring row belongs to the tensor, too


def test_a_step_with_nothing_on_says_so():
    x, y = torch.ones(2, 3), torch.zeros(2, 3)
    tensors, found = recorded(double_rows, (1,), x, y, 0, 3, 1, BLOCK=4)
    check(*steps.draw(tensors, found, 1), "loads nothing, because all places are masked off")


def test_a_large_tensor_is_seen_through_a_window():
    x = torch.ones(3, 600)
    y = torch.empty(3, 600)
    tensors, found = recorded(double_rows, (3,), x, y, 600, 600, 1, BLOCK=1024)
    assert tensors[0].shown == 128
    check(*steps.draw(tensors, found, 5), "program 2 loads 600 elements from 75 sectors")


@pytest.mark.parametrize("step", [0, 17])
def test_a_step_that_there_is_not_is_refused(step):
    with pytest.raises(ValueError, match="step: expected 1 to 16"):
        views.kernel_steps(double_rows, (8,), X, X.clone(), 6, 6, 1, BLOCK=8, step=step)


@triton.jit
def idle(x_ptr):
    pass


def test_a_kernel_that_touches_nothing_is_refused():
    with pytest.raises(ValueError, match="loaded and stored nothing"):
        views.kernel_steps(idle, (1,), X)


# proof_matrix


def small(number):
    print("aside", file=sys.stderr)
    warnings.warn("aside", stacklevel=1)
    assert number < 4, "too large"


PROOFS = {"odd": odd, "small, in\twords": small}


def test_the_table_is_what_the_proofs_raise(capsys, recwarn):
    table = matrix.run({"one": 1, "two": 2, "five": 5}, PROOFS)
    assert table == {
        "one": {"odd": None, "small, in\twords": None},
        "two": {"odd": "ValueError: an even number: 2", "small, in\twords": None},
        "five": {"odd": None, "small, in\twords": "AssertionError: too large assert 5 < 4"},
    }
    assert capsys.readouterr() == ("", "")
    assert not recwarn
    assert matrix.first_refusal(table) == ("two", "odd")


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([1, 2, 5], ["No proof refuses all: the best, odd, refuses 1 of 2.", "1: passes all.",
                     "2: refused by odd.", "2, odd: ValueError: an even number: 2"]),
        ([1, 2], ["odd refuses 1 version, as many as all proofs together."]),
        ([1, 3], ["2 versions, and no proof refuses any of them.",
                  "1, odd: passes. No proof refuses it."]),
    ],
)  # fmt: skip
def test_the_matrix_says_who_sees_what(numbers, words):
    table = matrix.run({str(number): number for number in numbers}, PROOFS)
    check(*matrix.draw(table, *matrix.first_refusal(table)), *words)


def test_a_cell_that_passes_names_the_proofs_that_refuse():
    table = matrix.run({"four": 4}, {**PROOFS, "any": lambda number: number})
    assert matrix.in_words(table, "four", "any") == (
        "four, any: passes. It is refused by odd and small, in\twords."
    )


def test_a_long_refusal_is_cut():
    def wordy(version):
        raise RuntimeError("word " * 1000)

    (said,) = matrix.run({"a": 1}, {"p": wordy})["a"].values()
    assert len(said) < 400
    assert said.endswith("…")


@pytest.mark.parametrize(("versions", "proofs"), [(0, 1), (1, 0), (13, 1), (1, 8)])
def test_a_matrix_has_room_for_so_many(versions, proofs):
    with pytest.raises(ValueError, match="1 to 12 versions|1 to 7 proofs"):
        views.proof_matrix(
            {str(k): k for k in range(versions)}, {str(k): odd for k in range(proofs)}
        )


# kernel_ptx of a long kernel

KERNEL = ["def kernel(x_ptr):", "    x = tl.load(x_ptr)", "    y = tl.sum(x)"]


def test_instructions_of_the_language_belong_to_the_line_that_called_it():
    found = ptx.instructions(LONG)
    assert [sum(one.line == line for one in found) for line in (1, 2, 3)] == [1, 60, 11]


def test_repeated_instructions_are_listed_once():
    found = ptx.instructions(LONG)
    rows = ptx.folded([one for one in found if one.line == 3])
    assert [(ptx.opcode(one.text), times) for one, times in rows] == [
        ("add.f32", 5), ("shfl.sync", 5), ("bar.sync", 1)]  # fmt: skip
    loads = ptx.folded([one for one in found if one.line == 2])
    assert [(ptx.opcode(one.text), times) for one, times in loads] == [
        ("mov.u32", 30), ("ld.global.b32", 30)]  # fmt: skip


def test_a_long_kernel_is_drawn_line_by_line():
    found = ptx.instructions(LONG)
    check(
        *ptx.draw(KERNEL, found, 3),
        "Line 3 became 11 instructions of 72.",
        "Instructions of each line: line 1, 1; line 2, 60; line 3, 11.",
        "bar.sync 0",
    )


# row_lanes


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (601, ["A row of 601 columns takes 1,024 lanes: 423 of them, 41%, idle.",
               "600 columns: 1,024 lanes, 41% idle."]),
        (512, ["A row of 512 columns fills its block: no lane idles.",
               "513 columns: 1,024 lanes, 50% idle."]),
        (1, ["A row of 1 column fills its block", "2 columns: 2 lanes, 0% idle."]),
        (3, ["takes 4 lanes: 1 of them, 25%, idles."]),
        (2048, ["fills its block", "2,047 columns: 2,048 lanes, 0% idle."]),
    ],
)  # fmt: skip
def test_the_lanes_of_a_row(columns, words):
    check(*lanes.draw(columns), *words)
    assert lanes.power_of_two(columns) == triton.next_power_of_2(columns)


@pytest.mark.parametrize("columns", [0, 2049])
def test_a_row_has_at_least_a_column_and_not_too_many(columns):
    with pytest.raises(ValueError, match="row_lanes shows 1 to 2048 columns"):
        views.row_lanes(columns)


def test_words_can_be_read_on_every_background():
    for ink, ground in (
        (STORAGE.on, STORAGE.colour), (INK, STORAGE.tint), (INK, CARD), (MUTED, IDLE),
        (STORAGE.on, GRADIENT.colour), (INK, GRADIENT.tint), (INK, VIEW.tint),
        (GRADIENT.on, GRADIENT.colour),
    ):  # fmt: skip
        assert contrast(ink, ground) >= 4.5, (ink, ground)
