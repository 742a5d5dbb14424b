"""Shows a view. With a kernel, the view is live and has controls. Without a kernel, it is an image.
The site has no kernel, so the pictures of a view for the site are made in advance (`_frames`).
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hood.audience import can_move, filming
from hood.metadata import FRAMES_MIME
from utils.notebook import screen_reader
from utils.notebook.figures import (
    CARD_CLASS,
    DARK_RULE,
    RADIUS,
    WIDER_RULE,
    Link,
    jpeg,
    mime_bundle,
    narrowest,
    show,
    wider_line,
)
from utils.notebook.style import WIDTH
from utils.views import _frames
from utils.views._canvas import Drawing
from utils.views._controls import Control

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIVE_CLASS = "open-the-hood-live"
# The page cuts the corners of a picture that moves.
STYLE = screen_reader.style(
    f".{CARD_CLASS} {{ border-radius: {RADIUS}px }} {DARK_RULE} "
    f".{LIVE_CLASS} {{ container-type: inline-size }} {WIDER_RULE}"
)


def will_move() -> bool:
    """Return whether a view can move.

    A view can move if it is live, or if its pictures for the site are being made. Then all pictures
    of the view should have the same size.
    """
    return can_move() or filming()


def present(
    draw: Callable[..., Drawing],
    *controls: Control,
    tries: Sequence[Sequence[Any]] = (),
    links: Sequence[Link] = (),
) -> None:
    """Show `draw(*values)` for the controls' values.

    A live view is drawn again whenever a control moves.

    draw: a function that returns the drawing. If it raises a ValueError for a typed text, the
        message is shown above the picture.
    controls: the controls. A control with a single choice is not shown.
    tries: for controls that take any value, the values that a page without a kernel offers.
    links: links over a view without controls.
    """
    moving = [c for c in controls if c.kind != "SelectionSlider" or len(c.offered) > 1]
    if len(moving) < len(controls):

        def drawn(*values: Any) -> Drawing:
            rest = iter(values)
            return draw(*(next(rest) if c in moving else c.start for c in controls))

        present(drawn, *moving, tries=tries)
        return
    figure, alt = draw(*(control.start for control in controls))
    if controls and filming():
        import torch
        from IPython.display import publish_display_data

        bundle: dict[str, Any] = dict(mime_bundle(figure, alt=alt))
        with torch.random.fork_rng(devices=[]):  # later cells must draw the same random numbers
            bundle[FRAMES_MIME] = _frames.frames(draw, controls, tries, (figure, alt))
        publish_display_data(bundle)
        return
    if not controls or not can_move():
        show(figure, alt=alt, links=links)
        return
    import ipywidgets
    from IPython.display import publish_display_data

    widgets = [control.widget(ipywidgets) for control in controls]
    picture = ipywidgets.Image(value=jpeg(figure), format="jpeg", width=WIDTH)
    picture.add_class(CARD_CLASS)
    picture.layout.max_width, picture.layout.height = "100%", "auto"
    picture.layout.min_width = f"{narrowest(WIDTH)}px"
    window = ipywidgets.Box([picture])
    window.layout.overflow = "auto"
    spoken = ipywidgets.HTML(_spoken(figure, alt))
    trouble = ipywidgets.HTML()
    for words in (spoken, trouble):
        words.add_class(screen_reader.SAID)

    def redraw(_change: object) -> None:
        try:
            figure, alt = draw(*(widget.value for widget in widgets))
        except ValueError as error:
            trouble.value = html.escape(str(error))
            return
        trouble.value = ""
        picture.value = jpeg(figure)
        spoken.value = _spoken(figure, alt)

    rows: list[Any] = []
    for small, some in groupby(widgets, lambda widget: isinstance(widget, ipywidgets.Checkbox)):
        if small:  # side by side
            rows.append(ipywidgets.HBox(list(some)))
            rows[-1].layout.flex_flow = "row wrap"
        else:
            rows += some
    for widget in widgets:
        widget.observe(redraw, "value")
    box = ipywidgets.VBox([*rows, trouble, window, spoken])
    box.add_class(LIVE_CLASS)
    # The image is for a page without a kernel: an exported or published notebook.
    live = {kind: data for kind, data in box._repr_mimebundle_().items() if kind != "text/plain"}
    publish_display_data(mime_bundle(figure, alt=alt) | live)


def _spoken(figure: Figure, alt: str) -> str:
    """Return `alt` as HTML for screen readers, because a widget's image has no alternative text.

    A screen reader reads the text aloud when it changes. The result includes the style of the
    picture above.
    """
    return f"{STYLE}{wider_line(figure)}{screen_reader.alternative(alt)}"
