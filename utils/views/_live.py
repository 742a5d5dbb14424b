"""Shows a view: live with sliders where a kernel answers, as a still image everywhere else."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from utils.figures import mime_bundle, png, show
from utils.style import CSS_DPI

BUILD = "OPEN_THE_HOOD_BUILD"  # set while lessons are executed for committing: images only
Drawing = tuple[Figure, str]


def still(draw: Callable[[], Drawing]) -> None:
    """Show one drawing as an image."""
    figure, alt = draw()
    show(figure, alt=alt)


def can_move() -> bool:
    """Whether a widget would be answered: a Jupyter kernel with ipywidgets, outside the build."""
    if os.environ.get(BUILD):
        return False
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True


def present(
    draw: Callable[..., Drawing], values: Sequence[Any], controls: Callable[[Any], Sequence[Any]]
) -> None:
    """Show `draw(*values)`; live, `draw` gets the controls' values, and is called whenever one moves.

    controls: given the ipywidgets module, makes one widget for each of `values`, holding it.
    """
    figure, alt = draw(*values)
    if not can_move():
        show(figure, alt=alt)
        return
    import ipywidgets
    from IPython.display import publish_display_data

    widgets = list(controls(ipywidgets))
    width = round(figure.get_figwidth() * CSS_DPI)
    picture = ipywidgets.Image(value=png(figure, small=False), format="png", width=width)
    spoken = ipywidgets.HTML(_spoken(alt))

    def redraw(_change: object) -> None:
        figure, alt = draw(*(widget.value for widget in widgets))
        picture.value = png(figure, small=False)
        spoken.value = _spoken(alt)

    for widget in widgets:
        widget.observe(redraw, "value")
    box = ipywidgets.VBox([*widgets, picture, spoken])
    # The image rides along for a page where the widget's model is gone: an exported or a published notebook.
    bundle = mime_bundle(figure, alt=alt)
    bundle |= {k: v for k, v in box._repr_mimebundle_().items() if k != "text/plain"}
    publish_display_data(bundle)


def _spoken(alt: str) -> str:
    """`alt` for screen readers only, announced when it changes: a widget's image carries no alternative text."""
    hide = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap"
    return f'<div role="status" style="{hide}">{html.escape(alt)}</div>'
