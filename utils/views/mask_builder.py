"""Who may look where: the mask of some queries over their keys, and what hides each pair."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, MUTED, RULE, STORAGE, VIEW
from utils.views import _interactive
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import count
from utils.views._text_outlines import clipped

MOST = 12  # keys
LABEL, CELL, HIGH, TEXT = 150, 50, 32, 14
PAD = "<pad>"
# Why a query does not see a key; the first that holds is told.
SEEN, PADDING, FUTURE, FAR = "seen", "padding", "future", "too far back"


def mask_builder(
    words: Sequence[str],
    *,
    new: int | None = None,
    causal: bool = True,
    padding: int = 0,
    window: int | None = None,
) -> None:
    """Show which keys each query sees; live, all settings move.

    words: the words of a row, without padding; they and the padding are 1 to 12 keys. new: how
    many of the keys, the last ones, are queries, by default all; the others are in the cache.
    padding: places of padding before the words. window: a query sees so many keys, itself among
    them; None for all.
    Raises ValueError for settings outside these bounds.
    """
    rows = padding + len(words) if new is None else new
    far = window or 0
    draw(words, rows, causal, padding, far)
    # A sheet that moves keeps the height of its fullest picture.
    least = MOST if _interactive.will_move() else 0
    _interactive.present(
        lambda rows, padding, far, causal: draw(
            words, min(rows, padding + len(words)), causal, padding, far, least
        ),
        (rows, padding, far, causal),
        lambda widgets: [
            widgets.IntSlider(value=rows, min=1, max=MOST, description="queries"),
            widgets.IntSlider(value=padding, min=0, max=MOST - len(words), description="padding"),
            widgets.IntSlider(value=far, min=0, max=MOST, description="window"),
            widgets.Checkbox(value=causal, description="causal", indent=False),
        ],
    )


def read(keys: int, new: int, causal: bool, padding: int, window: int) -> list[list[str]]:
    """For each query, one of the last `new` of `keys` places, what becomes of each key."""
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
) -> tuple[Figure, str]:
    """The figure, and its alternative text. least: rows that the sheet has room for, or more."""
    keys = padding + len(words)
    if not (words and 1 <= new <= keys <= MOST and padding >= 0 and window >= 0):
        raise ValueError(
            f"mask_builder: expected words and padding of 1 to {MOST} places, and 1 to {keys} "
            f"queries, got {new} queries, {len(words)} words, a padding of {padding} and a "
            f"window of {window}"
        )
    fates = read(keys, new, causal, padding, window)
    every = [PAD] * padding + list(words)
    top = title_height("one line") + 58
    canvas = Canvas(top + max(new, least) * HIGH + 48)
    canvas.title(sentence(fates))
    left = MARGIN + LABEL
    for key, word in enumerate(every):
        x, y = left + (key + 0.5) * CELL, top - 38 + 20 * (key % 2)
        ink = MUTED if key < keys - new else INK
        canvas.text(x, y, clipped(word), size=TEXT, colour=ink, ha="center")
    for row, fate in enumerate(fates):
        y = top + row * HIGH
        place = keys - new + row
        label = f"{clipped(every[place])} {place}"
        canvas.text(left - 10, y + HIGH / 2, label, size=TEXT, ha="right")
        cells = [(left + key * CELL, y, CELL, HIGH) for key in range(keys)]
        canvas.boxes(cells, [_fill(one) for one in fate], edge=RULE)
        for key, one in enumerate(fate):
            mark, ink = MARKS[one]
            canvas.text(
                left + (key + 0.5) * CELL, y + HIGH / 2, mark, size=TEXT, colour=ink, ha="center"
            )
    cached = left + (keys - new) * CELL
    canvas.line([(cached, top - 6), (cached, top + new * HIGH + 6)], colour=STORAGE.colour, line=2)
    _legend(canvas, top + max(new, least) * HIGH + 26)
    return canvas.finish(), describe(every, fates)


MARKS = {
    SEEN: ("yes", VIEW.on),
    PADDING: ("pad", MUTED),
    FUTURE: ("later", INK),
    FAR: ("far", MUTED),
}


def _fill(fate: str) -> str:
    return {SEEN: VIEW.colour, PADDING: IDLE, FUTURE: GRADIENT.tint, FAR: CARD}[fate]


def _legend(canvas: Canvas, y: float) -> None:
    canvas.line([(MARGIN + 4, y - 9), (MARGIN + 4, y + 9)], colour=STORAGE.colour, line=2)
    words = "left of the blue line: keys from before; right of it: those of the queries themselves"
    canvas.text(MARGIN + 18, y, words, size=TEXT, colour=MUTED)


def sentence(fates: Sequence[Sequence[str]]) -> str:
    """How many pairs are seen, and whether a query is left with nothing, as the title."""
    pairs = sum(map(len, fates))
    seen = sum(row.count(SEEN) for row in fates)
    blind = sum(SEEN not in row for row in fates)
    told = f"{seen} of {count(pairs, 'pair')} {'is' if pairs == 1 else 'are'} seen"
    if not blind:
        return f"{told}; every query sees something."
    return f"{told}; {blind} {'query sees' if blind == 1 else 'queries see'} nothing at all."


def describe(words: Sequence[str], fates: Sequence[Sequence[str]]) -> str:
    """The alternative text: for each query the places that it sees."""
    parts = [f"A mask of {len(fates)} queries by {len(words)} keys. {sentence(fates)}"]
    for row, fate in enumerate(fates):
        place = len(words) - len(fates) + row
        seen = [str(key) for key, one in enumerate(fate) if one == SEEN]
        parts.append(f"“{words[place]}” at place {place} sees {', '.join(seen) or 'nothing'}.")
    return " ".join(parts)
