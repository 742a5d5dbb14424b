"""A Triton kernel's lines beside the instructions that the compiler made from each line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from utils.notebook.style import INK, KERNEL, MUTED
from utils.softmax.compiled import Compiled
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import count
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

ROW, CODE = 20, 12  # CSS pixels: the distance of two lines, and the font size
HIGH = ROW - 2  # height of a lit line's background
LEFT = 400  # room for the kernel's text
MOST = 60  # if there are more instructions, only the instructions of the lit line are drawn
FOLDED, LINES = 13, 13  # then: the font size, and the number of lines in each of two columns
COUNT_W, BAR_W = 34, 70  # the number of a line's instructions, and its bar


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction and its line in the kernel; the kernel's `def` is line 1."""

    text: str
    line: int


def kernel_ptx(kernel: Any, code: Compiled, *, line: int | None = None) -> None:
    """Show the PTX instructions of each line of a kernel, with one line lit.

    In a live view, a slider chooses the line.

    kernel: the result of `@triton.jit`.
    code: the result of `compile_kernel` for this kernel.
    line: the number of the lit line, where `def` is line 1. By default it is a line with the most
        instructions.

    Raises ValueError if the kernel has no such line.
    """
    text = source_lines(kernel)
    found = instructions(code.ptx)
    if line is None:
        line = max(range(1, len(text) + 1), key=lambda k: sum(one.line == k for one in found))
    present(lambda at: draw(text, found, at), slider("line", line, 1, len(text)))


def source_lines(kernel: Any) -> list[str]:
    """Return the kernel's lines from its `def` on, without indentation and comments."""
    text = inspect.cleandoc("\n" + inspect.getsource(getattr(kernel, "fn", kernel)))
    begin = re.search(r"^def ", text, re.MULTILINE)
    assert begin is not None
    text = text[begin.start() :]
    return [re.sub(r"\s*#.*$", "", line) for line in text.rstrip().splitlines()]


def instructions(ptx: str) -> list[Instruction]:
    """Return the instructions in order.

    In PTX, `.loc` states the source line of the instructions after it. If an instruction comes from
    a function of Triton's language, its line is the line of the kernel that called the function.
    The comment beside `.loc` ends with this line, as in "standard.py:263:15 @[ kernel.py:11:18 ]".
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


def draw(text: Sequence[str], found: Sequence[Instruction], line: int) -> Drawing:
    own = [one for one in found if one.line == line]
    became = f"became {count(len(own), 'instruction')} of {len(found)}"
    canvas = Canvas(f"Line {line} {became if own else 'became no instruction'}.")
    told = "; ".join(one.text.rstrip(";") for one in own)
    told = f" became: {told}." if own else " became no instruction."
    alt = f"A kernel beside its PTX. {canvas.title} Line {line}, {text[line - 1].strip()},{told}"
    top = canvas.top + 34
    if len(found) > MOST:
        each = [sum(one.line == k for one in found) for k in range(1, len(text) + 1)]
        every = "; ".join(f"line {k}, {n}" for k, n in enumerate(each, 1) if n)
        bottom = _draw_folded(canvas, top, text, found, line, each)
        return canvas.finish(bottom, f"{alt} Instructions of each line: {every}.")
    canvas.note(MARGIN + 26, top - 20, "the kernel")
    right = MARGIN + LEFT + 76
    canvas.note(right, top - 20, "the instructions of one thread, and the line of each")
    lit = [row for row, one in enumerate(found) if one.line == line]
    wide, begin = RIGHT - right + 8, top + (line - 1) * ROW
    canvas.box((MARGIN, begin - HIGH / 2, LEFT, HIGH), KERNEL.tint, radius=4)
    for row in lit:
        canvas.box((right - 8, top + row * ROW - HIGH / 2, wide, HIGH), KERNEL.tint, radius=4)
    from_x, to_x = MARGIN + LEFT, right - 34
    firsts = [row for row in lit if row - 1 not in lit]
    lasts = [row for row in lit if row + 1 not in lit]
    for first, last in zip(firsts, lasts, strict=True):
        y, middle = top + (first + last) / 2 * ROW, (from_x + to_x) / 2
        bends = [] if begin == y else [(middle, begin), (middle, y)]
        canvas.wires([[(from_x, begin), *bends, (to_x, y)]], KERNEL.colour)
        ends = top + first * ROW - HIGH / 2, top + last * ROW + HIGH / 2
        canvas.line([(to_x, ends[0]), (to_x, ends[1])], KERNEL.colour, 2.4)
    for row, words in enumerate(text):
        y = top + row * ROW
        canvas.note(MARGIN + 16, y, f"{row + 1}", "right")
        _code(canvas, MARGIN + 26, y, words, LEFT - 34, row + 1 == line)
    for row, one in enumerate(found):
        y = top + row * ROW
        canvas.note(right - 14, y, f"{one.line}", "right")
        _code(canvas, right, y, one.text, wide - 12, one.line == line)
    every = " ".join(f"{one.line}: {one.text}" for one in found)
    high = ROW * max(len(found), len(text)) + 18
    return canvas.finish(top + high, f"{alt} All, by their lines: {every}")


def _draw_folded(
    canvas: Canvas,
    top: float,
    text: Sequence[str],
    found: Sequence[Instruction],
    line: int,
    each: Sequence[int],
) -> float:
    """Draw a long kernel: the instruction count of each line, and the lit line's instructions."""
    by_line = [folded([one for one in found if one.line == k]) for k in range(1, len(text) + 1)]
    lines = min(-(-max(map(len, by_line)) // 2), LINES)
    canvas.text(MARGIN, top - 22, "the kernel", MUTED, size=FOLDED)
    canvas.text(RIGHT, top - 22, "instructions of one thread", MUTED, "right", size=FOLDED)
    ground = (MARGIN - 6, top + (line - 1) * ROW - HIGH / 2, INNER + 12, HIGH)
    canvas.box(ground, KERNEL.tint, radius=4)
    for row, (words, n) in enumerate(zip(text, each, strict=True)):
        y, wide = top + row * ROW, BAR_W * n / max(each)
        canvas.box((RIGHT - COUNT_W - wide, y - 5, wide, 10), KERNEL.colour)
        canvas.text(MARGIN + 16, y, f"{row + 1}", MUTED, "right", size=FOLDED)
        room, lit = INNER - COUNT_W - BAR_W - 36, row + 1 == line
        _code(canvas, MARGIN + 26, y, words, room, lit, FOLDED)
        canvas.text(RIGHT, y, f"{n}", INK if lit else MUTED, "right", size=FOLDED)
    half = top + ROW * (len(text) + 1)
    canvas.line([(MARGIN, half - 8), (RIGHT, half - 8)])
    canvas.text(MARGIN, half + 8, f"line {line} became", MUTED, size=FOLDED)
    own, column, most = by_line[line - 1], INNER / 2, 2 * lines
    for k, (one, times) in enumerate(own[: most - (len(own) > most)]):
        x, y = MARGIN + column * (k // lines), half + 34 + ROW * (k % lines)
        _code(canvas, x + 36, y, one.text, column - 40, True, FOLDED)
        if times > 1:
            canvas.text(x + 28, y, f"{times} ×", MUTED, "right", size=FOLDED)
    if len(own) > most:
        rest = f"… {sum(times for _, times in own[most - 1 :])} more"
        x, y = MARGIN + column + 36, half + 34 + ROW * (lines - 1)
        canvas.text(x, y, rest, MUTED, size=FOLDED)
    return half + 42 + ROW * lines


def folded(found: Sequence[Instruction]) -> list[tuple[Instruction, int]]:
    """Return instructions with counts: repeats of one, or of two in turn, are joined."""
    rows: list[tuple[Instruction, int]] = []
    names = [opcode(one.text) for one in found]
    k = 0
    while k < len(found):
        for wide in (1, 2, 1):
            times = 1
            while names[k + times * wide : k + (times + 1) * wide] == names[k : k + wide]:
                times += 1
            if times > 1:
                break
        rows += [(one, times) for one in found[k : k + wide]]
        k += wide * times
    return rows


def opcode(text: str) -> str:
    return re.sub(r"^@\S+ ", "", text).split()[0]


def _code(
    canvas: Canvas, x: float, y: float, words: str, room: float, lit: bool, size: float = CODE
) -> None:
    words = cut(words, room, size=size, mono=True, middle=False)
    indent = len(words) - len(words.lstrip())
    x += indent * text_width("0", size=size, mono=True)
    canvas.text(x, y, words.lstrip(), INK if lit else MUTED, size=size, mono=True)
