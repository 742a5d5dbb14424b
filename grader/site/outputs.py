"""What a code cell shows, as nodes of a page: text, figures, drills, views."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from nbformat import NotebookNode

from grader.build.cells import HIDE_INPUT
from grader.build.predictions import without_blank
from grader.judging.graded_cell import plain
from grader.site.drills import form, is_drill_html
from grader.site.pages import link, uri
from grader.whole_file import write_whole

IMAGES, VIEWS = "_images", "_views"
# As utils.notebook.figures writes it.
IMAGE = re.compile(
    r'<img alt="([^"]*)" width="\d+"[^<>]* src="data:image/png;base64,([^"]+)">'
    r"(?:<span[^<>]*></span>)?(?:<style>[^<]*</style>)?"  # the site has its own
)
LINK = re.compile(r'(?<=<a href=")[^"]+(?=")')
View = dict[str, Any]  # as grader.site.frames describes it
Views = dict[str, View]  # those of a cell, by the number of their output


@dataclass(frozen=True)
class Place:
    """Where a page's outputs come from and go to.

    Attributes:
        docname: the page's address.
        notebook: its notebook's path, relative to the project's root.
        site: the folder that the site is written to.
    """

    docname: str
    notebook: str
    site: Path


def is_drill(cell: NotebookNode) -> bool:
    """Return whether a code cell asks a question, so that its source holds the answer."""
    return cell.cell_type == "code" and HIDE_INPUT in cell.metadata.get("tags", [])


def output_nodes(cell: NotebookNode, views: Views, place: Place) -> list[nodes.Node]:
    """Return the outputs of a code cell.

    Args:
        views: the cell's views that can move, by the number of their output.
    """
    found: list[nodes.Node] = []
    for number, output in enumerate(without_blank(cell.outputs)):
        if output.output_type == "stream":
            found.append(text(output.text, output.name))
        elif output.output_type == "error":
            found.append(text("\n".join(output.traceback), "stderr"))
        elif "text/html" in output.data:
            markup = html(output.data["text/html"], views.get(str(number)), place)
            found.append(nodes.raw("", markup, format="html"))
        else:
            found.append(text(output.data.get("text/plain", ""), "stdout"))
    return found


def text(words: str, stream: str) -> nodes.literal_block:
    """Return text that a cell printed, without the colours of a terminal."""
    words = plain(words).rstrip("\n")
    return nodes.literal_block(words, words, language="none", classes=["output", stream])


def html(markup: str, view: View | None, place: Place) -> str:
    """Return an HTML output as the site shows it."""
    if is_drill_html(markup):
        return form(markup)
    markup = LINK.sub(lambda found: link(found[0], place.notebook, place.docname), markup)
    if view and (image := IMAGE.fullmatch(markup)):
        return moving(view, image[1], place)
    return f'<div class="shown">{IMAGE.sub(lambda image: still(image, place), markup)}</div>'


def still(image: re.Match[str], place: Place) -> str:
    """Return a figure, with its picture as a file of its own."""
    alt, data = image.groups()
    content = base64.b64decode(data)
    address = f"{IMAGES}/{hashlib.sha256(content).hexdigest()[:16]}.png"
    path = place.site / address
    if not path.exists():
        write_whole(path, content)
    return f'<figure class="card">{picture(path, alt, uri(address, place.docname))}</figure>'


def picture(path: Path, alt: str, address: str) -> str:
    """Return an image that is loaded when the reader comes near; `alt` is escaped already."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])  # in a PNG's first chunk
    return (
        f'<img alt="{alt}" src="{address}" width="{width // 2}" height="{height // 2}" '
        'loading="lazy" decoding="async">'
    )


def moving(view: View, alt: str, place: Place) -> str:
    """Return a view with its controls; its pictures are loaded when the reader touches one."""
    base, script = (f"{VIEWS}/{name}" for name in (view["base"], f"{view['name']}.js"))
    places = [[int(at) for at in key.split(",")] for key in view["places"]]
    controls = "".join(
        control(one, sorted({key[at] for key in places})) for at, one in enumerate(view["controls"])
    )
    return (
        f'<div class="view" data-view="{view["name"]}" data-src="{uri(script, place.docname)}" '
        f'data-places="{json.dumps(places, separators=(",", ":"))}">'
        f'<div class="controls">{controls}</div><figure class="card"><div class="stage">'
        f"{picture(place.site / base, alt, uri(base, place.docname))}</div></figure>"
        '<p role="status"></p></div>'
    )


def control(described: dict[str, Any], offered: list[int]) -> str:
    """Return the control of a view, for those of its places that have pictures."""
    labels, start = described["labels"], described["start"]
    name = escape(described["name"])
    if described["kind"] == "Checkbox":
        field = f'<input type="checkbox"{" checked" * start}> {name}'
    elif described["kind"] in ("IntSlider", "SelectionSlider"):
        field = (
            f'<span>{name}</span><input type="range" min="0" max="{len(offered) - 1}" '
            f'value="{offered.index(start)}" autocomplete="off">'
            f'<span class="value" aria-hidden="true">{escape(labels[start])}</span>'
        )
    else:
        options = "".join(
            f'<option value="{at}"{" selected" * (place == start)}>{escape(labels[place])}</option>'
            for at, place in enumerate(offered)
        )
        field = f'<span>{name}</span><select autocomplete="off">{options}</select>'
    data = escape(json.dumps(labels))
    return f'<label data-control data-start="{start}" data-labels="{data}">{field}</label>'
