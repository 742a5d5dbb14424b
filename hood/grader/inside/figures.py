"""Show matplotlib's figures as PNG, even if a notebook asks for another format."""

from __future__ import annotations

import contextlib
from typing import Any

from IPython.core.formatters import DisplayFormatter
from IPython.core.pylabtools import print_figure

VECTORS = {"image/svg+xml", "application/pdf"}


class Formats(DisplayFormatter):
    """IPython's display formats, but each SVG or PDF of a figure becomes a PNG.

    An SVG or a PDF can contain code, and a browser may need any amount of time to open it. So pages
    do not show a learner's SVG or PDF. The PNG is made here, within the learner's limits.
    """

    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        shown, about = super().format(obj, include, exclude)
        if VECTORS & shown.keys() and _is_figure(obj):
            # without a PNG, the page names the format that it does not show
            with contextlib.suppress(Exception):
                if not {"image/png", "image/jpeg"} & shown.keys():
                    shown["image/png"] = print_figure(obj, base64=True)
                shown = {kind: data for kind, data in shown.items() if kind not in VECTORS}
        return shown, about


def _is_figure(obj: Any) -> bool:
    from matplotlib.figure import Figure

    return isinstance(obj, Figure)
