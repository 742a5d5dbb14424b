"""A cache of keys and values as a strip that grows word by word, with its bytes and FLOPs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from utils.minigpt.config import MiniGPTConfig
from utils.notebook.style import GRADIENT, IDLE, INK, MUTED, RULE, STORAGE, VIEW
from utils.views._canvas import MARGIN, RIGHT, Axes, Canvas, Drawing, decades, round_steps
from utils.views._numbers import count, human_bytes, si
from utils.views._view import present

LEFT, END, ROW, HIGH, GAP = 120, RIGHT - 8, 18, 170, 74


@dataclass(frozen=True)
class Strip:
    """The bytes of a cache for each word, and the FLOPs of a word with and without the cache."""

    layers: int
    bytes_a_word: int  # bytes in all layers, of all sequences
    with_cache: tuple[int, ...]  # FLOPs of the step that reads word 1, 2, ...
    without: tuple[int, ...]  # FLOPs of a whole pass over 1, 2, ... words


def cache_growth(
    cache: Sequence[tuple[Tensor, Tensor]], config: MiniGPTConfig, *, prompt: int = 1
) -> None:
    """Show the bytes of a cache, and for each word how much cheaper the cache makes its step.

    cache: for each layer, the keys and the values, each (B, H, T, d).
    config: the model's config.
    prompt: the number of words that the first step reads at once.

    Raises ValueError for a cache of another form, or for a prompt that is longer than the cache.
    """
    strip = read(cache, config)
    at, context = cache[0][0].shape[2], len(strip.without)
    if not 1 <= prompt <= at <= context:
        raise ValueError(
            f"cache_growth: expected 1 <= prompt <= words <= {context}, got a prompt of {prompt} "
            f"and {at} words"
        )
    present(lambda: draw(strip, prompt, at))


def read(cache: Sequence[tuple[Tensor, Tensor]], config: MiniGPTConfig) -> Strip:
    """Return the bytes of a cache, and the FLOPs of a model with this config."""
    if len(cache) != config.n_layers:
        raise ValueError(f"expected a cache of {config.n_layers} layers, got {len(cache)}")
    for keys, values in cache:
        if keys.dim() != 4 or keys.shape != values.shape or not keys.numel():
            raise ValueError(
                f"expected keys and values of one shape (B, H, T, d), got {tuple(keys.shape)} and "
                f"{tuple(values.shape)}"
            )
    each = sum(k.nbytes // k.shape[2] + v.nbytes // v.shape[2] for k, v in cache)
    rows, places = cache[0][0].shape[0], range(1, config.context + 1)
    kept, again = (
        tuple(rows * flops(config, t if whole else 1, t) for t in places) for whole in (0, 1)
    )
    return Strip(len(cache), each, kept, again)


def flops(config: MiniGPTConfig, new: int, keys: int) -> int:
    """Return the FLOPs of the products in a forward of one row: `new` words that see `keys`."""
    width, layers = config.d_model, config.n_layers
    block = 2 * (4 * width**2 + 2 * width * config.d_ff) * new + 4 * width * new * keys
    return layers * block + 2 * width * config.vocab_size * new


def spent(strip: Strip, prompt: int, words: int) -> tuple[int, int]:
    """Return the FLOPs up to a word, with and without the cache. One pass reads the prompt."""
    first = strip.without[prompt - 1]
    later = slice(prompt, words)
    return first + sum(strip.with_cache[later]), first + sum(strip.without[later])


def draw(strip: Strip, prompt: int, words: int) -> Drawing:
    context, size = len(strip.without), human_bytes(strip.bytes_a_word * words)
    kept, again = strip.with_cache[words - 1], strip.without[words - 1]
    canvas = Canvas(
        f"{count(words, 'word')}: {size} kept, so this step is {again / kept:.1f} times cheaper."
    )
    top = canvas.top + 30
    cell, each = (END - LEFT) / context, human_bytes(strip.bytes_a_word)
    canvas.text(
        LEFT, top - 16, f"the cache, {each} a word: the prompt is pale, the newest green", MUTED
    )
    newest = range(words) if words == prompt else range(words - 1, words)
    for row in range(2 * strip.layers):
        y = top + row * ROW
        if row % 2 == 0:
            canvas.text(LEFT - 34, y + ROW, f"layer {row // 2 + 1}", ha="right")
        canvas.text(LEFT - 10, y + ROW / 2, "kv"[row % 2], MUTED, "right")
        for some, fill in (
            (range(words, context), IDLE),
            (range(prompt), STORAGE.tint),
            (range(prompt, words), STORAGE.colour),
            (newest, VIEW.colour),
        ):
            for k in some:
                canvas.box((LEFT + k * cell, y + 1, cell, ROW - 2), fill, edge=RULE, line=0.6)
    low = top + 2 * strip.layers * ROW + GAP
    x, span = (0.5, context + 0.5), (strip.with_cache[0] / 2, 2 * strip.without[-1])
    plot = Axes(canvas, LEFT, low, END - LEFT, HIGH, x=x, y=span, log="y")
    plot.grid_y(decades(*span), lambda power: si(power, "FLOP"))
    canvas.text(LEFT, low - 38, "FLOPs of the step that reads this word:", MUTED)
    canvas.text(LEFT, low - 18, "all words again", GRADIENT.colour)
    canvas.text(LEFT + 170, low - 18, "only the new word, with the cache", VIEW.colour)
    at = plot.px(words)
    # the line must not cross the text between its ends
    for start, end in ((top - 4, low - 52), (low - 8, low + HIGH)):
        canvas.line([(at, start), (at, end)], INK, 1.2, dashed=True)
    curves = ((strip.without, GRADIENT), (strip.with_cache, VIEW))
    for values, part in curves:
        plot.curve(range(1, context + 1), values, part.colour)
    for values, part in curves:
        canvas.marker(at, plot.py(values[words - 1]), "o", 9, part.colour, edge=INK)
    cheaper = []
    for place in (int(step) for step in round_steps(1, context)):
        factor = f"{strip.without[place - 1] / strip.with_cache[place - 1]:.0f}×"
        ends = plot.py(strip.without[place - 1]), plot.py(strip.with_cache[place - 1])
        if place != words and ends[1] - ends[0] > 40:  # room for the words between the curves
            canvas.line([(plot.px(place), end) for end in ends], MUTED)
            canvas.text(plot.px(place) + 6, sum(ends) / 2, factor, MUTED)
            cheaper.append(f"{factor} at word {place}")
    plot.steps_x("words", END)
    so_far, anew = spent(strip, prompt, words)
    in_all = (
        f"So far, with a prompt of {prompt} in one pass: {si(so_far, 'FLOP')}. Without a cache: "
        f"{si(anew, 'FLOP')}, {anew / so_far:.1f} times as much."
    )
    canvas.text(MARGIN, plot.bottom + 46, in_all)
    return canvas.finish(
        plot.bottom + 70,
        f"A cache of {strip.layers} layers. {canvas.title} Each word adds {each}. The step that "
        f"reads word {words} takes {si(kept, 'FLOP')} with the cache and {si(again, 'FLOP')} "
        f"without. How many times cheaper: {', '.join(cheaper) or 'too little to draw'}. {in_all}",
    )
