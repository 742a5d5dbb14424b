import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from hood.judge.checks.compare import Tolerance, agree, compare

X = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (3, 3),
        (np.int64(3), 3),
        (0.1 + 0.2, 0.3),
        (np.float32(0.5), 0.5),
        (True, True),
        (True, np.bool_(True)),
        (np.bool_(False), np.bool_(False)),
        (1 + 2j, 1 + 2j),
        (np.complex64(1), 1 + 0j),
        ("a", "a"),
        (None, None),
        (torch.float16, torch.float16),
        ([1, 2], (1, 2)),
        (torch.Size([2, 3]), (2, 3)),
        ({"a": X}, {"a": X.clone()}),
        (float("nan"), math.nan),
        (torch.tensor([math.nan, math.inf]), torch.tensor([math.nan, math.inf])),
        (X.t().contiguous().t(), X),
        (torch.empty(0, 3), torch.empty(0, 3)),
        (np.eye(2), np.eye(2)),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j])),
    ],
)
def test_equal_values_are_equal(got, want):
    assert compare(got, want) is None
    assert agree(got, want)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_half_precision_complex_numbers_are_compared():
    want = torch.tensor([1 + 2j]).to(torch.complex32)
    assert compare(want.clone(), want) is None
    assert compare(want + 1, want).kind == "values"


@pytest.mark.parametrize(
    ("got", "want", "kind"),
    [
        (3.0, 3, "type"),
        (3, 3.0, "type"),
        (True, 1, "type"),
        (1 + 0j, 1.0, "type"),
        (1.0, 1 + 0j, "type"),
        (Fraction(1, 2), 0.5, "type"),
        (Decimal("0.5"), 0.5, "type"),
        (True, np.bool_(False), "values"),
        (1, True, "type"),
        (torch.tensor(3), 3, "type"),
        (None, 3, "type"),
        (3, None, "type"),
        ("3", 3, "type"),
        (np.eye(2), torch.eye(2), "type"),
        ([[1.0]], torch.ones(1, 1), "type"),
        ((1, 2), (1, 2, 3), "length"),
        ("ab", ("a", "b"), "type"),
        (range(2), [0, 1], "type"),
        ({"a": 1}, {"b": 1}, "keys"),
        (torch.ones(1, 3), torch.ones(3), "shape"),
        (torch.tensor(1.0), torch.ones(3), "shape"),
        (X.double(), X, "dtype"),
        (np.eye(2, dtype=np.float32), np.eye(2), "dtype"),
        (X + 1e-3, X, "values"),
        (4, 3, "values"),
        (torch.float32, torch.float16, "values"),
        (torch.tensor([math.inf]), torch.tensor([-math.inf]), "values"),
        (torch.tensor([math.nan]), torch.tensor([0.0]), "values"),
        (torch.tensor([2**60 + 1]), torch.tensor([2**60]), "values"),
        (2**70, 2**70 + 1, "values"),
    ],
)
def test_different_values_are_described(got, want, kind):
    assert compare(got, want).kind == kind
    assert not agree(got, want)


def test_a_range_is_not_a_list():
    said = str(compare(range(4, 8), [4, 5, 6, 7]))
    guess = "perhaps a missing `list(...)`, which makes a list of the value"
    assert said == f"expected a list, got a range\n{guess}"


@pytest.mark.parametrize("got", [[4, 5, 7], [4, 5]])
def test_sequences_are_shown_in_the_expected_type(got):
    assert f"got {got}, expected [4, 5, 6]" in compare(tuple(got), [4, 5, 6]).detail
    assert f"got {tuple(got)}, expected (4, 5, 6)" in compare(got, (4, 5, 6)).detail


def test_strides_are_compared_on_request():
    other = X.t().contiguous().t()
    assert compare(other, X, strides=True).kind == "strides"
    assert compare(X.clone(), X, strides=True) is None


def test_a_difference_inside_a_container_says_where():
    assert compare({"w": (X, X + 1)}, {"w": (X, X)}).where == "['w'][1]"


def test_none_in_a_container_is_not_a_missing_return():
    assert "missing `return`" in str(compare(None, [0.5]))
    assert str(compare([None], [0.5])) == "at [0]: expected a float, got None"
    assert (
        str(compare({"a": (1, None)}, {"a": (1, X)})) == "at ['a'][1]: expected a tensor, got None"
    )


@pytest.mark.parametrize(
    ("got", "want", "said"),
    [
        (False, True, "expected True, got False"),
        ("a", "b", "the text is not the expected one"),
        (1, 2, "the number is not the expected one"),
        (0.5, 2.5, "the number is not the expected one"),
        (torch.int8, torch.int16, "the dtype is not the expected one: got torch.int8"),
    ],
)
def test_a_single_wrong_value_is_described_in_plain_words(got, want, said):
    assert compare(got, want).summary == said


def test_tolerance_of_half_precision_is_that_of_its_fraction():
    want = torch.tensor([1.0], dtype=torch.bfloat16)
    assert compare(want + 2**-7, want) is None
    assert compare(want + 2**-5, want).kind == "values"
    assert compare(want + 2**-5, want, tolerance=Tolerance(0.1, 0.0)) is None


def test_summary_and_guess_contain_no_value():
    difference = compare(X * 3.25, X)
    assert "6 of 6" in difference.summary
    assert not any(f"{v:g}" in difference.summary for v in (3.25, 6.5, 104.0))
    assert "[0, 0]: got 3.25, expected 1" in difference.detail
    assert "largest error 72" in difference.detail


@pytest.mark.parametrize("got", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_a_number_that_is_not_finite_is_shown_beside_one_that_is(got):
    assert compare(got, 1.5).summary == f"expected a finite number, got {float(got)}"
    assert compare(2.5, math.inf).summary == "the number is not the expected one"


def test_only_the_first_five_mismatches_are_listed():
    difference = compare(torch.arange(20.0) + 1, torch.arange(20.0))
    assert difference.detail.count("got") == 5
    assert "and 15 more" in difference.detail


def test_a_tolerance_does_not_apply_to_integers():
    loose = Tolerance(1e-2, 1e-2)
    want = torch.tensor([2**40, 1000])
    assert compare(want.clone(), want, tolerance=loose) is None
    assert compare(want + 1, want, tolerance=loose).kind == "values"
    assert compare(want.numpy() + 1, want.numpy(), tolerance=loose).kind == "values"
    assert compare(want.double() + 1, want.double(), tolerance=loose) is None
