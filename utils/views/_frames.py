"""A view for a page without a kernel: pictures of it, made beforehand for places of its controls.

Where all places together are few, each has its picture. Else long ranges are thinned, evenly, and
of what is still too many those come first that move one control from where it starts.
"""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from utils.notebook.figures import png, rasterize, require_alt

MIME = "application/vnd.open-the-hood.frames+json"
MOST = 64  # pictures of a view
MOST_BYTES = 900_000  # of all its pictures but the first, which are loaded together
FEWEST = 4  # places at which a range still tells how things go on
SPOT = 8  # places of a thinned range that can't be combined with all others

Drawing = tuple[Figure, str]
Place = tuple[int, ...]


@dataclass(frozen=True)
class Control:
    """A control of a view, as a page shows it.

    kind: that of its widget, or "Tries" for values to choose from where a widget takes any.
    labels: what stands beside the control at each of its places; values: what `draw` then gets.
    start: the place at which it stands first; dense: whether its places are a range of numbers.
    """

    kind: str
    name: str
    labels: tuple[str, ...]
    values: tuple[Any, ...]
    start: int
    dense: bool = False


class Widgets:
    """Stands in for ipywidgets: each widget made of it becomes its name and its arguments."""

    def __getattr__(self, kind: str) -> Callable[..., tuple[str, dict[str, Any]]]:
        return lambda **arguments: (kind, arguments)


def frames(
    draw: Callable[..., Drawing],
    values: Sequence[Any],
    controls: Callable[[Any], Sequence[Any]],
    tries: Sequence[Sequence[Any]] = (),
) -> dict[str, Any]:
    """The pictures of a view, as a value of JSON.

    draw, values, controls: as in `utils.views._interactive.present`; tries: as there.
    Under "controls" stand their kind, name, labels and start; under "base" the first picture as a
    PNG; under "pictures" what others change of it, as (x, y, width, height, lossless WebP); under
    "frames" for a place such as "0,2" the number of its picture (-1 for the base) and its
    alternative text, or the message that it has instead.
    """
    found = page_controls(values, controls(Widgets()), tries)
    single = any(control.kind == "Tries" for control in found)
    start = tuple(control.start for control in found)
    figure, alt = draw(*values)
    base = np.asarray(rasterize(figure))
    pictures: list[Any] = []
    shown: dict[str, Any] = {key(start): [-1, require_alt(alt)]}
    known: dict[Any, int] = {}
    size = 0
    for place in places(found):
        if place == start or size > MOST_BYTES:
            continue
        chosen = [control.values[at] for control, at in zip(found, place, strict=True)]
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
            {"kind": c.kind, "name": c.name, "labels": list(c.labels), "start": c.start}
            for c in found
        ],
        "base": _text(png(figure)),
        "pictures": pictures,
        "frames": shown,
    }


def page_controls(
    values: Sequence[Any], widgets: Sequence[Any], tries: Sequence[Sequence[Any]] = ()
) -> list[Control]:
    """The controls for widgets that hold `values`.

    Where a widget takes whatever is typed, one choice among `values` and `tries` stands for all.

    Raises:
        ValueError: for a slider whose places can't be counted, since each is drawn for the page.
    """
    found = []
    for value, (kind, arguments) in zip(values, widgets, strict=True):
        name = arguments.get("description", "")
        if kind == "IntSlider":
            step = arguments.get("step", 1)
            offered = tuple(range(arguments["min"], arguments["max"] + 1, step))
            labels = tuple(map(str, offered))
            found.append(Control(kind, name, labels, offered, offered.index(value), dense=True))
        elif kind == "Checkbox":
            found.append(Control(kind, name, ("off", "on"), (False, True), int(value)))
        elif "options" in arguments:
            options = arguments["options"]
            pairs = list(options.items() if isinstance(options, dict) else options)
            if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
                pairs = [(str(option), option) for option in pairs]
            labels, offered = zip(*pairs, strict=True)
            dense = kind == "SelectionSlider" and len(offered) > SPOT
            found.append(Control(kind, name, labels, offered, offered.index(value), dense))
        elif kind.endswith("Slider"):
            raise ValueError(f"expected an IntSlider or a SelectionSlider for {name!r}, got {kind}")
        else:
            choices = list(dict.fromkeys(tuple(some) for some in [values, *tries]))
            labels = tuple(" and ".join(map(str, some)) for some in choices)
            return [Control("Tries", "try", labels, tuple(choices), 0)]
    return found


def places(controls: Sequence[Control]) -> Iterator[Place]:
    """At most MOST places of the controls, those that tell most first."""
    fixed = int(np.prod([len(control.values) for control in controls if not control.dense]))
    dense = sum(control.dense for control in controls)
    every = int(np.prod([len(control.values) for control in controls]))
    reach = max(len(control.values) for control in controls)
    if every > MOST and dense:
        reach = int((MOST / fixed) ** (1 / dense) + 1e-9)
        if reach < FEWEST:
            reach = SPOT
    offered = [
        spread(len(control.values), control.start, reach if control.dense else None)
        for control in controls
    ]
    ranks = sorted(
        itertools.product(*(range(len(some)) for some in offered)),
        key=lambda rank: (sum(map(bool, rank)) if every > MOST else 0, sum(rank)),
    )
    for rank in ranks[:MOST]:
        yield tuple(some[k] for some, k in zip(offered, rank, strict=True))


def spread(count: int, start: int, most: int | None = None) -> list[int]:
    """`start`, and up to most - 1 of the other numbers below `count`, from coarse to fine.

    Chosen evenly, both ends included, so that also the first few of them tell how things go on.
    """
    chosen = list(range(count))
    if most is not None and count > most:
        chosen = np.linspace(0, count - 1, most).round().astype(int).tolist()
        if start not in chosen:
            nearest = min(range(1, most - 1), key=lambda k: abs(chosen[k] - start))
            chosen[nearest] = start
    # Both ends, then the middle, the quarters, ...: by the lowest bit of where a number stands.
    last = len(chosen) - 1
    coarse = sorted(range(len(chosen)), key=lambda k: -(k & -k) if 0 < k < last else -count)
    return [start, *(chosen[k] for k in coarse if chosen[k] != start)]


def change(base: np.ndarray, other: np.ndarray) -> tuple[int, int, int, int, bytes] | None:
    """What `other` changes of `base`: a box (x, y, width, height) and its pixels; None for nothing.

    Pixels that stay are transparent. A picture of another size is whole, at (-1, -1).
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
    """A place as JSON has it: "0,2"."""
    return ",".join(map(str, place))


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
