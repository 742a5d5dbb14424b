import pytest
import torch

from hood.judge.examples.literal import Unprintable, literal
from utils.minigpt import MiniGPTConfig

NAMES = {"torch": torch, "MiniGPTConfig": MiniGPTConfig}
WIDE = torch.tensor([[1.5, -2.0, 0.1, 3.0], [0.0, 7.25, 1e-30, 5.0]])


def same(a, b):
    return (
        (a.dtype, a.shape, a.stride(), a.storage_offset(), a.requires_grad)
        == (b.dtype, b.shape, b.stride(), b.storage_offset(), b.requires_grad)
        and a.untyped_storage().nbytes() == b.untyped_storage().nbytes()
        and torch.equal(a.nan_to_num(-7), b.nan_to_num(-7))
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.tensor([[0.0, 1.0]]), "torch.tensor([[0., 1.]])"),
        (torch.tensor(3), "torch.tensor(3)"),
        (torch.tensor([True, False]), "torch.tensor([True, False])"),
        (torch.tensor([0.1, 2.0], dtype=torch.float16), None),
        (torch.tensor([0.1, 7.0, 1e30], dtype=torch.bfloat16), None),
        (torch.tensor([0.1, 1e-300], dtype=torch.float64), None),
        (torch.tensor([1, 200], dtype=torch.uint8), None),
        (torch.tensor([1 + 2j, 0.5j]), None),
        (torch.tensor([torch.inf, -torch.inf, torch.nan]), None),
        (torch.full((2, 4), torch.inf), None),  # the number is equal to its successor
        (torch.full((8,), -1e30), None),
        (torch.full((6,), 1 << 60), None),
        (torch.zeros(0, 3), "torch.zeros((0, 3))"),
        (torch.zeros(0, dtype=torch.int64), "torch.tensor([], dtype=torch.int64)"),
        (WIDE, None),
        (torch.tensor([[1.0, 2.0], [4.0, 8.0]]).t(), "torch.tensor([[1., 2.], [4., 8.]]).t()"),
        (WIDE[:, 1::2], None),
        (WIDE[:1], None),
        (WIDE[:, :1].expand(2, 5), None),
        (torch.arange(24).reshape(2, 3, 4).permute(1, 2, 0), None),
        (torch.arange(60.0).reshape(3, 4, 5), "torch.arange(60.).reshape(3, 4, 5)"),
        (torch.arange(3, 40, dtype=torch.bfloat16)[1::3], None),
        (torch.tensor([1.0, 2.0]).requires_grad_(), "torch.tensor([1., 2.]).requires_grad_()"),
    ],
)
def test_a_tensor_comes_back_with_its_whole_layout(value, text):
    said = literal(value)
    assert text is None or said == text
    assert same(eval(said, NAMES), value)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, -0.5, 2j, "it's \n", (1,), (), [1, (2.0, "x")], {"a": [1]}, torch.float16),
        *(slice(None, 3, 2), MiniGPTConfig(d_model=8), {(1, 2): None}),
    ],
)
def test_plain_values_come_back(value):
    assert eval(literal(value), NAMES) == value


def test_digits_can_be_limited():
    assert literal(torch.tensor([1 / 3, 2000.0]), 4) == "torch.tensor([0.3333, 2000.])"
    assert literal(2 / 3, 2) == "0.67"
    most = torch.tensor([torch.finfo(torch.float32).max])
    assert torch.equal(eval(literal(most, 4), NAMES), most), "rounded up, it would be infinite"


@pytest.mark.parametrize(
    "value",
    [
        torch.randn(9, 9),
        torch.arange(100).remainder(7),
        list(range(100)),
        "x" * 1000,
        10**50,
        object(),
        [["x" * 100] * 10],
        torch.ones(3).to_sparse(),
    ],
)
def test_long_or_unknown_values_have_no_literal(value):
    with pytest.raises(Unprintable):
        literal(value)
