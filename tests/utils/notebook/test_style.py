"""The course's style: readable, distinguishable without colour, and without effects on import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from utils.notebook import style
from utils.notebook.style import CARD, INK, MUTED

PARTS = {name: part for name, part in vars(style).items() if isinstance(part, style.Part)}


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_text_can_be_read_on_each_part(part):
    assert contrast(part.on, part.colour) >= 4.5
    assert contrast(INK, part.tint) >= 7


def test_text_can_be_read_on_the_card():
    assert contrast(INK, CARD) >= 7
    assert contrast(MUTED, CARD) >= 4.5


def test_no_two_parts_look_alike():
    assert len({part.colour for part in PARTS.values()}) == len(PARTS)
    assert len({part.marker for part in PARTS.values()}) == len(PARTS)
    assert len({part.tint for part in PARTS.values()}) == len(PARTS)


def test_parts_differ_for_a_reader_without_red_or_green():
    # Viénot's simplification of deuteranopia: red and green fall onto one mixed channel.
    def seen(colour: str) -> tuple[float, float]:
        red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
        return 0.29 * red + 0.71 * green, float(blue)

    parts = list(PARTS.values())
    for at, one in enumerate(parts):
        for other in parts[at + 1 :]:
            (a, b), (c, d) = seen(one.colour), seen(other.colour)
            distance = ((a - c) ** 2 + (b - d) ** 2) ** 0.5
            assert distance > 30, (one.name, other.name, distance)


@pytest.mark.slow(3)
def test_importing_views_changes_no_setting_and_loads_no_pyplot():
    code = (
        "import matplotlib as m; keys = set(m.rcParams) - {'backend'}; "
        "before = [m.rcParams[k] for k in keys]; import sys, utils.views; "
        "assert [m.rcParams[k] for k in keys] == before; "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_utils_loads_nothing_heavy():
    code = "import utils, sys; assert not {'torch', 'numpy', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
