"""Kinds of values: one table, which contains torch only if it is loaded."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from hood.judge.checks.compare import compare
from hood.judge.checks.draw import Draw, SmallDraw
from hood.judge.checks.exercise import case
from hood.judge.examples.literal import Unprintable, literal
from hood.judge.values import table
from hood.judge.verdicts.judge import judge
from tests.hood.by_value import copy_by_value
from tests.hood.one_part import one_part

WITHOUT_TORCH = """
import sys
import hood.judge.verdicts.judge
assert "torch" not in sys.modules, "the judge imports torch by itself"
import numpy as np
from hood.judge.checks.exercise import ByHand, Check, case
from hood.judge.examples.example import exemplify
from hood.judge.verdicts.judge import judge

rule = ByHand("the point is the loop", forbid_names=frozenset({"numpy.cumsum", "*cumprod*"}))
check = Check("running", {"any array": 2}, "A heading", by_hand=rule)
check.reference(lambda x: np.cumsum(x))

@check.cases
def _(draw):
    for _ in range(3):
        yield case("any array", draw.array(draw.shape(1)))
    yield case("any array", draw.array((0,), "float32"))
    yield case("any array", draw.array((4,), "int64", layout="sliced"))

def running(x):
    total, found = 0, np.zeros(len(x), x.dtype)
    for at, one in enumerate(x):
        total = total + one
        found[at] = total
    return found

right = judge(check, running, "s")
backwards = lambda x: np.cumsum(x[::-1])[::-1]
wrong = exemplify(judge(check, backwards, "s"), check, backwards, "public")
print(wrong.parts[0].example)
print(right.earned, wrong.earned, "torch" in sys.modules)
"""


def test_an_exercise_on_arrays_is_judged_without_torch():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    example, points = done.stdout.splitlines()
    assert points == "2.0 0.0 False"
    assert "np.array([" in example


ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.array([[1.5, 2.0], [3.0, -4.0]])),
    np.array([0.1, np.nan, -np.inf], np.float32),
    np.array([True, False]),
    np.full((3, 4), 0.5),
    np.zeros((0, 3), np.float16),
    np.array(7, np.uint8),
    np.array([1 + 2j]),
    np.array([2**63 + 1], np.uint64),
]


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_an_array_is_sent_written_and_equal_to_itself(array):
    for came in (copy_by_value(array), eval(literal(array), {"np": np})):
        assert came.dtype == array.dtype
        assert compare(came, array, strides=True) is None
        assert came.strides == array.strides or not array.size


@pytest.mark.parametrize(
    "array", [np.array([1.0], ">f8"), np.float128([1]), np.array(["NaT"], "M8")]
)
def test_an_array_must_contain_numbers(array):
    with pytest.raises(TypeError, match="not plain numbers|an array of datetime64"):
        copy_by_value(array)


def test_arrays_and_tensors_are_distinguished_and_described_alike():
    x = np.array([[1.0, 2.0, 4.0], [8.0, 16.5, 32.0]])
    assert compare(torch.from_numpy(x), x).summary == "expected a NumPy array, got a tensor"
    assert compare(x, torch.from_numpy(x)).summary == "expected a tensor, got a NumPy array"
    for got in (x * 3, x + 1, -x, x[::-1], x.astype(np.float32), x[:1]):
        one, other = compare(got, x), compare(torch.tensor(got.copy()), torch.tensor(x))
        assert (one.kind, one.guess, one.detail) == (other.kind, other.guess, other.detail)


def test_arrays_are_drawn_like_tensors():
    draw = Draw("s", "n")
    assert np.array_equal(draw.array((2, 3)), Draw("s", "n").array((2, 3)))
    assert draw.array((2, 3), layout="transposed").flags.f_contiguous
    assert draw.array((4,), "uint8", layout="sliced").min() >= 0
    assert draw.array((3,), "complex64").dtype == np.complex64
    small = SmallDraw("s", "n", reach=8).array((3,))
    assert np.array_equal(small, small.round(1))
    assert sorted(set(np.diff(SmallDraw("s").array((20,), "int16")))) == [1]
    with pytest.raises(ValueError, match="expected contiguous"):
        draw.array((2,), layout="round")


def test_a_values_row_is_found_by_its_type():
    class Named(np.ndarray):
        pass

    class Claims:
        __class__ = torch.Tensor

    assert table.grid(np.zeros(2).view(Named)) is table.tagged("array")
    assert table.kind(torch.float32) is table.tagged("dtype")
    assert table.grid(torch.float32) is table.kind(Claims()) is table.kind([1]) is None
    assert table.tagged("nothing") is None


def test_a_literal_of_an_array_is_short():
    with pytest.raises(Unprintable, match="too many"):
        literal(np.arange(100.0) ** 2)
    with pytest.raises(Unprintable, match="layout"):
        literal(np.zeros((4, 4))[::2, ::2])


def test_an_argument_that_is_an_array_and_was_changed_is_named():
    def grows(x):
        x += 1
        return x

    check = one_part("f", lambda x: x + 1, lambda draw: [case("p", draw.array((3,)))])
    assert "changed its input `x`" in judge(check, grows, "s").parts[0].problem
