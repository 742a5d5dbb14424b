"""Figures of matplotlib as PNG, also where a notebook asks for another format."""

from __future__ import annotations

import contextlib
from typing import Any

from IPython.core.formatters import DisplayFormatter
from IPython.core.pylabtools import print_figure

VECTORS = {"image/svg+xml", "application/pdf"}


class Formats(DisplayFormatter):
    """IPython's formats of what is displayed, but a figure as SVG or PDF becomes a PNG.

    These two are documents: they can hold code, and opening them can take any time. So no page
    of a learner's shows them, and here, where the learner's limits hold, a PNG is drawn.
    """

    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        shown, about = super().format(obj, include, exclude)
        if VECTORS & shown.keys() and _is_figure(obj):
            with contextlib.suppress(Exception):  # then a page says what it does not show
                if not {"image/png", "image/jpeg"} & shown.keys():
                    shown["image/png"] = print_figure(obj, base64=True)
                shown = {kind: data for kind, data in shown.items() if kind not in VECTORS}
        return shown, about


def _is_figure(obj: Any) -> bool:
    from matplotlib.figure import Figure

    return isinstance(obj, Figure)
