import pytest
import torch

from hood.judge.checks.draw import Draw, SmallDraw


def test_one_seed_draws_the_same_and_another_does_not():
    a, b, c = Draw("s", "x"), Draw("s", "x"), Draw("t", "x")
    assert torch.equal(a.tensor((4, 5)), b.tensor((4, 5)))
    assert not torch.equal(Draw("s", "x").tensor((4, 5)), c.tensor((4, 5)))
    assert not torch.equal(Draw("s", "x").tensor((4, 5)), Draw("s", "y").tensor((4, 5)))


def test_sizes_of_a_shape_differ():
    draw = Draw("s")
    for _ in range(50):
        assert len(set(draw.shape(4))) == 4


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_layouts_are_as_named(layout, dtype):
    t = Draw("s").tensor((3, 4), dtype, layout)
    assert t.shape == (3, 4)
    assert t.dtype == dtype
    assert t.is_contiguous() == (layout == "contiguous")
    assert (t.storage_offset() != 0) == (layout == "sliced")


def test_values_are_not_centred_so_a_missing_mean_shows():
    assert abs(Draw("s").tensor((200, 200)).mean().item() - 0.3) < 0.05


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match="expected contiguous"):
        Draw("s").tensor((2, 2), layout="diagonal")


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("count", [13, 120, 200, 300])
def test_small_numbers_fit_their_dtype(dtype, count):
    drawn = [SmallDraw("s", str(k)).tensor((count,), dtype) for k in range(8)]
    counted = all(tensor.diff().min() == 1 for tensor in drawn)
    assert counted == (count < (123 if dtype is torch.int8 else 250))
