"""Views of products and attention in tiles."""

from __future__ import annotations

import importlib
import math

import pytest
import torch

from tests.utils.views.examples import in_groups
from tests.utils.views.sheets import check
from utils import views
from utils.views.roofline import Roof


def view(name):
    return importlib.import_module(f"utils.views.{name}")


intensity, order, online, causal = map(
    view, ("tile_intensity", "tile_order", "online_softmax", "causal_tiles")
)
H100 = Roof(989e12, 3.35e12)


# tile_intensity


@pytest.mark.parametrize(
    ("sizes", "down", "across", "moved"),
    [
        ((128, 256, 64, 64, 32), 2, 8, 8 * 128 * 64 + 2 * 64 * 256 + 128 * 256),
        ((65, 33, 7, 64, 32), 2, 2, 2 * 65 * 7 + 2 * 7 * 33 + 65 * 33),
        ((1, 1, 1, 16, 16), 1, 1, 3),
    ],
)
def test_each_tile_loads_its_strips_and_nothing_beyond_the_edge(sizes, down, across, moved):
    cost = intensity.Cost(*sizes, itemsize=2)
    m, n, k = sizes[:3]
    assert (cost.down, cost.across) == (down, across)
    assert (cost.flops, cost.bytes) == (2 * m * n * k, 2 * moved)
    assert cost.once >= cost.intensity


def test_a_tile_says_how_often_it_loads_and_what_bounds_it():
    thin = intensity.Cost(2048, 600, 64, 64, 64, 2)
    words = [
        "20.9 FLOP for each byte; memory is the bound.",
        "a is loaded 10 times, each number of b",
    ]
    check(
        *intensity.draw(thin, H100), *words, "b 32 times", "7.54 MB, at least 2.25 µs", "56.2 FLOP"
    )
    wide = intensity.Cost(8192, 128, 8192, 256, 256, 1)
    check(*intensity.draw(wide, Roof(1e12, 1e12)), "compute is the bound", "a is loaded once")
    assert intensity.duration(2.5) == "2.5 s"
    assert intensity.duration(0.0025) == "2.5 ms"


@pytest.mark.parametrize("wrong", [{"m": 0}, {"itemsize": -1}, {"peak_bandwidth": 0}])
def test_sizes_and_peaks_are_above_0(wrong):
    given = {"m": 8, "n": 8, "k": 8, "peak_flops": 1, "peak_bandwidth": 1} | wrong
    with pytest.raises(ValueError, match=f"numbers above 0, got {next(iter(wrong))} = "):
        views.tile_intensity(**given)
    with pytest.raises(ValueError, match="BLOCK_M: expected 16, 32, 64, 128 and 256, got 48"):
        views.tile_intensity(8, 8, 8, block_m=48, peak_flops=1, peak_bandwidth=1)


# tile_order


def test_a_square_of_programs_loads_the_fewest_strips():
    total = {}
    for group in (1, 3, 9):
        visits = order.read(in_groups, 9, 9, group)
        assert sorted(visits) == [(row, column) for row in range(9) for column in range(9)]
        total[group] = sum(len(r) + len(c) for r, c in order.strips(visits, 9))
    assert total == {1: 90, 3: 54, 9: 90}


def test_the_last_group_and_the_last_wave_may_be_smaller():
    visits = order.read(in_groups, 5, 3, 2)
    assert visits[-3:] == [(4, 0), (4, 1), (4, 2)]
    words = [
        "15 tiles of a product, 5 × 3. Programs 12 to 14 load 1 strip of a and 3 of b.",
        "Rows of a: 4. Columns of b: 0, 1, 2.",
        "In groups of 2 rows, all 4 waves together load",
    ]
    check(*order.draw(visits, 5, 3, 2, 4, 4), *words)
    words = [
        "Program 0 loads 1 strip of a and 1 of b.",
        "Row by row, all 15 waves",
        "load 30 strips",
    ]
    check(*order.draw(order.read(in_groups, 5, 3, 1), 5, 3, 1, 1, 1), *words)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((13, 4), "shows 1 to 12 tiles from top to bottom, got 13"),
        ((4, 0), "shows 1 to 12 tiles from left to right, got 0"),
        ((4, 4, 5), "expected a group of 1 to 4, got 5"),
        ((4, 4, 1, 17), "shows 1 to 16 programs at once, got 17"),
    ],
)
def test_a_product_has_tiles_groups_and_waves_that_fit(given, message):
    down, across, *more = given
    named = dict(zip(("group", "at_once"), more, strict=False))
    with pytest.raises(ValueError, match=message):
        views.tile_order(in_groups, down, across, **named)


def test_an_order_that_leaves_a_tile_out_is_refused():
    with pytest.raises(ValueError, match=r"with a group of 1 no program takes the tile \(0, 1\)"):
        views.tile_order(lambda program, *_: (program // 4, 0), 4, 4)


# online_softmax


def tiles_of(row, size):
    return [list(one) for one in torch.tensor(row).split(size)]


def test_the_running_sum_is_the_sum_of_two_passes():
    torch.manual_seed(0)
    row = (8 * torch.randn(23)).tolist()
    for size in (3, 4, 23):
        last = online.read(tiles_of(row, size))[-1]
        assert last.m == pytest.approx(max(row))
        assert last.m + math.log(last.l) == pytest.approx(torch.tensor(row).logsumexp(0).item())


def test_without_the_correction_the_sum_is_wrong_and_the_view_says_so():
    tiles = tiles_of([0.0, 1.0, 3.0, 2.0], 2)
    wrong = online.read(tiles, correct=False)
    words = ["Tile 2 of 2 raises the maximum, and nobody corrects the old sum.", "but l is 2.736"]
    check(*online.draw(tiles, wrong, 2, False), *words)
    check(*online.draw(tiles, wrong, 1, False), "the first maximum", "the sum is 1.368.")
    right = online.read(tiles)
    figure, alt = online.draw(tiles, right, 2, True)
    check(figure, alt, "the old sum shrinks by a factor of 0.135.", "the sum is 1.553.")
    assert "but l" not in alt


def test_a_tile_that_sees_nothing_changes_nothing():
    hidden = [-math.inf, -math.inf]
    first, second, third = online.read([hidden, [1.0, 0.0], hidden])
    assert (first.m, first.l) == (-math.inf, 0.0)
    assert (second.m, second.correction) == (1.0, 0.0)
    assert (third.m, third.correction, third.l) == (1.0, 1.0, second.l)
    check(*online.draw([hidden], [first], 1, True), "m -inf", "the sum is 0.")


@pytest.mark.parametrize(
    ("row", "tile", "message"),
    [
        ([0.0] * 33, 8, "shows 1 to 32 numbers, got 33"),
        ([0.0] * 9, 1, "shows 1 to 8 tiles, got 9"),
        ([0.0], 0, "expected a tile of 1 or more, got 0"),
        ([math.nan], 1, "expected finite numbers or -inf"),
        ([math.inf], 1, "expected finite numbers or -inf"),
    ],
)
def test_a_row_fits_and_is_finite_or_minus_infinity(row, tile, message):
    with pytest.raises(ValueError, match=message):
        views.online_softmax(row, tile)


# causal_tiles


@pytest.mark.parametrize(("words", "block_q", "block_k"), [(64, 16, 16), (50, 16, 8), (50, 8, 32)])
def test_a_tile_is_whole_cut_or_skipped_as_its_pairs_say(words, block_q, block_k):
    seen = torch.ones(words, words, dtype=torch.bool).tril()
    for row, fates in enumerate(causal.read(words, block_q, block_k, True)):
        for column, fate in enumerate(fates):
            tile = seen[row * block_q :, column * block_k :][:block_q, :block_k]
            whole, any_seen = bool(tile.all()), bool(tile.any())
            expected = causal.WHOLE if whole else causal.CUT if any_seen else causal.SKIPPED
            assert fate == expected, (row, column)


def test_a_table_counts_its_tiles_and_scores():
    words = [
        "136 of 256 tiles are computed; 16 of them need the mask.",
        "120 whole, 16 cut, 120 skipped",
        "8,390,656 that a word may see",
        "8,912,896 computed: 1.06 times",
        "64 MiB",
    ]
    check(*causal.draw(4096, 256, 256, True), *words)
    check(*causal.draw(64, 32, 32, False), "4 of 4 tiles are computed; none needs a mask.")
    check(*causal.draw(8, 8, 8, True), "1 of 1 tile is computed; 1 of them needs the mask.")


def test_blocks_and_words_fit():
    with pytest.raises(ValueError, match="expected 5 to 24576 words, got 4"):
        views.causal_tiles(4, block_q=8, block_k=8)
    with pytest.raises(ValueError, match="keys of a tile: expected 8, 16, 32 and 64, got 128"):
        views.causal_tiles(50, block_q=8, block_k=128)
