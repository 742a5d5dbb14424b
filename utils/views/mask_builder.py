"""Which query sees which key: the mask of some queries over keys, and the reason for each pair."""

from __future__ import annotations

from collections.abc import Sequence

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, MUTED, RULE, STORAGE, VIEW
from utils.views._canvas import MARGIN, Canvas, Drawing
from utils.views._controls import slider, switch
from utils.views._numbers import count
from utils.views._text_outlines import clipped
from utils.views._view import present, will_move

MOST = 12  # keys
LEFT, CELL, HIGH = MARGIN + 150, 50, 32
PAD = "<pad>"
# The reasons why a query does not see a key. The picture gives the first reason that applies.
SEEN, PADDING, FUTURE, FAR = "seen", "padding", "future", "too far back"
MARKS = {  # the word, ink and fill of each reason
    SEEN: ("yes", VIEW.on, VIEW.colour),
    PADDING: ("pad", MUTED, IDLE),
    FUTURE: ("later", INK, GRADIENT.tint),
    FAR: ("far", MUTED, CARD),
}


def mask_builder(
    words: Sequence[str], *, new: int | None = None, padding: int = 0, window: int = 0
) -> None:
    """Show which keys each query sees.

    In a live view, controls set the number of queries, the padding, the window, and whether the
    mask is causal.

    words: the words of a row, without padding. Words and padding together are 1 to 12 keys.
    new: the number of last keys that are also queries, by default all. The other keys are in the
        cache.
    padding: the number of positions of padding before the words.
    window: the number of keys that a query sees, including itself, or 0 for all keys.

    Raises ValueError for settings outside these bounds.
    """
    keys = padding + len(words)
    rows = keys if new is None else new
    if not (words and 1 <= rows <= keys <= MOST and padding >= 0 and window >= 0):
        raise ValueError(
            f"mask_builder: expected words and padding of 1 to {MOST} places, and 1 to {keys} "
            f"queries, got {rows} queries, {len(words)} words, a padding of {padding} and a "
            f"window of {window}"
        )
    # All pictures of a live view have the height of the highest picture.
    least = MOST if will_move() else 0
    present(
        lambda rows, padding, far, causal: draw(
            words, min(rows, padding + len(words)), causal, padding, far, least
        ),
        slider("queries", rows, 1, MOST),
        slider("padding", padding, 0, MOST - len(words)),
        slider("window", window, 0, max(MOST, window)),
        switch("causal", True),
    )


def read(keys: int, new: int, causal: bool, padding: int, window: int) -> list[list[str]]:
    """Return the result for each query and key. The last `new` of the `keys` are the queries."""
    return [
        [_fate(query, key, causal, padding, window) for key in range(keys)]
        for query in range(keys - new, keys)
    ]


def _fate(query: int, key: int, causal: bool, padding: int, window: int) -> str:
    if key < padding:
        return PADDING
    if causal and key > query:
        return FUTURE
    return FAR if window and query - key >= window else SEEN


def draw(
    words: Sequence[str], new: int, causal: bool, padding: int, window: int, least: int = 0
) -> Drawing:
    """Draw the mask on a sheet that has room for at least `least` rows."""
    every = [PAD] * padding + list(words)
    keys = len(every)
    fates = read(keys, new, causal, padding, window)
    seen, blind = sum(row.count(SEEN) for row in fates), sum(SEEN not in row for row in fates)
    pairs = new * keys
    told = "every query sees something"
    if blind:
        told = f"{blind} {'query sees' if blind == 1 else 'queries see'} nothing at all"
    verb = "is" if pairs == 1 else "are"
    canvas = Canvas(f"{seen} of {count(pairs, 'pair')} {verb} seen; {told}.")
    top = canvas.top + 58
    for key, word in enumerate(every):
        ink = MUTED if key < keys - new else INK
        x, y = LEFT + (key + 0.5) * CELL, top - 38 + 20 * (key % 2)
        canvas.text(x, y, clipped(word), ink, "center")
    parts = [f"A mask of {new} queries by {keys} keys. {canvas.title}"]
    for row, fate in enumerate(fates):
        y, place = top + row * HIGH, keys - new + row
        canvas.text(LEFT - 10, y + HIGH / 2, f"{clipped(every[place])} {place}", ha="right")
        for key, one in enumerate(fate):
            mark, ink, fill = MARKS[one]
            canvas.box((LEFT + key * CELL, y, CELL, HIGH), fill, edge=RULE)
            canvas.text(LEFT + (key + 0.5) * CELL, y + HIGH / 2, mark, ink, "center")
        sees = ", ".join(str(key) for key, one in enumerate(fate) if one == SEEN) or "nothing"
        parts.append(f"“{every[place]}” at place {place} sees {sees}.")
    cached = LEFT + (keys - new) * CELL
    canvas.line([(cached, top - 6), (cached, top + new * HIGH + 6)], STORAGE.colour, 2)
    y = top + max(new, least) * HIGH + 26
    canvas.line([(MARGIN + 4, y - 9), (MARGIN + 4, y + 9)], STORAGE.colour, 2)
    told = "left of the blue line: earlier keys; right of it: the keys of the queries themselves"
    canvas.text(MARGIN + 18, y, told, MUTED)
    return canvas.finish(y + 22, " ".join(parts))
