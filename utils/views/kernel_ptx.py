"""A Triton kernel's lines beside the instructions that the compiler made of each."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from utils.notebook.style import INK, KERNEL, MUTED
from utils.softmax.compiled import Compiled
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count
from utils.views._text_outlines import text_width

ROW, CODE = 20, 12  # CSS pixels from line to line, and the letters' size
LEFT = 400  # room for the kernel's text
MOST = 60  # instructions that are all drawn; of more, only the lit line's are
FOLDED, LINES = 13, 13  # the letters' size there, and lines in each of two columns
COUNT_W, BAR_W = 34, 70  # the number of a line's instructions, and its bar


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction and the line of the kernel it comes from, counted from its `def` as 1."""

    text: str
    line: int


def kernel_ptx(kernel: Any, code: Compiled, *, line: int | None = None) -> None:
    """Show which PTX instructions each line of a kernel became, with one line lit.

    Args:
        kernel: what `@triton.jit` returned.
        code: what `compile_kernel` made of it.
        line: the line to light, its `def` being line 1; by default one that became the most
            instructions. Live, a slider moves it.

    Raises:
        ValueError: if the kernel has no such line.
    """
    text = source_lines(kernel)
    found = instructions(code.ptx)
    if line is None:
        line = max(range(1, len(text) + 1), key=lambda k: sum(one.line == k for one in found))
    draw(text, found, line)
    _interactive.present(
        lambda at: draw(text, found, at),
        (line,),
        lambda widgets: [widgets.IntSlider(value=line, min=1, max=len(text), description="line")],
    )


def source_lines(kernel: Any) -> list[str]:
    """Return the kernel's lines from its `def` on, without indentation and comments."""
    text = inspect.cleandoc("\n" + inspect.getsource(getattr(kernel, "fn", kernel)))
    begin = re.search(r"^def ", text, re.MULTILINE)
    assert begin is not None
    text = text[begin.start() :]
    return [re.sub(r"\s*#.*$", "", line) for line in text.rstrip().splitlines()]


def instructions(ptx: str) -> list[Instruction]:
    """Return the instructions in order. PTX's `.loc` says where those that follow it come from.

    What a function of the language was compiled into counts to the kernel's line that called it:
    the comment beside `.loc` ends with that one, as in "standard.py:263:15 @[ kernel.py:11:18 ]".
    """
    found, line, start = [], 1, None
    for text in ptx.splitlines():
        if place := re.match(r"\s*\.loc\s+\d+\s+(\d+)", text):
            called = re.findall(r"@\[ \S+:(\d+):\d+", text)
            at = int((called or [place[1]])[-1])
            start = at if start is None else start
            line = at - start + 1
        elif re.match(r"\t(@!?%p\d+ )?[a-z]", text):
            found.append(Instruction(re.sub(r"\s+", " ", text.strip()), line))
    return found


def draw(text: list[str], found: list[Instruction], line: int) -> tuple[Figure, str]:
    """Return the figure with `line` lit, and its alternative text."""
    if not 1 <= line <= len(text):
        raise ValueError(f"line: expected 1 to {len(text)}, got {line}")
    if len(found) > MOST:
        return _draw_folded(text, found, line)
    words = sentence(found, line)
    top = title_height(words) + 34
    shown = found
    rows = max(len(shown), len(text))
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
    return canvas.finish(), describe(text, found, line)


def _draw_folded(text: list[str], found: list[Instruction], line: int) -> tuple[Figure, str]:
    """A long kernel: how much each line became, and only the lit line's instructions, folded."""
    words = sentence(found, line)
    top = title_height(words) + 34
    own = folded([one for one in found if one.line == line])
    longest = max(
        len(folded([one for one in found if one.line == k + 1])) for k in range(len(text))
    )
    each = [sum(one.line == k + 1 for one in found) for k in range(len(text))]
    half, lines = top + ROW * (len(text) + 1), min(-(-longest // 2), LINES)
    canvas = Canvas(half + 30 + ROW * lines + 12)
    canvas.title(words)
    canvas.text(MARGIN, top - 22, "the kernel", size=FOLDED, colour=MUTED)
    edge = MARGIN + INNER
    canvas.text(edge, top - 22, "instructions of one thread", size=FOLDED, colour=MUTED, ha="right")
    high = ROW - 2
    canvas.boxes(
        [(MARGIN - 6, top + (line - 1) * ROW - high / 2, INNER + 12, high)],
        [KERNEL.tint],
        edge="none",
        radius=4,
    )
    bars = [
        (edge - COUNT_W - BAR_W * n / max(each), top + row * ROW - 5, BAR_W * n / max(each), 10)
        for row, n in enumerate(each)
    ]
    canvas.boxes(bars, [KERNEL.colour] * len(bars), edge="none")
    room = INNER - COUNT_W - BAR_W - 36
    for row, words_of_line in enumerate(text):
        y = top + row * ROW
        canvas.text(MARGIN + 16, y, f"{row + 1}", size=FOLDED, colour=MUTED, ha="right")
        _code(canvas, MARGIN + 26, y, words_of_line, room, row + 1 == line, FOLDED)
        canvas.text(
            edge,
            y,
            f"{each[row]}",
            size=FOLDED,
            ha="right",
            colour=INK if row + 1 == line else MUTED,
        )
    canvas.line([(MARGIN, half - 8), (edge, half - 8)])
    canvas.text(MARGIN, half + 8, f"line {line} became", size=FOLDED, colour=MUTED)
    column, most = INNER / 2, 2 * lines
    for k, (one, times) in enumerate(own[: most - (len(own) > most)]):
        x, y = MARGIN + column * (k // lines), half + 34 + ROW * (k % lines)
        _code(canvas, x + 36, y, one.text, column - 40, True, FOLDED)
        if times > 1:
            canvas.text(x + 28, y, f"{times} ×", size=FOLDED, colour=MUTED, ha="right")
    if len(own) > most:
        rest = sum(times for _, times in own[most - 1 :])
        canvas.text(
            MARGIN + column + 36,
            half + 34 + ROW * (lines - 1),
            f"… {rest} more",
            size=FOLDED,
            colour=MUTED,
        )
    return canvas.finish(), describe(text, found, line)


def folded(found: list[Instruction]) -> list[tuple[Instruction, int]]:
    """Instructions that repeat, told once, with how often: runs of one, or of two in turn."""
    rows: list[tuple[Instruction, int]] = []
    k = 0
    while k < len(found):
        for wide in (1, 2):
            times = _repeats([opcode(one.text) for one in found[k:]], wide)
            if times > 1:
                rows += [(one, times) for one in found[k : k + wide]]
                k += wide * times
                break
        else:
            rows.append((found[k], 1))
            k += 1
    return rows


def opcode(text: str) -> str:
    """Return the instruction's name, without its guard and operands."""
    return re.sub(r"^@\S+ ", "", text).split()[0]


def _repeats(names: list[str], wide: int) -> int:
    """How often the first `wide` names come one after the other."""
    times = 1
    while names[times * wide : (times + 1) * wide] == names[:wide]:
        times += 1
    return times


def sentence(found: list[Instruction], line: int) -> str:
    """What the lit line became, as the figure's title."""
    own = sum(one.line == line for one in found)
    if not own:
        return f"Line {line} left no instruction of its own."
    return f"Line {line} became {count(own, 'instruction')} of {len(found)}."


def describe(text: list[str], found: list[Instruction], line: int) -> str:
    """Return the alternative text: the lit line, what it became, and everything else in order."""
    own = "; ".join(one.text.rstrip(";") for one in found if one.line == line)
    became = f" became: {own}." if own else " left no instruction of its own."
    if len(found) > MOST:
        each = ((k + 1, sum(one.line == k + 1 for one in found)) for k in range(len(text)))
        every = "; ".join(f"line {k}, {n}" for k, n in each if n)
        return (
            f"A kernel beside its PTX. {sentence(found, line)} "
            f"Line {line}, {text[line - 1].strip()},{became} Instructions of each line: {every}."
        )
    every = " ".join(f"{one.line}: {one.text}" for one in found)
    return (
        f"A kernel beside its PTX. {sentence(found, line)} "
        f"Line {line}, {text[line - 1].strip()},{became} All, by their lines: {every}"
    )


def _code(
    canvas: Canvas, x: float, y: float, words: str, room: float, lit: bool, size: float = CODE
) -> None:
    while text_width(words, size=size, mono=True) > room and len(words) > 2:
        words = words[:-2].rstrip() + "…"
    indent = len(words) - len(words.lstrip())
    x += indent * text_width("0", size=size, mono=True)
    canvas.text(x, y, words.lstrip(), size=size, colour=INK if lit else MUTED, mono=True)


def _runs(rows: list[int]) -> list[list[int]]:
    """Rows that follow one another, together."""
    found: list[list[int]] = []
    for row in rows:
        if found and row == found[-1][-1] + 1:
            found[-1].append(row)
        else:
            found.append([row])
    return found
