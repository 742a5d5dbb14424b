"""Lines of Python beside the passes that the compiler makes of them, with the bytes of each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from utils.instruments.compiling import Pass, written
from utils.notebook.style import INK, KERNEL, MUTED, PARAMETER, RULE, STORAGE
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import listed
from utils.views._slots import cut

MOST_LINES, MOST_PASSES = 12, 8
LEFT, BETWEEN = 400, 56  # room for the lines, and for the wires
ROW, TEXT, BOX, GAP = 30, 14, 58, 12


@dataclass(frozen=True)
class Map:
    """One version: its name, its lines of code, and its passes in order."""

    name: str
    lines: tuple[str, ...]
    passes: tuple[Pass, ...]


def fusion_map(
    versions: Mapping[str, Callable[..., Any]], *args: Any, device: str = "cpu", version: int = 1
) -> None:
    """Show which lines of a function share a pass over memory, for several versions of it.

    versions: name -> function of `args`; each is compiled once and not run. device: "cpu", or
    "cuda" for a GPU that need not be there. version: the one shown, from 1; live, a slider moves
    it. Raises ValueError for none, or for one too long to be drawn.
    """
    if not versions:
        raise ValueError("fusion_map: give at least one version")
    maps = [read(name, function, args, device) for name, function in versions.items()]
    draw(maps, version)
    _interactive.present(
        lambda at: draw(maps, at),
        (version,),
        lambda widgets: [
            widgets.IntSlider(value=version, min=1, max=len(maps), description="version")
        ],
    )


def read(name: str, function: Callable[..., Any], args: Sequence[Any], device: str) -> Map:
    """The lines and the passes of one version."""
    text = inspect.cleandoc("\n" + inspect.getsource(function))
    lines = tuple(re.sub(r"\s*#.*$", "", line) for line in text.splitlines() if line.strip())
    passes = tuple(
        one for module in written(function, *args, device=device) for one in module.passes
    )
    if len(lines) > MOST_LINES or len(passes) > MOST_PASSES:
        raise ValueError(
            f"fusion_map draws up to {MOST_LINES} lines and {MOST_PASSES} passes, "
            f"{name!r} has {len(lines)} and {len(passes)}"
        )
    return Map(name, lines, passes)


def traffic(one: Pass) -> int:
    """The bytes that a pass reads and writes."""
    return sum(one.reads.values()) + sum(one.writes.values())


def draw(maps: Sequence[Map], version: int) -> tuple[Figure, str]:
    """The figure of one version on a sheet that has room for each, and its alternative text."""
    if not 1 <= version <= len(maps):
        raise ValueError(f"version: expected 1 to {len(maps)}, got {version}")
    shown = maps[version - 1]
    top = title_height("one line") + 40
    rows = max(len(one.lines) for one in maps) * ROW
    boxes = max(len(one.passes) for one in maps) * (BOX + GAP)
    canvas = Canvas(top + max(rows, boxes) + 14)
    canvas.title(cut(sentence(shown), INNER, size=18))
    right = MARGIN + LEFT + BETWEEN
    canvas.text(MARGIN, top - 18, "your lines", size=TEXT, colour=MUTED)
    canvas.text(right, top - 18, "what shares a pass", size=TEXT, colour=MUTED)
    _draw_wires(canvas, shown, top, right)
    for row, line in enumerate(shown.lines):
        indent = 14 * ((len(line) - len(line.lstrip())) // 4)
        text = cut(line.strip(), LEFT - indent - 8, size=TEXT, mono=True)
        used = any(line.strip() in one.lines for one in shown.passes)
        colour = INK if used else MUTED
        canvas.text(
            MARGIN + indent, top + ROW * row + 12, text, size=TEXT, mono=True, colour=colour
        )
    for row, one in enumerate(shown.passes):
        _draw_pass(canvas, one, row, right, top + (BOX + GAP) * row)
    return canvas.finish(), describe(maps, version)


def _draw_pass(canvas: Canvas, one: Pass, row: int, x: float, y: float) -> None:
    wide = MARGIN + INNER - x
    part = PARAMETER if one.library else KERNEL
    canvas.boxes([(x, y, wide, BOX)], [part.tint], edge=part.colour, radius=6)
    kind = "a library's" if one.library else f"pass {row + 1}"
    named = cut(f"{kind}: {', '.join(one.operators)}", wide - 20, size=TEXT)
    canvas.text(x + 10, y + 18, named, size=TEXT)
    canvas.text(x + 10, y + 41, moved(one), size=TEXT, colour=INK)


def _draw_wires(canvas: Canvas, shown: Map, top: float, right: float) -> None:
    ways = []
    start = MARGIN + LEFT + 2
    for row, one in enumerate(shown.passes):
        into = top + (BOX + GAP) * row + BOX / 2
        for k, line in enumerate(shown.lines):
            if line.strip() in one.lines:
                y, bend = top + ROW * k + 12, right - 14 - 5 * row
                straight = abs(y - into) < 1
                bends = [] if straight else [(bend, y), (bend, into)]
                ways.append([(start, into if straight else y), *bends, (right - 2, into)])
    canvas.wires(ways, colour=STORAGE.colour)
    for k, line in enumerate(shown.lines):
        if any(line.strip() in one.lines for one in shown.passes):
            y = top + ROW * k + 12
            canvas.line([(MARGIN, y + 13), (MARGIN + LEFT, y + 13)], colour=RULE)


def moved(one: Pass) -> str:
    """What a pass reads and writes, in words."""
    return f"reads {_size(sum(one.reads.values()))}, writes {_size(sum(one.writes.values()))}"


def _size(number: int) -> str:
    for unit, power in (("MB", 6), ("kB", 3)):
        if number >= 10**power:
            return f"{number / 10**power:.3g} {unit}"
    return f"{number} B"


def sentence(shown: Map) -> str:
    """How many passes a version takes, as the figure's title."""
    passes = "1 pass" if len(shown.passes) == 1 else f"{len(shown.passes)} passes"
    return f"{shown.name}: {passes}, {_size(sum(map(traffic, shown.passes)))} read and written."


def describe(maps: Sequence[Map], version: int) -> str:
    """The alternative text: the version's passes with their lines, and the others in a sentence."""
    shown = maps[version - 1]
    parts = [f"Lines and passes. {sentence(shown)}"]
    for row, one in enumerate(shown.passes):
        kind = "by a library" if one.library else "a loop of the compiler's"
        lines = listed([f"“{line}”" for line in one.lines]) or "no line"
        parts.append(
            f"Pass {row + 1}, {kind}: {listed(one.operators)}; from {lines}; {moved(one)}."
        )
    parts += [sentence(other) for other in maps if other is not shown]
    return " ".join(parts)
