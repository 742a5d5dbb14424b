import pytest
import torch

from hood.judge.checks.compare import compare

X = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.5, 32.0], [0.5, -3.0, 7.0]])
WIDE = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.5, 32.0]])


@pytest.mark.parametrize(
    ("got", "want", "words"),
    [
        (WIDE.t(), WIDE, "transposed"),
        (WIDE, WIDE.sum(0), "summing your result over dim 0"),
        (WIDE, WIDE.sum(1), "summing your result over dim 1"),
        (X[:1], X[0], "size 1"),
        (torch.ones(3, 1) - torch.arange(3.0), torch.arange(3.0), "outer product"),
        (torch.ones(6), torch.ones(2, 3), "the same number of elements, in other dimensions"),
        (X.t(), X, "dims 0 and 1 are exchanged"),
        (X.flip(1), X, "reverse order along dim 1"),
        (X.roll(1, 0), X, "off by one: the right values are one place further along dim 0"),
        (X * 3, X, "3 times too large"),
        (X / 64, X, "64 times too small"),
        (X.double() * 1e36, X.double(), "scaled: 1e+36 times too large"),
        (-X, X, "sign is flipped"),
        (X + 1.5, X, "off by the same amount"),
        (X * 0, X, "every element of your result is zero"),
        (X / 0 - X / 0, X, "NaNs"),
        ((1, 4, 12), (12, 4, 1), "reverse order"),
        ((48, 16, 4), (12, 4, 1), "4 times too large"),
        (torch.tensor([4, 9, 2]), torch.tensor([3, 8, 1]), "every element is off by one"),
        (WIDE.t().contiguous(), WIDE + 1, "the same sizes in another order"),
        (torch.tensor([[4, 3], [2, 1]]), torch.tensor([[1, 2], [3, 4]]), "values in another order"),
        (torch.tensor([3.0, 1.0, 4.0, 2.0]), torch.tensor([1.0, 2.0, 3.0, 4.0]), "another order"),
        (X.double() * (1 + 4e-6), X.double(), "nearly right: rounding, or a precision"),
        (torch.arange(1e6) + 1, torch.arange(1e6), "off by the same amount"),
    ],
)
def test_a_guess_names_the_mistake(got, want, words):
    assert words in compare(got, want).guess


def test_a_guess_names_a_wrong_boundary():
    want = X.repeat(2, 1)
    got = want.clone()
    got[-1] += torch.tensor([1.0, 2.0, 5.0])
    assert "only the last entries along dim 0" in compare(got, want).guess


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (torch.randn(4, 5, generator=torch.Generator().manual_seed(0)), torch.ones(4, 5)),
        (17, 5),
        (7, 6),
        (24, 6),
        (-1.5, 1.5),
        (False, True),
        (torch.tensor([8.0]), torch.tensor([2.0])),
        (torch.tensor([2, 1]), torch.tensor([1, 2])),
        (torch.tensor([0, 0, 1]), torch.tensor([1, 0, 0])),
        (torch.tensor([0.0, 6.0, 0.0]), torch.tensor([0.0, 2.0, 0.0])),
        (torch.tensor([4.0, 4.0, 4.0]), torch.tensor([2.0, 2.0, 2.0])),
        (torch.tensor([True, False, False]), torch.tensor([False, False, True])),
        (torch.tensor([3, 7, 0]), torch.tensor([2, 8, 1])),
        (torch.tensor([2e-8, -1e-8, 1e-9]), torch.tensor([0.5, 0.25, -0.125])),
        ([1, 3], [3, 1]),
        (X.double() * 3e-8, X.double() * 1e-8),
        (torch.ones(3, 4), torch.full((3,), 4.0)),
    ],
)
def test_without_a_match_there_is_no_guess(got, want):
    assert compare(got, want).guess == ""


def test_an_order_is_named_only_if_no_other_fits():
    want = torch.tensor([[1, 2], [3, 4]])
    assert "the right values in another order" in compare(want.flip(0, 1), want).guess
    both = torch.tensor([[1, 2, 3], [2, 5, 6], [3, 6, 9]])
    assert compare(both.flip(0), both).guess == "the right values in reverse order along dim 0"
    turned = torch.tensor([[1, 2, 1], [3, 5, 3], [1, 2, 1]])
    assert compare(turned.roll(1, 1), turned).guess.endswith("one place further along dim 1")
