"""Makes the pictures of a view in advance, for a page without a kernel.

A picture shows the view for one combination of positions of the controls.

If there are only a few combinations of positions, each combination has a picture. Otherwise, long
ranges are thinned evenly. If there are still too many combinations, the first pictures are for
combinations in which only one control has moved.
"""

from __future__ import annotations

import base64
import io
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from utils.notebook.figures import png, rasterize, require_alt
from utils.views._canvas import Drawing
from utils.views._controls import Control

MOST = 64  # pictures of a view
MOST_BYTES = 900_000  # of all pictures of a view except the first; they are loaded together
FEWEST = 4  # positions that are enough to show a range
SPOT = 8  # positions of a thinned range if it can't be combined with all other controls

Place = tuple[int, ...]


def frames(
    draw: Callable[..., Drawing],
    controls: Sequence[Control],
    tries: Sequence[Sequence[Any]],
    first: Drawing,
) -> dict[str, Any]:
    """Return the pictures of a view, as a value of JSON.

    draw, tries: as in `utils.views._view.present`.
    first: the drawing for the controls' first values.

    "controls" has the kind, the name, the labels and the start of each control. "base" is the first
    picture as a PNG. "pictures" has the changed parts of the other pictures, as (x, y, width,
    height, lossless WebP). "frames" maps each combination of positions, such as "0,2", to the
    number of its picture (-1 for the base) and the alternative text. If `draw` raises a ValueError
    for a combination, "frames" has the error's message instead.
    """
    figure, alt = first
    single = any(not control.offered for control in controls)
    if single:  # one choice represents every text that could be typed
        values = tuple(control.start for control in controls)
        choices = dict.fromkeys(tuple(some) for some in (values, *tries))
        labelled = tuple((" and ".join(map(str, some)), some) for some in choices)
        controls = [Control("Tries", "try", values, labelled)]
    start = tuple(map(_place, controls))
    base = np.asarray(rasterize(figure))
    pictures: list[Any] = []
    shown: dict[str, Any] = {key(start): [-1, require_alt(alt)]}
    known: dict[Any, int] = {}
    size = 0
    for place in places(controls):
        if place == start or size > MOST_BYTES:
            continue
        chosen = [control.offered[at][1] for control, at in zip(controls, place, strict=True)]
        try:
            other, alt = draw(*(chosen[0] if single else chosen))
        except ValueError as error:
            shown[key(place)] = str(error)
            continue
        picture = change(base, np.asarray(rasterize(other)))
        if picture not in known:
            known[picture] = len(known) if picture else -1
            if picture:
                pictures.append([*picture[:4], _text(picture[4])])
                size += len(picture[4])
        shown[key(place)] = [known[picture], require_alt(alt)]
    return {
        "controls": [
            {"kind": c.kind, "name": c.name, "labels": [x for x, _ in c.offered], "start": at}
            for c, at in zip(controls, start, strict=True)
        ],
        "base": _text(png(figure)),
        "pictures": pictures,
        "frames": shown,
    }


def _place(control: Control) -> int:
    return [value for _, value in control.offered].index(control.start)


def _dense(control: Control) -> bool:
    """Return whether a control is a long range of values, so that some of its positions suffice."""
    return control.kind == "IntSlider" or (
        control.kind == "SelectionSlider" and len(control.offered) > SPOT
    )


def places(controls: Sequence[Control]) -> Iterator[Place]:
    """Yield at most MOST combinations of positions, the most useful combinations first."""
    counts = [len(control.offered) for control in controls]
    dense = [_dense(control) for control in controls]
    fixed = math.prod(n for n, many in zip(counts, dense, strict=True) if not many)
    every, reach = math.prod(counts), max(counts)
    if every > MOST and any(dense):
        reach = int((MOST / fixed) ** (1 / sum(dense)) + 1e-9)
        if reach < FEWEST:
            reach = SPOT
    offered = [
        spread(n, _place(control), reach if many else None)
        for control, n, many in zip(controls, counts, dense, strict=True)
    ]
    ranks = sorted(
        itertools.product(*(range(len(some)) for some in offered)),
        key=lambda rank: (sum(map(bool, rank)) if every > MOST else 0, sum(rank)),
    )
    for rank in ranks[:MOST]:
        yield tuple(some[k] for some, k in zip(offered, rank, strict=True))


def spread(count: int, start: int, most: int | None = None) -> list[int]:
    """Return `start` and at most `most` - 1 other numbers below `count`, from coarse to fine.

    The other numbers include both ends and are evenly spaced, so that the first few numbers show
    the whole range.
    """
    chosen = list(range(count))
    if most is not None and count > most:
        chosen = np.linspace(0, count - 1, most).round().astype(int).tolist()
        if start not in chosen:
            nearest = min(range(1, most - 1), key=lambda k: abs(chosen[k] - start))
            chosen[nearest] = start
    # Both ends, then the middle, the quarters, ...: sorted by the lowest bit of a number's index.
    last = len(chosen) - 1
    coarse = sorted(range(len(chosen)), key=lambda k: -(k & -k) if 0 < k < last else -count)
    return [start, *(chosen[k] for k in coarse if chosen[k] != start)]


def change(base: np.ndarray, other: np.ndarray) -> tuple[int, int, int, int, bytes] | None:
    """Return the changed part of `other`: a box (x, y, width, height) and its pixels.

    Unchanged pixels are transparent. If nothing has changed, return None. If the picture has
    another size, return the whole picture with -1 for x and y.
    """
    if base.shape == other.shape:
        differs = (base != other).any(-1)
        rows, columns = np.flatnonzero(differs.any(1)), np.flatnonzero(differs.any(0))
        if not len(rows):
            return None
        top, left = int(rows[0]), int(columns[0])
        box = np.s_[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1]
        differs, other = differs[box], other[box]
    else:
        top = left = -1
        differs = np.ones(other.shape[:2], bool)
    from PIL import Image

    pixels = np.dstack([other * differs[..., None], differs * np.uint8(255)])
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "webp", lossless=True, method=4, quality=60)
    height, width = differs.shape
    return left, top, width, height, buffer.getvalue()


def key(place: Place) -> str:
    """Return a place as a key of JSON: "0,2"."""
    return ",".join(map(str, place))


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
