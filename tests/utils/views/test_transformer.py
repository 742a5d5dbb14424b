"""Views of a transformer: a head's map, a mask, a cache, the next word, and rotated positions."""

from __future__ import annotations

import importlib
import math
from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.utils.views import examples
from tests.utils.views.examples import maps
from tests.utils.views.sheets import check
from utils import views
from utils.minigpt import MiniGPT, MiniGPTConfig

pytestmark = pytest.mark.slow(5)


def view(name):
    return importlib.import_module(f"utils.views.{name}")


heads, masks, growth, chosen, clocks = map(
    view, ("attention_heads", "mask_builder", "cache_growth", "next_word", "rotated_pairs")
)

# attention_heads

WORDS = ["<bos>", "<es>", "comprendiéramos", "<progressive>", "yo"]


def test_the_title_says_where_the_lit_word_looks_most():
    shares = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.1, 0.7]]
    at_another = heads.draw(["a", "b", "c"], shares, "layer 1, head 2", 1)
    check(*at_another, "Layer 1, head 2: “b” looks most at “a”, 0.90.")
    figure, alt = heads.draw(["a", "b", "c"], shares, "head 1", 2)
    check(figure, alt, "“c” looks most at itself, 0.70.", "a 0.20, b 0.10, c 0.70", "b at a 0.90")


def test_heads_are_counted_through_all_layers(capsys):
    views.attention_heads(WORDS, maps(), head=5)
    assert "Layer 2, head 2: " in capsys.readouterr().out
    assert heads.read(WORDS, maps())[5] == maps()[1, 1].tolist()


@pytest.mark.parametrize(
    ("found", "how", "says"),
    [
        (maps(4), {}, r"\(layers, heads, 5, 5\)"),
        (maps() * 2, {}, "sum to 1, got one that is off by 1"),
        (maps() * math.nan, {}, "sum to 1"),
        (maps(), {"head": 8}, "head: expected layer 1|head: expected 0, 1"),
        (maps(), {"word": 5}, "word: expected 0, 1, 2, 3 and 4, got 5"),
    ],
)
def test_invalid_attention_is_refused(found, how, says):
    with pytest.raises(ValueError, match=says):
        views.attention_heads(WORDS, found, **how)


# mask_builder


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("keys", "new", "padding", "window"), [(5, 5, 0, 0), (9, 3, 2, 4)])
def test_the_builder_is_the_mask_by_places(keys, new, padding, window, causal):
    fates = masks.read(keys, new, causal, padding, window)
    back = torch.arange(keys)[-new:, None] - torch.arange(keys)
    seen = (torch.arange(keys) >= padding) & (back < (window or keys))
    if causal:
        seen &= back >= 0
    assert [[one == masks.SEEN for one in row] for row in fates] == seen.tolist()


def test_a_query_without_visible_keys_is_named():
    check(
        *masks.draw(["a", "b"], 4, True, 2, 0),
        "3 of 16 pairs are seen; 2 queries see nothing at all.",
        "“<pad>” at place 0 sees nothing.",
        "“b” at place 3 sees 2, 3.",
    )
    check(*masks.draw(["a"], 1, True, 0, 0), "1 of 1 pair is seen; every query sees something.")


@pytest.mark.parametrize("how", [{"new": 4}, {"padding": 10}, {"padding": -1}, {"window": -1}])
def test_masks_have_bounds(how):
    with pytest.raises(ValueError, match="1 to 12 places, and 1 to"):
        views.mask_builder(["a", "b", "c"], **how)


# cache_growth

SMALL = MiniGPTConfig(vocab_size=30, d_model=16, n_heads=2, n_layers=3, d_ff=24, context=12)
cache = partial(examples.cache, SMALL)


@pytest.mark.parametrize("words", [1, 5, 12])
def test_flops_are_those_that_torch_counts(words):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        MiniGPT(SMALL)(torch.zeros(2, words, dtype=torch.long))
    found = growth.read(cache(rows=2), SMALL)
    assert found.without[words - 1] == counter.get_total_flops()
    assert found.with_cache[words - 1] == 2 * growth.flops(SMALL, 1, words)


def test_bytes_are_those_of_the_tensors():
    found = growth.read(cache(words=7, rows=2, dtype=torch.float16), SMALL)
    assert found.bytes_a_word == 2 * 3 * 2 * 16 * 2
    words = "1 word: 384 B kept, so this step is 1.0 times cheaper."
    check(*growth.draw(found, 1, 1), words)
    kept, again = growth.spent(found, 4, 6)
    assert kept == found.without[3] + sum(found.with_cache[4:6])
    assert again == sum(found.without[3:6])
    check(
        *growth.draw(found, 4, 6),
        "So far, with a prompt of 4 in one pass",
        "6 words: 2.25 KiB kept",
    )
    check(*growth.draw(found, 4, 6), "10× at word 10")


@pytest.mark.parametrize(
    ("found", "how", "says"),
    [
        (cache()[:2], {}, "3 layers, got 2"),
        ([(k[0], v[0]) for k, v in cache()], {}, "one shape"),
        ([(k, v[:, :, :3]) for k, v in cache()], {}, "one shape"),
        (cache(), {"prompt": 6}, "a prompt of 6 and 5 words"),
    ],
)
def test_an_invalid_cache_is_refused(found, how, says):
    with pytest.raises(ValueError, match=says):
        views.cache_growth(found, SMALL, **how)


# next_word

LOGITS = [math.log(p) for p in (0.1, 0.4, 0.2, 0.3)]


def picks(*settings):
    """The word for u = 0, 0.1, ..., 0.9, moved off the borders."""
    found = [chosen.read(LOGITS, *settings, k / 10 + 0.05) for k in range(10)]
    return [choice.order[choice.picked] for choice in found]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((1.0, 0, 1.0), [0, 1, 1, 1, 1, 2, 2, 3, 3, 3]),
        ((0.0, 0, 1.0), [1] * 10),
        ((1.0, 2, 1.0), [1, 1, 1, 1, 1, 1, 3, 3, 3, 3]),
        ((1.0, 0, 0.6), [1, 1, 1, 1, 1, 1, 3, 3, 3, 3]),
        ((1.0, 0, 0.1), [1] * 10),
        ((1.0, 3, 0.7), [1, 1, 1, 1, 1, 1, 3, 3, 3, 3]),  # 0.4 and 0.3 of the 0.9 that are left
    ],
)
def test_u_falls_on_the_words_in_the_order_of_their_ids(settings, expected):
    assert picks(*settings) == expected


def test_the_temperature_comes_first_and_equals_go_by_their_id():
    cold, hot = (chosen.read(LOGITS, t, 0, 0.6, 0.0) for t in (0.5, 5.0))
    assert (len(cold.line), len(hot.line)) == (2, 3)
    assert cold.before == pytest.approx([0.16 / 0.3, 0.3, 0.04 / 0.3, 0.01 / 0.3])
    assert sum(hot.after) == pytest.approx(1)
    assert chosen.read([1.0, 2.0, 2.0, 2.0], 1.0, 2, 1.0, 0.9).line == (0, 1)


def test_far_logits_do_not_overflow():
    found = chosen.read([-1e4, 1e4, 0.0], 0.1, 0, 1.0, 0.99)
    assert (found.order[found.picked], found.after[0]) == (1, 1.0)


@pytest.mark.parametrize(
    "how", [{"temperature": -1.0}, {"top_k": 7}, {"top_p": 0.0}, {"u": 1.0}, {"u": math.nan}]
)
def test_settings_that_are_not_offered_are_refused(how):
    with pytest.raises(ValueError, match="expected"):
        views.next_word(torch.tensor(LOGITS), "abcd", **how)


def test_logits_are_one_row():
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        views.next_word(torch.zeros(1, 4), "abcd")


# rotated_pairs

Q, K = torch.tensor([1.0, 2.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 1.0])


def test_hands_turn_by_the_angles_of_their_pairs():
    pairs = clocks.read(Q, K, 100.0)
    assert [pair.speed for pair in pairs] == pytest.approx([1.0, 0.1])
    # cos(0 + 2 - π/2), and the angle of (2, 1) less that of (1, 1), plus 0.2
    parts = (
        math.cos(2 - math.pi / 2),
        math.sqrt(10) * math.cos(math.atan2(1, 2) - math.pi / 4 + 0.2),
    )
    assert [pair.share(5, 3) for pair in pairs] == pytest.approx(parts)
    assert [pair.share(30, 28) for pair in pairs] == pytest.approx(parts)
    assert sum(pair.share(4, 4) for pair in pairs) == pytest.approx(float(Q @ K))
    check(*clocks.draw(pairs, 4, 0), "Query at 4, key at 4: the score is 3.00.")


@pytest.mark.parametrize(
    ("q", "k", "how", "says"),
    [
        (Q, K[:2], {}, "the same even size"),
        (Q[:3], K[:3], {}, "the same even size"),
        (torch.ones(18), torch.ones(18), {}, "from 2 to 16"),
        (Q[None], K[None], {}, "the same even size"),
        (Q, K, {"position": 41}, "a position of 41"),
        (Q, K, {"position": 2, "distance": 3}, "a distance of 3"),
    ],
)
def test_invalid_pairs_are_refused(q, k, how, says):
    with pytest.raises(ValueError, match=says):
        views.rotated_pairs(q, k, 10.0, **how)
