"""The row of Matplotlib's figures in the table of kinds. A description is sent, not the picture.

A figure, or its axes, is described by texts, lines, bars, points, images and limits. Both the
learner's and the reference's figure reach a check in this form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from hood.judge.values.kind import Composed, NotByValue

MAX_DRAWN = 100  # axes of a figure, and lines, bars, points or images of one of its axes


class Drawn:
    """What a figure or axes show: ``figure["axes"][0]["title"]``; :func:`drawn` lists the keys."""

    def __init__(self, content: dict[str, Any]):
        self.content = content

    def __getitem__(self, key: str) -> Any:
        return self.content[key]


class FigureKind(Composed):
    tag, type = "figure", (Figure, Axes, Drawn)
    watched = False

    def parts(self, value: Any) -> dict[str, Any]:
        return value.content if isinstance(value, Drawn) else drawn(value)

    def made(self, parts: Any) -> Drawn:
        if type(parts) is not dict or not all(type(key) is str for key in parts):
            raise NotByValue("a message with a figure of an unexpected form")
        return Drawn(parts)

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        return list(self.parts(value).items())

    def words(self, value: Any) -> str:
        return "a figure"


def drawn(value: Figure | Axes) -> dict[str, Any]:
    """Return what a figure, or one of its axes, shows.

    A figure has ``title`` and ``axes``. Axes have ``title``, ``x label``, ``y label``, ``x scale``,
    ``y scale``, ``x limits``, ``y limits``, ``legend`` (its texts, or None), ``texts``, ``lines``,
    ``bars``, ``points`` and ``images`` (arrays). A line has ``label``, and the float64 arrays ``x``
    and ``y``. A group of bars has ``label``, ``x`` (the centres) and ``height``. A group of points
    has ``label``, ``x`` and ``y``.

    Raises NotByValue for more than 100 axes, or more than 100 lines, bars, points or images in one
    of the axes.
    """
    if isinstance(value, Figure):
        title = value.get_suptitle()
        return {"title": title, "axes": [_axes(one) for one in _few(value.axes, "axes")]}
    return _axes(value)


def _axes(axes: Axes) -> dict[str, Any]:
    legend = axes.get_legend()
    groups = [one for one in axes.containers if isinstance(one, BarContainer)]
    scattered = [one for one in axes.collections if np.size(one.get_offsets())]
    return {
        "title": axes.get_title(),
        "x label": axes.get_xlabel(),
        "y label": axes.get_ylabel(),
        "x scale": axes.get_xscale(),
        "y scale": axes.get_yscale(),
        "x limits": [float(one) for one in axes.get_xlim()],
        "y limits": [float(one) for one in axes.get_ylim()],
        "legend": legend and [one.get_text() for one in legend.get_texts()],
        "texts": [one.get_text() for one in _few(axes.texts, "texts")],
        "lines": [
            {
                "label": _label(line),
                "x": _numbers(line.get_xdata()),
                "y": _numbers(line.get_ydata()),
            }
            for line in _few(axes.lines, "lines")
        ],
        "bars": [
            {
                "label": _label(group),
                "x": _numbers([bar.get_x() + bar.get_width() / 2 for bar in group]),
                "height": _numbers([bar.get_height() for bar in group]),
            }
            for group in _few(groups, "groups of bars")
        ],
        "points": [
            {
                "label": _label(group),
                "x": _numbers(np.asarray(group.get_offsets())[:, 0]),
                "y": _numbers(np.asarray(group.get_offsets())[:, 1]),
            }
            for group in _few(scattered, "groups of points")
        ],
        "images": [np.asarray(image.get_array()) for image in _few(axes.images, "images")],
    }


def _few(found: Any, what: str) -> list[Any]:
    if len(found) > MAX_DRAWN:
        raise NotByValue(f"a figure with more than {MAX_DRAWN} {what}")
    return list(found)


def _label(artist: Any) -> str:
    """Return an artist's label, or an empty text for the label that Matplotlib made."""
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _numbers(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64).ravel()


KINDS = (FigureKind(),)
