"""The calls that one call makes, nested, and the slots that each of them passes.

Of one of them it is told at which keys it was dispatched, to which kernels, and from which files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from utils.instruments import dispatch
from utils.instruments.dispatch import Call
from utils.notebook.style import CARD, IDLE, INK, MUTED, PARAMETER, RULE
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Box, Canvas, title_height
from utils.views._numbers import count, listed
from utils.views._slots import LAYERS, OPENED, Chip, chip_width, cut, draw_chips, held, layer
from utils.views._text_outlines import text_width

MOST = 15  # calls in one picture
BAR, BETWEEN, INDENT, INSET, TEXT, SMALL = 26, 3, 14, 4, 14, 13
ROW = BAR + BETWEEN  # what a call takes of the height, wherever it stands
GAP = 5  # between the chips of a call
TOLD, LINE = 15, 26  # the words for the lit call, and its rows


@dataclass(frozen=True)
class Bar:
    """A call that is drawn: how deep it lies, the drawn calls inside, and how many are not."""

    depth: int
    call: Call
    rows: int
    hidden: int


def dispatch_bars(function: Callable[..., Any], *args: Any) -> None:
    """Show the operators that `function(*args)` calls, nested, and the slots each call passes.

    The function is called once. Live, how deep to look and which call to tell of can be moved, and
    where to begin when there are many calls.

    Raises:
        ValueError: if no operator is called.
    """
    calls = dispatch.trace(function, *args)
    if not calls:
        raise ValueError("dispatch_bars: no operator was called")
    deepest, start = depth_of(calls), fitting(calls)
    pages = len(calls) > MOST
    # A sheet that moves keeps the height of its fullest picture.
    total = sum(1 for call in calls for _ in call.walk())
    rows = min(total, MOST) if _interactive.will_move() else 0
    _interactive.present(
        lambda depth, lit, first=1: draw(calls, depth, first - 1, rows, lit - 1),
        (start, 1, 1) if pages else (start, 1),
        lambda widgets: [
            widgets.IntSlider(value=start, min=1, max=deepest, description="depth"),
            widgets.IntSlider(value=1, min=1, max=max(1, rows), description="tell of line"),
            *(
                [widgets.IntSlider(value=1, min=1, max=len(calls), description="from call")]
                if pages
                else []
            ),
        ],
    )


def depth_of(calls: Sequence[Call]) -> int:
    """How deep the calls nest: 1 where none has another inside."""
    return 1 + max(depth for call in calls for depth, _ in call.walk())


def fitting(calls: Sequence[Call]) -> int:
    """Return the largest depth at which all calls fit into one picture, at least 1."""
    depths = [depth for call in calls for depth, _ in call.walk()]
    fits = [
        deep
        for deep in range(1, depth_of(calls) + 1)
        if sum(depth < deep for depth in depths) <= MOST
    ]
    return max(fits, default=1)


def bars(calls: Sequence[Call], depth: int) -> list[Bar]:
    """Return the calls down to a depth, the first MOST of them."""
    found: list[Bar] = []

    def walk(call: Call, at: int) -> None:
        place = len(found)
        found.append(Bar(at, call, 0, 0))
        if at + 1 < depth:
            for inner in call.calls:
                if len(found) < MOST:
                    walk(inner, at + 1)
        rows = len(found) - place
        everything = sum(1 for _ in call.walk())
        found[place] = Bar(at, call, rows, everything - rows)

    for call in calls:
        if len(found) < MOST:
            walk(call, 0)
    return found


def draw(
    calls: Sequence[Call], depth: int, first: int = 0, rows: int = 0, lit: int = 0
) -> tuple[Figure, str]:
    """The figure down to a depth, from the first-th outermost call on; and its alternative text.

    Args:
        rows: how many calls the sheet has room for, if there are fewer.
        lit: which of the drawn calls is told of; the last where there are fewer.
    """
    words = sentence(calls)
    top = title_height(words) + 38
    shown = bars(calls[first:], depth)
    below = top + ROW * max(rows, len(shown)) + (34 if len(calls) > MOST else 14)
    canvas = Canvas(below + LINE * (1 + _longest(calls)) + 16)
    canvas.title(words)
    _draw_legend(canvas, calls, top - 22)
    tops = _tops(shown, top)
    for depth_now in range(1 + max(bar.depth for bar in shown)):
        some = [k for k, bar in enumerate(shown) if bar.depth == depth_now]
        canvas.boxes(
            [_box(shown, tops, k) for k in some],
            [_fill(shown[k]) for k in some],
            edge=RULE,
            radius=4,
        )
    lit = min(lit, len(shown) - 1)
    x = MARGIN + INDENT * shown[lit].depth
    box = (x, tops[lit], MARGIN + INNER - INSET * shown[lit].depth - x, BAR)
    canvas.boxes([box], ["none"], edge=INK, line=2, radius=4)
    chips_x = MARGIN + INNER - 12 - _widest(calls)
    chips = []
    for bar, y in zip(shown, tops, strict=True):
        x = MARGIN + INDENT * bar.depth + 8
        _draw_call(canvas, bar, x, y + BAR / 2, chips_x - 10 - x)
        at = chips_x
        for entry in bar.call.path:
            chips.append(Chip(at, y + BAR / 2, entry.key, layer(entry)))
            at += chips[-1].width(SMALL) + GAP
    draw_chips(canvas, chips, size=SMALL)
    _draw_rest(canvas, calls, shown, first, top + ROW * len(shown) + 8)
    _draw_lit(canvas, shown[lit].call, below + 8)
    return canvas.finish(), describe(shown, words, shown[lit].call)


def _tops(shown: Sequence[Bar], top: float) -> list[float]:
    """Where each bar begins: below the one before, and below the ends of those that end there."""
    found, ends = [], [k + bar.rows for k, bar in enumerate(shown)]
    for k in range(len(shown)):
        found.append(top + BAR * k + BETWEEN * sum(end <= k for end in ends[:k]))
    return found


def _box(shown: Sequence[Bar], tops: Sequence[float], k: int) -> Box:
    """Return a bar with room for those inside it."""
    bar, x = shown[k], MARGIN + INDENT * shown[k].depth
    last = k + bar.rows - 1
    inside = sum(j + shown[j].rows - 1 == last for j in range(k + 1, last + 1))
    return (
        x,
        tops[k],
        MARGIN + INNER - INSET * bar.depth - x,
        tops[last] + BAR + BETWEEN * inside - tops[k],
    )


def _fill(bar: Bar) -> str:
    if bar.call.path and layer(bar.call.path[-1]) is OPENED:
        return PARAMETER.tint
    return IDLE if bar.depth % 2 else CARD


def _draw_call(canvas: Canvas, bar: Bar, x: float, y: float, room: float) -> None:
    name = cut(bar.call.name, room, size=TEXT, mono=True)
    canvas.text(x, y, name, size=TEXT, mono=True)
    x += text_width(name, size=TEXT, mono=True) + 10
    room -= text_width(name, size=TEXT, mono=True) + 10
    inside = f"+ {bar.hidden} inside" if bar.hidden else ""
    need = text_width(inside, size=SMALL) + 10 if inside else 0
    shapes = " ".join(map(written, filter(None, bar.call.shapes)))
    if room - need > 40:
        shapes = cut(shapes, room - need, size=SMALL)
        canvas.text(x, y, shapes, size=SMALL, colour=MUTED)
        x += text_width(shapes, size=SMALL) + 10 if shapes else 0
    if need <= room:
        canvas.text(x, y, inside, size=SMALL, colour=MUTED)


def _draw_rest(
    canvas: Canvas, calls: Sequence[Call], shown: Sequence[Bar], first: int, y: float
) -> None:
    outermost = sum(bar.depth == 0 for bar in shown)
    after = len(calls) - first - outermost
    words = [f"{first} before"] * bool(first) + [f"+ {after} more"] * bool(after > 0)
    if words:
        outer = "outermost calls, with what is inside them"
        canvas.text(MARGIN + 8, y, f"{', '.join(words)} {outer}", size=SMALL, colour=MUTED)


def dispatched(call: Call) -> str:
    """At which keys a call was dispatched, as a heading of the slots that it passed."""
    if not call.path:
        return f"{call.name} is no operator: nothing is looked up."
    return f"{call.name} was dispatched at {listed(call.keys)}:"


def _draw_lit(canvas: Canvas, call: Call, y: float) -> None:
    """The keys of the lit call, and of each slot that it passed what it holds and its file."""
    canvas.text(MARGIN, y, cut(dispatched(call), INNER, size=TOLD), size=TOLD)
    kinds_x = MARGIN + 62 + max((chip_width(e.key, size=SMALL) for e in call.path), default=0)
    files_x = kinds_x + 8 + max((text_width(held(e), size=TEXT) for e in call.path), default=0)
    chips = []
    for number, entry in enumerate(call.path):
        y += LINE
        canvas.text(MARGIN, y, "then" if number else "wins", size=TEXT, colour=MUTED)
        chips.append(Chip(MARGIN + 48, y, entry.key, layer(entry)))
        canvas.text(kinds_x, y, held(entry), size=TEXT)
        room = MARGIN + INNER - files_x - 8
        canvas.text(files_x + 8, y, cut(place_of(entry), room, size=TEXT), size=TEXT, colour=MUTED)
    draw_chips(canvas, chips, size=SMALL)


def place_of(entry: dispatch.Entry) -> str:
    """Return the file and the line in which a slot was registered."""
    return f"{entry.file}:{entry.line}"


def _longest(calls: Sequence[Call]) -> int:
    """Return the most slots that one call passes."""
    return max(len(call.path) for top in calls for _, call in top.walk())


def _draw_legend(canvas: Canvas, calls: Sequence[Call], y: float) -> None:
    used = {layer(entry) for call in calls for _, inner in call.walk() for entry in inner.path}
    x, chips = float(MARGIN), []
    for kind in LAYERS:
        if kind in used:
            chips.append(Chip(x, y, kind.name, kind))
            x += chips[-1].width(SMALL) + 10
    draw_chips(canvas, chips, size=SMALL)


def _widest(calls: Sequence[Call]) -> float:
    """Return the room that the chips of one call need at most."""
    return max(
        sum(chip_width(entry.key, size=SMALL) + GAP for entry in inner.path)
        for call in calls
        for _, inner in call.walk()
    )


def written(shape: tuple[int, ...]) -> str:
    """Return a shape as Python writes it."""
    return str(shape)


def sentence(calls: Sequence[Call]) -> str:
    """What the bars show, as the figure's title."""
    every = [(depth, call) for top in calls for depth, call in top.walk()]
    autograd = sum(any(e.kind == "autograd kernel" for e in call.path) for _, call in every)
    opened = sum(bool(call.path) and layer(call.path[-1]) is OPENED for _, call in every)
    deep = 1 + max(depth for depth, _ in every)
    passed = "pass" if autograd != 1 else "passes"
    verb = "is a composite" if opened == 1 else "are composites"
    return (
        f"{count(len(every), 'call')}, {deep} deep: {autograd} {passed} autograd's kernel, "
        f"{opened} {verb}."
    )


def describe(shown: Sequence[Bar], words: str, lit: Call) -> str:
    """The alternative text: each drawn call with its shapes and slots, and the lit one's files."""
    slots = ", then ".join(f"{e.key} ({held(e)}, {place_of(e)})" for e in lit.path)
    told = f"{dispatched(lit)} {slots}.".replace(". .", ".")
    return " ".join([f"Dispatched calls. {words}", told, *_told(shown)])


def _told(shown: Sequence[Bar]) -> Iterator[str]:
    for bar in shown:
        shapes = " ".join(map(written, filter(None, bar.call.shapes)))
        slots = " to ".join(
            f"{entry.key} ({layer(entry).name})" if layer(entry) is OPENED else entry.key
            for entry in bar.call.path
        )
        hidden = f", {bar.hidden} more inside" if bar.hidden else ""
        told = f"Level {bar.depth + 1}: {bar.call.name} {shapes}".rstrip()
        yield f"{told}{f', {slots}' if slots else ''}{hidden}."
