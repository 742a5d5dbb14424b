"""The tiles of an attention table: computed whole, cut by the causal mask, or skipped."""

from __future__ import annotations

from collections.abc import Sequence

from utils.notebook.style import CARD, IDLE, INK, KERNEL, MUTED, RULE, VIEW
from utils.views._canvas import MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import choice, switch
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import wrap
from utils.views._view import present

SIDE, NOTES = 340, 350  # the table's side; the distance of the text's start from the right edge
BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024)
MOST = 24  # tiles along a side
WHOLE, CUT, SKIPPED = "whole", "cut", "skipped"
LOOKS = {WHOLE: (VIEW.colour, VIEW.on), CUT: (KERNEL.colour, INK), SKIPPED: (IDLE, MUTED)}


def causal_tiles(words: int, *, block_q: int, block_k: int, causal: bool = True) -> None:
    """Show which tiles of a T x T table attention computes, if no word sees a later word.

    In a live view, controls set the height and the width of a tile, and switch the causal mask.

    words: T.
    block_q, block_k: the numbers of queries and keys of a tile. They are powers of two from 8 to
        1024, with at most 24 tiles along a side.

    Raises ValueError for other numbers.
    """
    blocks = [size for size in BLOCKS if -(-words // size) <= MOST and size < 2 * words]
    if words < 1 or not blocks:
        most = BLOCKS[-1] * MOST
        raise ValueError(f"causal_tiles: expected 5 to {most} words, got {words}")
    present(
        lambda high, wide, causal: draw(words, high, wide, causal),
        choice("queries of a tile", block_q, blocks),
        choice("keys of a tile", block_k, blocks),
        switch("causal", causal),
    )


def read(words: int, block_q: int, block_k: int, causal: bool) -> list[list[str]]:
    """Return what happens to each tile: rows of queries, columns of keys."""
    table = []
    for top in range(0, words, block_q):
        bottom = min(top + block_q, words) - 1
        row = []
        for left in range(0, words, block_k):
            right = min(left + block_k, words) - 1
            row.append(WHOLE if not causal or right <= top else SKIPPED if left > bottom else CUT)
        table.append(row)
    return table


def draw(words: int, block_q: int, block_k: int, causal: bool) -> Drawing:
    table = read(words, block_q, block_k, causal)
    every = [fate for row in table for fate in row]
    done, cut = len(every) - every.count(SKIPPED), every.count(CUT)
    need = (
        f"{cut} of them {'needs' if cut == 1 else 'need'} the mask" if cut else "none needs a mask"
    )
    verb = "is" if done == 1 else "are"
    canvas = Canvas(f"{done} of {count(len(every), 'tile')} {verb} computed; {need}.")
    x, y = MARGIN + 22, canvas.top + 40
    scale = SIDE / words
    canvas.text(x, y - 16, f"{words:,} keys, and below them {words:,} queries", MUTED)
    for row, fates in enumerate(table):
        high = min(block_q, words - row * block_q) * scale
        for column, fate in enumerate(fates):
            wide = min(block_k, words - column * block_k) * scale
            box = (x + column * block_k * scale, y + row * block_q * scale, wide, high)
            canvas.box(box, LOOKS[fate][0], edge=RULE if fate == SKIPPED else CARD)
    if causal:
        canvas.line([(x, y), (x + SIDE, y + SIDE)], INK, 1.2, dashed=True)
    at = RIGHT - NOTES
    kinds: Sequence[tuple[str, ...]] = (
        ("computed whole", VIEW.colour),
        ("computed, then masked", KERNEL.colour),
        ("skipped: not even loaded", IDLE, RULE),
    )
    for line, kind in enumerate(kinds):
        canvas.legend(at, y + 24 * line, [kind])
    pairs = words * (words + 1) // 2 if causal else words * words
    spent = sum(
        min(block_q, words - r * block_q) * min(block_k, words - c * block_k)
        for r, row in enumerate(table)
        for c, fate in enumerate(row)
        if fate != SKIPPED
    )
    told = (
        f"{words * words:,} scores in the table, {pairs:,} that a word may see, {spent:,} "
        f"computed: {spent / pairs:.2f} times what is needed.",
        f"In float32, the table has {human_bytes(4 * words * words)}, and a tile has "
        f"{human_bytes(4 * block_q * block_k)}.",
    )
    below = y + 100.0
    for sentence in told:
        for text in wrap(sentence, NOTES, size=14):
            canvas.text(at, below, text)
            below += 22
        below += 12
    alt = (
        f"Tiles of {block_q} queries by {block_k} keys. {canvas.title} {every.count(WHOLE)} whole, "
        f"{cut} cut, {every.count(SKIPPED)} skipped. {' '.join(told)}"
    )
    return canvas.finish(y + SIDE + 26, alt)
