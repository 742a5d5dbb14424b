"""A Triton kernel's lines beside the instructions that the compiler made of each."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from utils.softmax.compiled import Compiled
from utils.style import INK, KERNEL, MUTED
from utils.views import _live
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count
from utils.views._type import text_width

ROW, CODE = 20, 12  # CSS pixels from line to line, and the letters' size
LEFT = 400  # room for the kernel's text
MOST = 60  # instructions; further ones are counted and left out


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction and the line of the kernel it comes from, counted from its `def` as 1."""

    text: str
    line: int


def kernel_ptx(kernel: Any, code: Compiled, *, line: int | None = None) -> None:
    """Show which PTX instructions each line of a kernel became, with one line lit.

    kernel: what `@triton.jit` returned; code: what `compile_kernel` made of it.
    line: the line to light, its `def` being line 1; by default one that became the most
    instructions. Live, a slider moves it. Raises ValueError for a line that the kernel hasn't.
    """
    text = source_lines(kernel)
    found = instructions(code.ptx)
    if line is None:
        line = max(range(1, len(text) + 1), key=lambda k: sum(one.line == k for one in found))
    draw(text, found, line)
    _live.present(
        lambda at: draw(text, found, at),
        (line,),
        lambda widgets: [widgets.IntSlider(value=line, min=1, max=len(text), description="line")],
    )


def source_lines(kernel: Any) -> list[str]:
    """The kernel's lines from its `def` on, without indentation and comments."""
    text = inspect.cleandoc("\n" + inspect.getsource(getattr(kernel, "fn", kernel)))
    begin = re.search(r"^def ", text, re.MULTILINE)
    assert begin is not None
    text = text[begin.start() :]
    return [re.sub(r"\s*#.*$", "", line) for line in text.rstrip().splitlines()]


def instructions(ptx: str) -> list[Instruction]:
    """The instructions in order. PTX's `.loc` says where those that follow it come from."""
    found, line, start = [], 1, None
    for text in ptx.splitlines():
        if place := re.match(r"\s*\.loc\s+\d+\s+(\d+)", text):
            start = int(place[1]) if start is None else start
            line = int(place[1]) - start + 1
        elif re.match(r"\t(@!?%p\d+ )?[a-z]", text):
            found.append(Instruction(re.sub(r"\s+", " ", text.strip()), line))
    return found


def draw(text: list[str], found: list[Instruction], line: int) -> tuple[Figure, str]:
    """The figure with `line` lit, and its alternative text."""
    if not 1 <= line <= len(text):
        raise ValueError(f"line: expected 1 to {len(text)}, got {line}")
    words = sentence(found, line)
    top = title_height(words) + 34
    shown = found[:MOST]
    rows = max(len(shown) + (len(found) > MOST), len(text))
    canvas = Canvas(top + ROW * rows + 18)
    canvas.title(words)
    canvas.note(MARGIN + 26, top - 20, "the kernel")
    right = MARGIN + LEFT + 76
    canvas.note(right, top - 20, "the instructions of one thread, and the line of each")
    lit = [row for row, one in enumerate(shown) if one.line == line]
    high = ROW - 2
    wide = INNER - (right - MARGIN) + 8
    boxes = [(MARGIN, top + (line - 1) * ROW - high / 2, LEFT, high)]
    boxes += [(right - 8, top + row * ROW - high / 2, wide, high) for row in lit]
    canvas.boxes(boxes, [KERNEL.tint] * len(boxes), edge="none", radius=4)
    from_x, to_x = MARGIN + LEFT, right - 34
    for run in _runs(lit):
        y = top + (run[0] + run[-1]) / 2 * ROW
        middle = (from_x + to_x) / 2
        begin = top + (line - 1) * ROW
        way = [(from_x, begin), (middle, begin), (middle, y), (to_x, y)]
        if begin == y:
            way = [(from_x, y), (to_x, y)]
        canvas.wires([way], colour=KERNEL.colour, line=1.6)
        ends = top + run[0] * ROW - high / 2, top + run[-1] * ROW + high / 2
        canvas.line([(to_x, ends[0]), (to_x, ends[1])], colour=KERNEL.colour, line=2.4)
    for row, words_of_line in enumerate(text):
        y = top + row * ROW
        canvas.note(MARGIN + 16, y, f"{row + 1}", ha="right")
        _code(canvas, MARGIN + 26, y, words_of_line, LEFT - 34, row + 1 == line)
    for row, one in enumerate(shown):
        y = top + row * ROW
        canvas.note(right - 14, y, f"{one.line}", ha="right")
        _code(canvas, right, y, one.text, wide - 12, one.line == line)
    if len(found) > MOST:
        canvas.note(right, top + ROW * len(shown), f"… {len(found) - MOST} more")
    return canvas.finish(), describe(text, found, line)


def sentence(found: list[Instruction], line: int) -> str:
    """What the lit line became, as the figure's title."""
    own = sum(one.line == line for one in found)
    if not own:
        return f"Line {line} left no instruction of its own."
    return f"Line {line} became {count(own, 'instruction')} of {len(found)}."


def describe(text: list[str], found: list[Instruction], line: int) -> str:
    """The alternative text: the lit line, what it became, and everything else in order."""
    own = "; ".join(one.text.rstrip(";") for one in found if one.line == line)
    became = f" became: {own}." if own else " left no instruction of its own."
    every = " ".join(f"{one.line}: {one.text}" for one in found[:MOST])
    return (
        f"A kernel beside its PTX. {sentence(found, line)} "
        f"Line {line}, {text[line - 1].strip()},{became} All, by their lines: {every}"
    )


def _code(canvas: Canvas, x: float, y: float, words: str, room: float, lit: bool) -> None:
    while text_width(words, size=CODE, mono=True) > room and len(words) > 2:
        words = words[:-2].rstrip() + "…"
    indent = len(words) - len(words.lstrip())
    x += indent * text_width("0", size=CODE, mono=True)
    canvas.text(x, y, words.lstrip(), size=CODE, colour=INK if lit else MUTED, mono=True)


def _runs(rows: list[int]) -> list[list[int]]:
    """Rows that follow one another, together."""
    found: list[list[int]] = []
    for row in rows:
        if found and row == found[-1][-1] + 1:
            found[-1].append(row)
        else:
            found.append([row])
    return found
