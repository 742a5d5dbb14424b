"""Show a figure with a text for readers who do not see it."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

from IPython.display import HTML

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture(figure: Figure, alt: str) -> HTML:
    """Return a figure as an HTML image with the alternative text ``alt``.

    The build refuses a lesson with an image that has no such text. The figure is closed, so the
    notebook does not show it a second time.
    """
    from matplotlib import pyplot

    held = io.BytesIO()
    figure.savefig(held, dpi=144, bbox_inches="tight")
    pyplot.close(figure)
    data = base64.b64encode(held.getvalue()).decode()
    return HTML(
        f'<img alt="{html.escape(alt)}" style="max-width: 100%; width: 640px" '
        f'src="data:image/png;base64,{data}">'
    )
