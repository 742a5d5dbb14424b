"""Shows a view: live with sliders where a kernel answers, as a still image everywhere else."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from matplotlib.figure import Figure

from utils.notebook.audience import can_move, filming
from utils.notebook.figures import (
    CARD_CLASS,
    DARK_RULE,
    RADIUS,
    jpeg,
    mime_bundle,
    narrowest,
    show,
)
from utils.notebook.style import CSS_DPI

UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
# The page cuts the corners of a picture that moves.
STYLE = f"<style>.{CARD_CLASS} {{ border-radius: {RADIUS}px }} {DARK_RULE}</style>"
CONTROL_WIDTH = "420px"
Drawing = tuple[Figure, str]


def will_move() -> bool:
    """Whether a view will be seen to move: live, or by pictures that are made of it now.

    Its sheet should then keep its size.
    """
    return can_move() or filming()


def present(
    draw: Callable[..., Drawing],
    values: Sequence[Any],
    controls: Callable[[Any], Sequence[Any]],
    tries: Sequence[Sequence[Any]] = (),
) -> None:
    """Show `draw(*values)`; live, draw again from the controls' values whenever one moves.

    Args:
        controls: given the ipywidgets module, makes one widget for each of `values`, holding it. A
            ValueError of `draw` for what was typed into a control is shown above the picture.
        tries: other values to offer on a page without a kernel, where a control takes any.
    """
    figure, alt = draw(*values)
    if values and filming():
        import torch
        from IPython.display import publish_display_data

        from utils.views import _frames

        bundle: dict[str, Any] = dict(mime_bundle(figure, alt=alt))
        with torch.random.fork_rng(devices=[]):  # what comes next draws what it always does
            bundle[_frames.MIME] = _frames.frames(draw, values, controls, tries)
        publish_display_data(bundle)
        return
    if not values or not can_move():
        show(figure, alt=alt)
        return
    import ipywidgets
    from IPython.display import publish_display_data

    widgets = list(controls(ipywidgets))
    width = round(figure.get_figwidth() * CSS_DPI)
    picture = ipywidgets.Image(value=jpeg(figure), format="jpeg", width=width)
    picture.add_class(CARD_CLASS)
    picture.layout.max_width, picture.layout.height = "100%", "auto"
    picture.layout.min_width = f"{narrowest(width)}px"
    window = ipywidgets.Box([picture])
    window.layout.overflow = "auto"
    spoken = ipywidgets.HTML(_spoken(alt))
    trouble = ipywidgets.HTML()

    def redraw(_change: object) -> None:
        try:
            figure, alt = draw(*(widget.value for widget in widgets))
        except ValueError as error:
            trouble.value = html.escape(str(error))
            return
        trouble.value = ""
        picture.value = jpeg(figure)
        spoken.value = _spoken(alt)

    for widget in widgets:
        small = isinstance(widget, ipywidgets.Checkbox)
        widget.layout.width, widget.layout.max_width = "auto" if small else CONTROL_WIDTH, "100%"
        if small:  # a box belongs to the words behind it
            widget.layout.margin = "2px 18px 2px 2px"
        widget.observe(redraw, "value")
    box = ipywidgets.VBox([*_in_rows(widgets, ipywidgets), trouble, window, spoken])
    # The image rides along for a page where no kernel answers: an exported or published notebook.
    live = {kind: data for kind, data in box._repr_mimebundle_().items() if kind != "text/plain"}
    publish_display_data(mime_bundle(figure, alt=alt) | live)


def _in_rows(widgets: Sequence[Any], ipywidgets: Any) -> list[Any]:
    """One control below the other, but checkboxes that follow each other side by side."""
    rows: list[Any] = []
    for small, some in groupby(widgets, lambda widget: isinstance(widget, ipywidgets.Checkbox)):
        if small:
            rows.append(ipywidgets.HBox(list(some)))
            rows[-1].layout.flex_flow = "row wrap"
        else:
            rows += some
    return rows


def _spoken(alt: str) -> str:
    """`alt` for screen readers, read out when it changes: a widget's image carries none itself.

    The style of the picture above comes along.
    """
    return f'{STYLE}<div role="status" style="{UNSEEN}">{html.escape(alt)}</div>'
