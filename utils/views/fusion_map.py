"""Lines of Python beside the passes that the compiler makes from them, with each pass's bytes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utils.instruments.compiling import Pass, written
from utils.notebook.style import INK, KERNEL, MUTED, PARAMETER, STORAGE
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import listed, require, si
from utils.views._text_outlines import cut
from utils.views._view import present

MOST_LINES, MOST_PASSES = 12, 8
LEFT, BETWEEN = 400, 56  # room for the lines, and for the wires
ROW, BOX, GAP = 30, 58, 12


@dataclass(frozen=True)
class Map:
    """One version: its name, its lines of code, and its passes in order."""

    name: str
    lines: tuple[str, ...]
    passes: tuple[Pass, ...]

    def __str__(self) -> str:
        passes = "1 pass" if len(self.passes) == 1 else f"{len(self.passes)} passes"
        traffic = sum(sum((*p.reads.values(), *p.writes.values())) for p in self.passes)
        return f"{self.name}: {passes}, {si(traffic, 'B')} read and written."


def fusion_map(
    versions: Mapping[str, Callable[..., Any]], *args: Any, device: str = "cpu", version: int = 1
) -> None:
    """Show which lines of a function share a pass over memory, for several versions of it.

    In a live view, a slider chooses the version.

    versions: name -> function of `args`. Each function is compiled once, and not run.
    device: "cpu", or "cuda" for a GPU. This machine needs no such GPU.
    version: the number of the version that is shown first, from 1.

    Raises ValueError if there is no version, or if a version is too long to be drawn.
    """
    if not versions:
        raise ValueError("fusion_map: give at least one version")
    moved = slider("version", version, 1, len(versions))
    maps = [read(name, function, args, device) for name, function in versions.items()]
    present(lambda at: draw(maps, at), moved)


def read(name: str, function: Callable[..., Any], args: Sequence[Any], device: str) -> Map:
    text = inspect.cleandoc("\n" + inspect.getsource(function))
    lines = tuple(re.sub(r"\s*#.*$", "", line) for line in text.splitlines() if line.strip())
    passes = tuple(
        one for module in written(function, *args, device=device) for one in module.passes
    )
    require(f"fusion_map of {name!r}", len(lines), "lines", MOST_LINES)
    require(f"fusion_map of {name!r}", len(passes), "passes", MOST_PASSES, 0)
    return Map(name, lines, passes)


def draw(maps: Sequence[Map], version: int) -> Drawing:
    """Draw one version, on a sheet that has room for every version."""
    shown = maps[version - 1]
    canvas = Canvas(cut(str(shown), INNER, size=18))
    top, right = canvas.top + 40, MARGIN + LEFT + BETWEEN
    canvas.text(MARGIN, top - 18, "your lines", MUTED)
    canvas.text(right, top - 18, "what shares a pass", MUTED)
    ways, wide = [], RIGHT - right
    for row, one in enumerate(shown.passes):
        y = top + (BOX + GAP) * row
        for k, line in enumerate(shown.lines):
            if line.strip() in one.lines:
                start, end = top + ROW * k + 12, y + BOX / 2
                bend = right - 14 - 5 * row
                bends = [(bend, start), (bend, end)]
                if abs(start - end) < 1:
                    start, bends = end, []
                ways.append([(MARGIN + LEFT + 2, start), *bends, (right - 2, end)])
    canvas.wires(ways, STORAGE.colour)
    used = {line for one in shown.passes for line in one.lines}
    for row, line in enumerate(shown.lines):
        y, code = top + ROW * row + 12, line.strip()
        if code in used:
            canvas.line([(MARGIN, y + 13), (MARGIN + LEFT, y + 13)])
        indent = 14 * ((len(line) - len(line.lstrip())) // 4)
        text = cut(code, LEFT - indent - 8, mono=True)
        canvas.text(MARGIN + indent, y, text, INK if code in used else MUTED, mono=True)
    parts = [f"Lines and passes. {shown}"]
    for row, one in enumerate(shown.passes, 1):
        part, y = PARAMETER if one.library else KERNEL, top + (BOX + GAP) * (row - 1)
        canvas.box((right, y, wide, BOX), part.tint, edge=part.colour, radius=6)
        kind = "a library's" if one.library else f"pass {row}"
        canvas.text(right + 10, y + 18, cut(f"{kind}: {', '.join(one.operators)}", wide - 20))
        reads, writes = (si(sum(some.values()), "B") for some in (one.reads, one.writes))
        canvas.text(right + 10, y + 41, f"reads {reads}, writes {writes}")
        kind = "by a library" if one.library else "a loop of the compiler's"
        lines = listed([f"“{line}”" for line in one.lines]) or "no line"
        parts.append(
            f"Pass {row}, {kind}: {listed(one.operators)}; from {lines}; "
            f"reads {reads}, writes {writes}."
        )
    rows = max(len(one.lines) for one in maps) * ROW
    boxes = max(len(one.passes) for one in maps) * (BOX + GAP)
    others = [str(other) for other in maps if other is not shown]
    return canvas.finish(top + max(rows, boxes) + 14, " ".join([*parts, *others]))
