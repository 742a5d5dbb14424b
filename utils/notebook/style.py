"""The course's style: a colour and a shape for each kind of object in a figure.

    storage    blue square cell      bytes in memory
    view       green rounded cell    shape, strides and offset laid over a storage
    gradient   vermilion triangle    flows backward
    kernel     amber hexagon         code that runs on a device
    parameter  purple circle         what training changes

The hues are Okabe and Ito's set for colour-blind readers. They are darker, so that white text on
them is readable (with a contrast of at least 4.5). On the amber, text is dark. Each kind also has
its own shape, for readers who can't see the colours. Importing this module changes no setting of
matplotlib.
"""

from __future__ import annotations

from dataclasses import dataclass

INK = "#1f2a37"  # text and the selected item
MUTED = "#5b6675"  # labels and notes; contrast 5.7 on the card
RULE = "#d3d9e0"  # hairlines
IDLE = "#eef0f3"  # cells that no index reaches
CARD = "#fdfdfb"  # the background of every figure, opaque in both themes

CSS_DPI = 100  # one inch of a figure is 100 CSS pixels
DENSITY = 2  # bitmap pixels per CSS pixel
WIDTH = 820  # CSS pixels; fits JupyterLab's notebook column at 100 % zoom


@dataclass(frozen=True)
class Part:
    """The look of one kind of object in a figure."""

    name: str
    colour: str  # the full colour
    tint: str  # the pale colour, for a background under dark text
    on: str  # the colour of text on the full colour
    marker: str  # matplotlib's name of the shape; for a rounded cell, the octagon is the nearest


STORAGE = Part("storage", "#1f6aa5", "#d5e6f3", "#ffffff", "s")
VIEW = Part("view", "#0b7a5e", "#d3ece3", "#ffffff", "8")
GRADIENT = Part("gradient", "#c2471b", "#f8ddd0", "#ffffff", "<")
KERNEL = Part("kernel", "#e3a018", "#faebc6", INK, "h")
PARAMETER = Part("parameter", "#a63f86", "#f4deec", "#ffffff", "o")
# Colours of right and wrong answers. The words of the feedback also say whether an answer is right.
# Figures use other colours.
RIGHT, RIGHT_TINT = "#2e7d32", "#d7ecd9"
WRONG, WRONG_TINT = "#c62838", "#f8d9dc"


def points(pixels: float) -> float:
    """Return CSS pixels in points, the unit of matplotlib's font sizes and line widths."""
    return pixels * 72 / CSS_DPI
