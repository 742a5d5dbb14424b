"""The stride explorer's arithmetic against torch itself."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from utils.views._strides import full_index, geometry, plain, storage_values, window


def random_views(count: int, seed: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(storage of 0..n-1, a random as_strided view of it), with overlaps, gaps and stride 0."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        shape = [draw.choice([1, 2, 3, 5]) for _ in range(draw.randint(0, 4))]
        stride = [draw.choice([0, 1, 2, 3, 7]) for _ in shape]
        offset = draw.randint(0, 5)
        last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        storage = torch.arange(last + 1 + draw.randint(0, 4))
        found.append((storage, storage.as_strided(shape, stride, offset)))
    return found


def test_the_sum_is_where_torch_reads():
    # The storage contains 0, 1, 2, …, so a value is the number of its element.
    for storage, view in random_views(60, seed=0):
        layout = geometry(view)
        for index in itertools.product(*map(range, view.shape)):
            assert layout.element(index) == view[index].item()
        values = view.reshape(-1).tolist()
        assert layout.reached(0, layout.length) == set(values)
        assert layout.reached(3, 9) == {k for k in values if 3 <= k < 9}
        assert layout.length == len(storage)


def test_overlap_is_torchs():
    for _, view in random_views(400, seed=1):
        layout = geometry(view)
        own = view[tuple(slice(1) if s == 0 else slice(None) for s in view.stride())]
        assert layout.overlaps == (own.unique().numel() < own.numel())
        assert layout.sharing == 1 or own.numel() * layout.sharing == view.numel()


def test_steps_that_cross_reach_each_element_once():
    # no dimension steps over the other dimension, but the elements 0, 2, 4, 3, 5, 7 are all
    # different
    assert not geometry(torch.empty(8).as_strided((3, 2), (2, 3))).overlaps
    assert geometry(torch.empty(11).as_strided((4, 2), (2, 4))).overlaps


def test_a_huge_view_is_asked_only_about_its_window():
    view = torch.empty(1, dtype=torch.uint8).expand(10**6, 10**6)
    assert geometry(view).reached(0, 64) == {0}
    assert geometry(view).sharing == 10**12
    table = torch.empty(4000, 3000).t()
    assert len(geometry(table).reached(6_000_000, 6_000_064)) == 64


def test_bytes_come_from_the_dtype():
    layout = geometry(torch.zeros(6, dtype=torch.float64)[2:])
    assert (layout.itemsize, layout.length, layout.offset) == (8, 6, 2)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: [1, 2], "list"),
        (lambda: torch.eye(2).numpy(), "from_numpy"),
        (lambda: torch.eye(2).to_sparse(), "to_dense"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "one strided"),
    ],
)
def test_values_without_strides_are_refused_with_a_remedy(make, says):
    with pytest.raises(TypeError, match=says):
        geometry(make())


def test_an_index_is_made_whole_or_refused():
    assert full_index((3, 4), (-1, 2)) == (2, 2)
    assert full_index((5,), 3) == (3,)
    assert full_index((1, 2, 9), None) == (0, 1, 2)
    assert full_index((), None) == ()
    with pytest.raises(IndexError, match="2 dimensions"):
        full_index((3, 4), (1,))
    with pytest.raises(IndexError, match="dimension 1, which has size 4"):
        full_index((3, 4), (0, 4))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("at", [0, 1, 500, 999])
def test_a_window_contains_the_chosen_element(size, at):
    at = min(at, max(size - 1, 0))
    shown = window(size, at, 64, 16)
    assert len(shown) <= 64
    assert shown.start >= 0
    assert shown.stop <= size
    assert not size or at in shown
    assert shown.start % 16 == 0


def test_values_of_the_storage_are_read_past_the_view():
    x = torch.arange(12.0).reshape(3, 4)
    assert storage_values(x[1:, ::2], 0, 5) == [0, 1, 2, 3, 4]
    assert storage_values(x.to("meta"), 0, 5) is None


def test_values_of_lazy_and_small_dtypes_are_read():
    z = torch.tensor([1 + 2j])
    assert plain(z.conj()) == [1 - 2j]
    assert storage_values(z.conj(), 0, 1) == [1 + 2j]
    assert plain(torch.tensor([0.5]).to(torch.float8_e4m3fn)) == [0.5]
    assert plain(torch.tensor(2.0, requires_grad=True)) == [2.0]
