"""Text as outlines, which are measured and placed exactly, and drawn all together.

matplotlib lays out each string separately, which takes about a millisecond. But a view has a
hundred strings, and is redrawn while a slider moves. So this module makes the outlines of a string
once, and draws them as filled paths.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

import numpy as np
from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.path import Path

from utils.notebook.style import DENSITY

FAMILIES = {False: "DejaVu Sans", True: "DejaVu Sans Mono"}
MIDDLE = 0.36  # from the baseline to the middle of a digit, relative to the font size
ALIGN = {"left": 0.0, "center": 0.5, "right": 1.0}
_EM = 1000  # outlines are made at this size, then scaled


def text_width(words: str, *, size: float = 14, mono: bool = False) -> float:
    """Return the width of one line of text in CSS pixels."""
    return sum(_step(letter, mono, size) for letter in words)


def text_path(
    x: float, baseline: float, words: str, *, size: float, mono: bool = False, ha: str = "left"
) -> Path:
    """Return a line of text as a path, where y grows downward.

    ha: "left", "center" or "right", the part of the line that is at x.
    """
    vertices, codes = _line(words, mono, size)
    width = text_width(words, size=size, mono=mono)
    at = np.array([_snap(x - ALIGN[ha] * width), _snap(baseline)])
    return Path(vertices + at, codes)


def wrap(words: str, width: float, *, size: float, mono: bool = False) -> list[str]:
    """Break `words` into lines of at most `width` CSS pixels. A longer word stays whole."""
    lines: list[str] = []
    for word in words.split():
        if lines and text_width(f"{lines[-1]} {word}", size=size, mono=mono) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


@lru_cache
def _face(mono: bool) -> FT2Font:
    face = FT2Font(font_manager.findfont(FontProperties(family=FAMILIES[mono])))
    face.set_size(_EM, 72)
    return face


@lru_cache(maxsize=512)
def _glyph(letter: str, mono: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the outline of a letter for a font size of 1: vertices, codes, advance.

    y grows downward.
    """
    face = _face(mono)
    glyph = face.load_char(ord(letter), flags=LoadFlags.NO_HINTING)
    vertices, codes = face.get_path()
    flipped = np.asarray(vertices, float) / (_EM, -_EM)
    return flipped, np.asarray(codes, np.uint8), glyph.linearHoriAdvance / 65536 / _EM


@lru_cache(maxsize=4096)
def _line(words: str, mono: bool, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a line of text that begins at (0, 0): vertices, codes."""
    vertices, codes, x = [np.empty((0, 2))], [np.empty(0, np.uint8)], 0.0
    for letter in words:
        shape, kinds, _ = _glyph(letter, mono)
        vertices.append(shape * size + (x, 0))
        codes.append(kinds)
        x += _step(letter, mono, size)
    return np.concatenate(vertices), np.concatenate(codes)


@lru_cache(maxsize=4096)
def _step(letter: str, mono: bool, size: float) -> float:
    """Return the CSS pixels from one letter to the next.

    Letters are on whole pixels of the bitmap, so that a letter always looks the same. This makes
    the text sharper, and halves the size of the PNG.
    """
    return max(_snap(_glyph(letter, mono)[2] * size), 1 / DENSITY)


def _snap(length: float) -> float:
    return round(length * DENSITY) / DENSITY


def cut(
    words: str, width: float, *, size: float = 14, mono: bool = False, middle: bool = True
) -> str:
    """Return `words`, cut off if they are wider than `width` CSS pixels.

    middle: whether to cut off the middle of the words. Otherwise the end is cut off.
    """
    shorter = (
        f"{words[: keep - keep // 2]}…{words[-(keep // 2) :]}" if middle else f"{words[:keep]}…"
        for keep in range(len(words) - 1, 2 if middle else 0, -1)
    )
    fits = (
        one for one in chain([words], shorter) if text_width(one, size=size, mono=mono) <= width
    )
    return next(fits, "…")


def clipped(word: str) -> str:
    """Return a word with at most eleven letters."""
    return word if len(word) <= 11 else word[:10] + "…"
