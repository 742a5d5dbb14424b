"""Figures of the course as HTML images that always have alternative text.

Only `show` displays a figure, as `<img alt=… src="data:image/png;base64,…">` of type text/html.
This form keeps the alternative text when a notebook is saved, converted or sanitised. An image/png
output would lose the alternative text. Sanitising removes the style, but the style is only needed
in narrow windows and in the dark theme.
"""

from __future__ import annotations

import base64
import html
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hood.audience import text_only
from utils.notebook.style import CARD, CSS_DPI, DENSITY

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

CARD_CLASS = "open-the-hood-card"
# In JupyterLab's dark theme a card's lightness is inverted, as on the site.
DARK_RULE = (
    f'[data-jp-theme-light="false"] .{CARD_CLASS} {{ filter: invert(0.9) hue-rotate(180deg) }}'
)
# JupyterLab breaks a long line of printed text inside a word. A style applies to a whole notebook,
# and each lesson begins with a figure.
WORDS_RULE = (
    ".jp-OutputArea-output.jp-RenderedText pre { word-break: normal; overflow-wrap: anywhere }"
)
NARROWEST = 560  # CSS pixels; a narrower window scrolls, so that the text stays legible
# The title of a scrolling picture is cut off. So a line below the picture has the title and a hint.
WIDER_RULE = (
    f".jp-OutputArea-output:has(.{CARD_CLASS}) {{ container-type: inline-size }} "
    f"@container (max-width: {NARROWEST - 1}px) {{ .open-the-hood-wider::before {{ "
    'content: attr(data-title) "\\A(Wider than the page: scroll sideways.)"; display: block; '
    "width: fit-content; max-width: 100cqi; position: sticky; left: 0; white-space: pre-wrap; "
    "font-size: 13px } }"
)
# The rule for links over boxes of a picture. The links grow and shrink with the picture. Without
# this rule, as in a notebook that JupyterLab does not trust, the text of the links is below the
# picture.
LINKED = "open-the-hood-linked"
LINKED_RULE = (
    f".{LINKED} {{ position: relative; width: fit-content; max-width: 100%; "
    f"min-width: {NARROWEST}px }} .{LINKED} img {{ display: block }} "
    f".{LINKED} > a {{ position: absolute; border-radius: 8px; font-size: 0 }} "
    f".{LINKED} > a:hover, .{LINKED} > a:focus-visible {{ outline: 2px solid #1f6aa5 }}"
)
RADIUS = 10  # CSS pixels; the card's rounded corners are transparent in the bitmap
CORNER_LEVELS = 16  # steps of transparency along a corner


@dataclass(frozen=True)
class Link:
    """A link over a box of a figure."""

    box: tuple[float, float, float, float]  # x, y, width, height, relative to the figure's size
    href: str
    words: str  # the text for screen readers, and for a page without styles


def show(figure: Figure, *, alt: str, links: Sequence[Link] = ()) -> None:
    """Display `figure` as an HTML image with the alternative text `alt`, and links over it.

    Outside IPython nothing can be displayed, so the alternative text is printed. Raises ValueError
    if `alt` is empty.
    """
    bundle = mime_bundle(figure, alt=alt, links=links)
    # Otherwise pyplot would draw the figure a second time, as image/png, at the end of the cell.
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(figure)
    if in_ipython():
        from IPython.display import publish_display_data

        publish_display_data(bundle)
    else:
        print(bundle["text/plain"])


def mime_bundle(figure: Figure, *, alt: str, links: Sequence[Link] = ()) -> dict[str, str]:
    """Return the outputs of `show`: {"text/html": the image, "text/plain": the alternative text}.

    If nobody looks at images (`hood.audience.text_only`), the image is left out.
    """
    alt = require_alt(alt)
    spoken = {"text/plain": f"[figure] {alt}"}
    if text_only():
        return spoken
    width = round(figure.get_figwidth() * CSS_DPI)
    source = base64.b64encode(png(figure)).decode("ascii")
    image = (
        f'<img alt="{html.escape(alt)}" width="{width}" class="{CARD_CLASS}" '
        f'style="min-width:{narrowest(width)}px" src="data:image/png;base64,{source}">'
    )
    wider = wider_line(figure) if width >= NARROWEST else ""
    rules = f"{DARK_RULE} {WIDER_RULE} {WORDS_RULE}"
    if links:
        image = f'<div class="{LINKED}">{image}{"".join(map(_anchor, links))}</div>'
        rules = f"{rules} {LINKED_RULE}"
    return {"text/html": f"{image}{wider}<style>{rules}</style>"} | spoken


def wider_line(figure: Figure) -> str:
    """Return the line below a scrolling picture. If the picture fits, the page hides the line.

    The line has the figure's label. :class:`utils.views._canvas.Canvas` makes the title the label.
    """
    title = html.escape(str(figure.get_label()))
    return f'<span class="open-the-hood-wider" data-title="{title}"></span>'


def _anchor(link: Link) -> str:
    sides = zip(("left", "top", "width", "height"), link.box, strict=True)
    place = ";".join(f"{side}:{100 * share:.2f}%" for side, share in sides)
    words = html.escape(link.words)
    return f'<a href="{html.escape(link.href)}" title="{words}" style="{place}">{words}</a> '


def narrowest(width: int) -> int:
    """Return the least width to which a page shrinks a picture of `width` CSS pixels."""
    return min(width, NARROWEST)


def require_alt(alt: str) -> str:
    """Return `alt` with single spaces. Raises ValueError if it has no text."""
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(
            f"a figure needs alternative text, got alt={alt!r}: "
            "say in one sentence what the figure shows"
        )
    return " ".join(alt.split())


def png(figure: Figure) -> bytes:
    """Return `figure` as a PNG of twice the CSS density, with rounded transparent corners.

    The PNG has only 256 colours, so it has a quarter of the bytes of a PNG with all colours.
    """
    image = rasterize(figure)
    image, opacity = _palette(image, _corners(image.size))
    buffer = io.BytesIO()
    image.save(buffer, "png", optimize=True, transparency=opacity)
    return buffer.getvalue()


def jpeg(figure: Figure) -> bytes:
    """Return `figure` as a JPEG of twice the CSS density, with square corners.

    This is for views while they move, because a JPEG takes 10 ms of CPU. For a PNG, only choosing
    the filters takes 46 ms.
    """
    buffer = io.BytesIO()
    rasterize(figure).save(buffer, "jpeg", quality=92, subsampling=0)
    return buffer.getvalue()


def _palette(image: Image, alpha: Image) -> tuple[Image, bytes]:
    """Return `image` in 256 colours with `alpha`, and the opacity of each of these colours.

    The most frequent colours stay exact, so that the plain areas of a figure stay distinct. Other
    colours, at the smoothed edges of letters, are replaced by the nearest colour. The last 16
    colours are for the corners.
    """
    import numpy as np
    from PIL import Image

    pixels = np.asarray(image, np.uint32)
    packed = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    colours, counts = np.unique(packed, return_counts=True)
    kept = colours[np.argsort(-counts, kind="stable")[: 256 - CORNER_LEVELS]]

    def rgb(packed_colours: np.ndarray) -> np.ndarray:
        return np.stack([packed_colours >> shift & 255 for shift in (16, 8, 0)], -1)

    choices = rgb(kept).astype(float)
    # Compute in blocks: for a photograph, all distances at once would take half a gigabyte.
    blocks = np.array_split(rgb(colours).astype(float), -(-len(colours) // 2048))
    nearest = [((block[:, None] - choices) ** 2).sum(-1).argmin(1) for block in blocks]
    table = np.zeros(1 << 24, np.uint8)
    table[colours] = np.concatenate(nearest)
    indexed = table[packed]

    levels = np.asarray(alpha) // CORNER_LEVELS
    corner = np.asarray(alpha) < 255
    indexed[corner] = 256 - CORNER_LEVELS + levels[corner]
    card = int(CARD[1:], 16)
    entries = np.full(256, card, np.uint32)
    entries[: len(kept)] = kept
    opacity = [255] * (256 - CORNER_LEVELS) + [17 * level for level in range(CORNER_LEVELS)]
    found = Image.frombytes("P", image.size, indexed.tobytes())
    found.putpalette(rgb(entries).astype(np.uint8).tobytes())
    return found, bytes(opacity)


def rasterize(figure: Figure) -> Image:
    """Return `figure` drawn on the opaque card, as an RGB image of twice the CSS density."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    before = figure.dpi, figure.get_facecolor(), figure.canvas
    try:
        canvas = FigureCanvasAgg(figure)
        figure.set_dpi(CSS_DPI * DENSITY)
        figure.set_facecolor(CARD)
        canvas.draw()
        size = canvas.get_width_height()
        return Image.frombuffer("RGBA", size, canvas.buffer_rgba()).convert("RGB")
    finally:
        figure.set_dpi(before[0])
        figure.set_facecolor(before[1])
        figure.set_canvas(before[2])


def _corners(size: tuple[int, int]) -> Image:
    """Return an alpha mask of `size` pixels: opaque except for rounded, smoothed corners."""
    from PIL import Image, ImageDraw

    radius, scale = RADIUS * DENSITY, 4
    big = Image.new("L", (2 * radius * scale, 2 * radius * scale), 0)
    ImageDraw.Draw(big).ellipse((0, 0, big.width - 1, big.height - 1), fill=255)
    disc = big.resize((2 * radius, 2 * radius), Image.Resampling.LANCZOS)
    mask = Image.new("L", size, 255)
    for x, left in ((0, 0), (size[0] - radius, radius)):
        for y, top in ((0, 0), (size[1] - radius, radius)):
            mask.paste(disc.crop((left, top, left + radius, top + radius)), (x, y))
    return mask


def in_ipython() -> bool:
    """Return whether an IPython shell runs this code, so that something can be displayed."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None
