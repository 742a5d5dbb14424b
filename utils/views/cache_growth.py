"""A cache of keys and values as a strip that grows word by word, with its bytes and FLOPs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from torch import Tensor

from utils.minigpt.config import MiniGPTConfig
from utils.notebook.style import GRADIENT, IDLE, INK, MUTED, RULE, STORAGE, VIEW, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT, Axes
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import human_bytes, si

LEFT, ROW, HIGH, GAP = 120, 18, 170, 74
LAYERS = 4  # that have rows of their own
CONTEXTS = range(2, 129)


@dataclass(frozen=True)
class Strip:
    """What a cache holds for each word, and what a word costs with it and without."""

    layers: int
    bytes_a_word: int  # in all layers, of all sequences
    with_cache: tuple[int, ...]  # FLOPs of the step that reads word 1, 2, ...
    without: tuple[int, ...]  # of a whole pass over so many words


def cache_growth(
    cache: Sequence[tuple[Tensor, Tensor]],
    config: MiniGPTConfig,
    *,
    prompt: int = 1,
    words: int | None = None,
) -> None:
    """Show a cache at some number of words; live, the number and the prompt's length move.

    cache: for each layer keys and values, (B, H, T, d) each. config: the model's. prompt: words
    that are read at once, in the first step. words: by default as many as the cache holds.
    Raises ValueError for a cache of another form, or words outside of the context.
    """
    strip = read(cache, config)
    at = cache[0][0].shape[2] if words is None else words
    draw(strip, prompt, at)
    context = len(strip.without)
    _interactive.present(
        lambda first, now: draw(strip, min(first, now), now),
        (prompt, at),
        lambda widgets: [
            widgets.IntSlider(value=prompt, min=1, max=context, description="prompt"),
            widgets.IntSlider(value=at, min=1, max=context, description="words"),
        ],
    )


def read(cache: Sequence[tuple[Tensor, Tensor]], config: MiniGPTConfig) -> Strip:
    """The facts of a cache; the FLOPs are those of a model of this config."""
    if len(cache) != config.n_layers:
        raise ValueError(f"expected a cache of {config.n_layers} layers, got {len(cache)}")
    for keys, values in cache:
        if keys.dim() != 4 or keys.shape != values.shape or not keys.numel():
            raise ValueError(
                f"expected keys and values of one shape (B, H, T, d), got {tuple(keys.shape)} and "
                f"{tuple(values.shape)}"
            )
    if config.context not in CONTEXTS:
        raise ValueError(f"cache_growth draws a context of 2 to 128, got {config.context}")
    each = sum(k.nbytes // k.shape[2] + v.nbytes // v.shape[2] for k, v in cache)
    rows = cache[0][0].shape[0]
    places = range(1, config.context + 1)
    return Strip(
        len(cache),
        each,
        tuple(rows * flops(config, 1, t) for t in places),
        tuple(rows * flops(config, t, t) for t in places),
    )


def flops(config: MiniGPTConfig, new: int, keys: int) -> int:
    """FLOPs of the products of a forward over `new` words that look at `keys`, for one row."""
    width, layers = config.d_model, config.n_layers
    block = 2 * (4 * width**2 + 2 * width * config.d_ff) * new + 4 * width * new * keys
    return layers * block + 2 * width * config.vocab_size * new


def spent(strip: Strip, prompt: int, words: int) -> tuple[int, int]:
    """FLOPs so far, with the cache and without, where the prompt is read in one pass."""
    first = strip.without[prompt - 1]
    later = slice(prompt, words)
    return first + sum(strip.with_cache[later]), first + sum(strip.without[later])


def draw(strip: Strip, prompt: int, words: int) -> tuple[Figure, str]:
    """The figure after some words, and its alternative text."""
    context = len(strip.without)
    if not 1 <= prompt <= words <= context:
        raise ValueError(
            f"cache_growth: expected 1 <= prompt <= words <= {context}, got a prompt of {prompt} "
            f"and {words} words"
        )
    top = title_height("one line") + 30
    shown = min(strip.layers, LAYERS)
    canvas = Canvas(top + 2 * shown * ROW + GAP + HIGH + 70)
    canvas.title(sentence(strip, words))
    right = WIDTH - MARGIN - 8
    cell = (right - LEFT) / context
    told = f"the cache, {human_bytes(strip.bytes_a_word)} a word: pale the prompt, green the newest"
    canvas.text(LEFT, top - 16, told, size=TEXT, colour=MUTED)
    newest = range(words) if words == prompt else range(words - 1, words)
    for row in range(2 * shown):
        y = top + row * ROW
        if row % 2 == 0:
            name = f"layer {row // 2 + 1}"
            canvas.text(LEFT - 34, y + ROW, name, size=TEXT, colour=INK, ha="right")
        canvas.text(LEFT - 10, y + ROW / 2, "kv"[row % 2], size=TEXT, colour=MUTED, ha="right")
        for some, fill in (
            (range(words, context), IDLE),
            (range(prompt), STORAGE.tint),
            (range(prompt, words), STORAGE.colour),
            (newest, VIEW.colour),
        ):
            boxes = [(LEFT + k * cell, y + 1, cell, ROW - 2) for k in some]
            canvas.boxes(boxes, [fill] * len(boxes), edge=RULE, line=0.6)
    low = top + 2 * shown * ROW + GAP
    span = strip.with_cache[0] / 2, 2 * strip.without[-1]
    x_span = 0.5, context + 0.5
    plot = Axes(canvas, LEFT, low, right - LEFT, HIGH, x=x_span, y=span, log=True)
    powers = range(math.ceil(math.log10(span[0])), int(math.log10(span[1])) + 1)
    plot.grid_y([10.0**p for p in powers], [si(10.0**p, "FLOP") for p in powers])
    canvas.text(LEFT, low - 38, "FLOPs of the step that reads this word:", size=TEXT, colour=MUTED)
    canvas.text(LEFT, low - 18, "all words once more", size=TEXT, colour=GRADIENT.colour)
    canvas.text(
        LEFT + 170, low - 18, "the new one alone, with the cache", size=TEXT, colour=VIEW.colour
    )
    places = range(1, context + 1)
    plot.curve(places, strip.without, colour=GRADIENT.colour)
    plot.curve(places, strip.with_cache, colour=VIEW.colour)
    x = plot.px(words)
    for start, end in ((top - 4, low - 52), (low - 8, low + HIGH)):  # not through the words between
        canvas.line([(x, start), (x, end)], colour=INK, line=1.2, dashed=True)
    for values, part in ((strip.without, GRADIENT), (strip.with_cache, VIEW)):
        canvas.marker(x, plot.py(values[words - 1]), "o", size=9, fill=part.colour)
    step = next(s for s in (4, 8, 16, 32) if context / s <= 9)
    ticks = list(range(step, context, step))
    plot.labels_x(ticks, [str(t) for t in ticks])
    canvas.text(right, plot.bottom + 16, "words", size=TEXT, colour=MUTED, ha="right")
    canvas.text(MARGIN, plot.bottom + 46, so_far(strip, prompt, words), size=TEXT, colour=INK)
    return canvas.finish(), describe(strip, prompt, words)


def so_far(strip: Strip, prompt: int, words: int) -> str:
    """What all steps have taken, with the cache and without."""
    kept, again = spent(strip, prompt, words)
    return (
        f"So far, the prompt of {prompt} in one pass: {si(kept, 'FLOP')}; without a cache "
        f"{si(again, 'FLOP')}, {again / kept:.1f} times as much."
    )


def sentence(strip: Strip, words: int) -> str:
    """The cache's size and what it saves at this word, as the figure's title."""
    ratio = strip.without[words - 1] / strip.with_cache[words - 1]
    size = human_bytes(strip.bytes_a_word * words)
    noun = "word" if words == 1 else "words"
    return f"{words} {noun}: {size} kept, and this step is {ratio:.1f} times cheaper for it."


def describe(strip: Strip, prompt: int, words: int) -> str:
    """The alternative text: bytes, the step's FLOPs, and those of all steps so far."""
    at = words - 1
    return (
        f"A cache of {strip.layers} layers. {sentence(strip, words)} Each word adds "
        f"{human_bytes(strip.bytes_a_word)}. The step that reads word {words} takes "
        f"{si(strip.with_cache[at], 'FLOP')} with the cache and {si(strip.without[at], 'FLOP')} "
        f"without. {so_far(strip, prompt, words)}"
    )
