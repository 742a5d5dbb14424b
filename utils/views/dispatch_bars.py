"""The calls that one call makes, nested, and the slots that each of them passes.

For one call, the picture shows the keys at which it was dispatched, the kernels, and their files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from utils.instruments import dispatch
from utils.instruments.dispatch import COMPOSITE, Call
from utils.notebook.style import CARD, IDLE, INK, MUTED, PARAMETER, RULE
from utils.views._canvas import INNER, MARGIN, RIGHT, Box, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import count, listed
from utils.views._slots import LAYERS, OPENED, chip_width, draw_chip, held, layer
from utils.views._text_outlines import cut, text_width
from utils.views._view import present, will_move

MOST = 15  # calls in one picture
BAR, BETWEEN, INDENT, INSET, SMALL = 26, 3, 14, 4, 13
ROW = BAR + BETWEEN  # the height of a call, at any depth
GAP = 5  # between the chips of a call
TOLD, LINE = 15, 26  # the space for the text about the lit call, and for its rows


@dataclass(frozen=True)
class Bar:
    """A drawn call: its depth, its drawn inner calls, and the number of its hidden inner calls."""

    depth: int
    call: Call
    rows: int
    hidden: int

    @property
    def shapes(self) -> str:
        return " ".join(map(str, filter(None, self.call.shapes)))


def dispatch_bars(function: Callable[..., Any], *args: Any) -> None:
    """Show the nested calls of operators in `function(*args)`, and the slots that each call passes.

    The function is called once. In a live view, controls choose the depth and the described call.
    If there are many calls, another control chooses the first call that is drawn. Raises ValueError
    if no operator is called.
    """
    calls = dispatch.trace(function, *args)
    if not calls:
        raise ValueError("dispatch_bars: no operator was called")
    # All pictures of a live view have the height of the highest picture.
    rows = min(len(walked(calls)), MOST) if will_move() else 0
    pages = [slider("from call", 1, 1, len(calls))] if len(calls) > MOST else []
    present(
        lambda depth, lit, first=1: draw(calls, depth, first - 1, rows, lit - 1),
        slider("depth", fitting(calls), 1, 1 + max(depth for depth, _ in walked(calls))),
        slider("explain line", 1, 1, max(1, rows)),
        *pages,
    )


def walked(calls: Sequence[Call]) -> list[tuple[int, Call]]:
    """Return all calls in order, each with its depth."""
    return [pair for call in calls for pair in call.walk()]


def fitting(calls: Sequence[Call]) -> int:
    """Return the largest depth at which all calls fit into one picture, at least 1."""
    depths = [depth for depth, _ in walked(calls)]
    fits = [d for d in range(1, 2 + max(depths)) if sum(depth < d for depth in depths) <= MOST]
    return max(fits, default=1)


def bars(calls: Sequence[Call], depth: int) -> list[Bar]:
    """Return the calls down to a depth, the first MOST of them."""
    found: list[Bar] = []

    def walk(call: Call, at: int) -> None:
        place = len(found)
        found.append(Bar(at, call, 0, 0))
        for inner in call.calls if at + 1 < depth else ():
            if len(found) < MOST:
                walk(inner, at + 1)
        rows = len(found) - place
        found[place] = Bar(at, call, rows, len(walked([call])) - rows)

    for call in calls:
        if len(found) < MOST:
            walk(call, 0)
    return found


def draw(calls: Sequence[Call], depth: int, first: int = 0, rows: int = 0, lit: int = 0) -> Drawing:
    """Draw the calls down to a depth, from outermost call number `first` on.

    rows: the sheet has room for at least this number of calls.
    lit: the index of the described call among the drawn calls. If it is too large, the last drawn
        call is described.
    """
    every = walked(calls)
    canvas = Canvas(sentence(every))
    top = canvas.top + 38
    shown = bars(calls[first:], depth)
    used = {layer(entry) for _, call in every for entry in call.path}
    x = float(MARGIN)
    for kind in LAYERS:
        if kind in used:
            x = draw_chip(canvas, x, top - 22, kind.name, kind, size=SMALL) + 10
    tops = _tops(shown, top)
    for k, bar in enumerate(shown):  # the calls inside a call come after it
        fill = PARAMETER.tint if _opened(bar.call) else IDLE if bar.depth % 2 else CARD
        canvas.box(_box(shown, tops, k), fill, edge=RULE, radius=4)
    lit = min(lit, len(shown) - 1)
    x, y, wide, _ = _box(shown, tops, lit)
    canvas.box((x, y, wide, BAR), "none", edge=INK, line=2, radius=4)
    told = []
    widest = max(
        sum(chip_width(entry.key, size=SMALL) + GAP for entry in call.path) for _, call in every
    )
    chips_x = RIGHT - 12 - widest
    for bar, y in zip(shown, tops, strict=True):
        x, at = MARGIN + INDENT * bar.depth + 8, chips_x
        _draw_call(canvas, bar, x, y + BAR / 2, chips_x - 10 - x)
        slots = []
        for entry in bar.call.path:
            at = GAP + draw_chip(canvas, at, y + BAR / 2, entry.key, layer(entry), size=SMALL)
            opened = f" ({COMPOSITE})" if layer(entry) is OPENED else ""
            slots.append(f"{entry.key}{opened}")
        name = f"Level {bar.depth + 1}: {bar.call.name} {bar.shapes}".rstrip()
        hidden = f"{bar.hidden} more inside" if bar.hidden else ""
        told.append(f"{', '.join(filter(None, (name, ' to '.join(slots), hidden)))}.")
    after = len(calls) - first - sum(bar.depth == 0 for bar in shown)
    words = [f"{first} before"] * bool(first) + [f"+ {after} more"] * bool(after > 0)
    if words:
        outer = "outermost calls, with the calls inside them"
        y = top + ROW * len(shown) + 8
        canvas.text(MARGIN + 8, y, f"{', '.join(words)} {outer}", MUTED, size=SMALL)
    below = top + ROW * max(rows, len(shown)) + (34 if len(calls) > MOST else 14)
    slots_told = _draw_lit(canvas, shown[lit].call, below + 8)
    longest = max(len(call.path) for _, call in every)
    return canvas.finish(
        below + LINE * (1 + longest) + 16,
        " ".join(["Dispatched calls.", canvas.title, slots_told, *told]),
    )


def _tops(shown: Sequence[Bar], top: float) -> list[float]:
    """Return the top of each bar: below the previous bar, and below the calls that end there."""
    ends = [k + bar.rows for k, bar in enumerate(shown)]
    return [top + BAR * k + BETWEEN * sum(end <= k for end in ends[:k]) for k in range(len(shown))]


def _box(shown: Sequence[Bar], tops: Sequence[float], k: int) -> Box:
    bar, x = shown[k], MARGIN + INDENT * shown[k].depth
    last = k + bar.rows - 1
    inside = sum(j + shown[j].rows - 1 == last for j in range(k + 1, last + 1))
    high = tops[last] + BAR + BETWEEN * inside - tops[k]
    return x, tops[k], RIGHT - INSET * bar.depth - x, high


def _draw_call(canvas: Canvas, bar: Bar, x: float, y: float, room: float) -> None:
    name = cut(bar.call.name, room, mono=True)
    canvas.text(x, y, name, mono=True)
    wide = text_width(name, mono=True) + 10
    x, room = x + wide, room - wide
    inside = f"+ {bar.hidden} inside" if bar.hidden else ""
    need = text_width(inside, size=SMALL) + 10 if inside else 0
    if room - need > 40:
        shapes = cut(bar.shapes, room - need, size=SMALL)
        canvas.text(x, y, shapes, MUTED, size=SMALL)
        x += text_width(shapes, size=SMALL) + 10 if shapes else 0
    if need <= room:
        canvas.text(x, y, inside, MUTED, size=SMALL)


def _draw_lit(canvas: Canvas, call: Call, y: float) -> str:
    """Draw the keys of the lit call, and the content and file of each slot that it passed."""
    if not call.path:
        words = f"{call.name} is not an operator: nothing is looked up."
        canvas.text(MARGIN, y, cut(words, INNER, size=TOLD), size=TOLD)
        return words
    words = f"{call.name} was dispatched at {listed(call.keys)}:"
    canvas.text(MARGIN, y, cut(words, INNER, size=TOLD), size=TOLD)
    kinds_x = MARGIN + 62 + max(chip_width(e.key, size=SMALL) for e in call.path)
    files_x = kinds_x + 16 + max(text_width(held(e)) for e in call.path)
    slots = []
    for number, entry in enumerate(call.path):
        y += LINE
        canvas.text(MARGIN, y, "then" if number else "wins", MUTED)
        draw_chip(canvas, MARGIN + 48, y, entry.key, layer(entry), size=SMALL)
        canvas.text(kinds_x, y, held(entry))
        place = f"{entry.file}:{entry.line}"
        canvas.text(files_x, y, cut(place, RIGHT - files_x), MUTED)
        slots.append(f"{entry.key} ({held(entry)}, {place})")
    return f"{words} {', then '.join(slots)}."


def _opened(call: Call) -> bool:
    return bool(call.path) and layer(call.path[-1]) is OPENED


def sentence(every: Sequence[tuple[int, Call]]) -> str:
    autograd = sum(any(e.kind == "autograd kernel" for e in call.path) for _, call in every)
    opened = sum(_opened(call) for _, call in every)
    deep = 1 + max(depth for depth, _ in every)
    passed = "pass" if autograd != 1 else "passes"
    verb = "is a composite" if opened == 1 else "are composites"
    return (
        f"{count(len(every), 'call')}, {deep} deep: {autograd} {passed} autograd's kernel, "
        f"{opened} {verb}."
    )
