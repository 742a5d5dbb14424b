"""Turn a notebook into MyST Markdown: words, code cells with their outputs, and folds.

In a notebook, the answer to a prediction has two folds, for outputs and for words
(`hood.authoring.notebooks.folds`); on the site the answer has only one fold. A drill works without
a kernel: a script judges the reader's answer. Without scripts, the reader can unfold the drill's
answers. Cells that need a kernel are left out.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from html import escape
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from hood.addresses import link, uri
from hood.atomic_files import write_whole
from hood.authoring.notebooks.folds import OPEN, without_blank, without_button
from hood.authoring.notebooks.text import HIDE_INPUT, NEEDS_KERNEL
from hood.authoring.site.frames import Views, digest
from hood.authoring.site.pages import Page
from hood.grader.execution.graded_cell import plain

IMAGES, VIEWS = "_images", "_views"
FENCE = "`" * 20  # longer than any fence in a cell
# The form of utils.notebook.figures.
TAIL = r'(?:<span[^<>]*?(?: data-title="([^"]*)")?></span>)?<style>[^<]*</style>'
IMAGE = re.compile(
    r'<img alt="([^"]*)" width="\d+"[^<>]* src="data:image/png;base64,([^"]+)">'
    rf"(?:{TAIL})?"  # dropped, because the site has its own style
)
BELOW_LINKS = re.compile(TAIL)
LINK = re.compile(r'(?<=<a href=")[^"]+(?=")')
# The form of utils.notebook.drills.
DRILL = re.compile(
    r'<div role="note" data-drill="([^"]*)" style="[^"]*"><div>(.*?)</div>(.*)</div>'
)
OPTION = re.compile(r"<summary[^>]*>(.*?)</summary>", re.DOTALL)
FOLD = '<details class="prediction"><summary>Show what happens</summary>'
END = "</details>"
HREF = re.compile(r"(?<=\]\()[^()\s]+(?=\))")
# The words with which a page's text refers to the repository.
SOURCE = re.compile(r"\[([^\]]+)\]\(repository:\)")
View = dict[str, Any]  # a view of hood.authoring.site.frames


def page_markdown(page: Page, top: str, views: Views, site: Path, repository: str = "") -> str:
    """Return a page's text for Sphinx, and write the pictures of its outputs into the site.

    `top` goes below the first cell. `repository` is the address to clone; if it is empty, words
    that name the repository have no link. The source of a drill is left out, because it has the
    answer.
    """
    parts: list[str] = []
    opened = False
    cells = (cell for cell in page.cells() if NEEDS_KERNEL not in cell.metadata.get("tags", []))
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            words = SOURCE.sub(
                rf"[\1]({repository}) (`git clone {repository}`)" if repository else r"\1",
                without_button(cell.source),
            )
            if opened:
                # words that answer the prediction already have the end of the fold
                answer = words.startswith(OPEN)
                words = words.removeprefix(OPEN) if answer else f"{END}\n\n{words}"
            opened = False
            parts.append(HREF.sub(lambda href: link(href[0], page.path, None), words))
            if index == 0:
                parts += [top, contents(page)]
            continue
        drill = HIDE_INPUT in cell.metadata.get("tags", [])
        if drill and opened:
            parts.append(END)
            opened = False
        if not drill:
            parts.append(block("code-block", "ipython3", "source", cell.source.rstrip("\n")))
        if cell.metadata.get("jupyter", {}).get("outputs_hidden") and not opened:
            parts.append(FOLD)
            opened = True
        parts += shown(cell, page, views.get(cell.id, {}), site)
    return "\n\n".join([*parts, END] if opened else parts) + "\n"


def contents(page: Page) -> str:
    """Return hidden lists of the pages below this one, from which Sphinx makes the contents."""
    groups = [("", [f"{title} </{docname}>" for title, docname in page.below])]
    lists = []
    for caption, entries in [*groups, *page.guides.items()]:
        option = f":caption: {caption}\n" if caption else ""
        listed = "\n".join(entries)
        if entries:
            lists.append(f"```{{toctree}}\n:hidden:\n:titlesonly:\n{option}\n{listed}\n```")
    return "\n\n".join(lists)


def shown(cell: NotebookNode, page: Page, views: dict[str, View], site: Path) -> list[str]:
    """Return the outputs of a code cell; `views` has the moving view for each number."""
    found = []
    for number, output in enumerate(without_blank(cell.outputs)):
        if output.output_type == "stream":
            found.append(text(output.text, output.name))
        elif output.output_type == "error":
            found.append(text("\n".join(output.traceback), "stderr"))
        elif "text/html" in output.data:
            markup = html(output.data["text/html"], views.get(str(number)), page, site)
            found.append(block("raw", "html", "", markup))
        else:
            found.append(text(output.data.get("text/plain", ""), "stdout"))
    return found


def text(words: str, stream: str) -> str:
    return block("code-block", "none", f"output {stream}", plain(words).rstrip("\n"))


def block(directive: str, argument: str, classes: str, content: str) -> str:
    option = f":class: {classes}\n\n" if classes else ""
    return f"{FENCE}{{{directive}}} {argument}\n{option}{content}\n{FENCE}"


def html(markup: str, view: View | None, page: Page, site: Path) -> str:
    """Return an HTML output for the site."""
    if drill := DRILL.fullmatch(markup):
        return form(drill)
    markup = LINK.sub(lambda found: link(found[0], page.path, page.docname), markup)
    if view and (image := IMAGE.fullmatch(markup)):
        return moving(view, image, page, site)
    markup = IMAGE.sub(lambda image: still(image, page, site), markup)
    return f'<div class="shown">{BELOW_LINKS.sub(lambda tail: caption(tail[1]), markup)}</div>'


def form(drill: re.Match[str]) -> str:
    """Return a drill's form, in which a script shows the reasons for an answer.

    Without scripts, folded answers take the place of the form's fields.
    """
    judged: dict[str, Any] = json.loads(base64.b64decode(drill[1]))
    if "answer" in judged:
        hint = f"a number, in {judged['unit']}" if judged["unit"] else "a number"
        controls = (
            f'<input type="text" inputmode="decimal" autocomplete="off" aria-label="{hint}" '
            f'placeholder="{hint}"><button type="submit">Check</button>'
        )
    else:
        options = OPTION.findall(drill[3])
        controls = "".join(f'<button type="button">{option}</button>' for option in options)
    question = f"drill-{digest(drill[0].encode())}"
    return (
        f'<form class="drill" data-drill="{drill[1]}">'
        f'<p class="question" id="{question}">{drill[2]}</p>'
        f'<div class="answers" role="group" aria-labelledby="{question}">{controls}</div>'
        f"<output></output><noscript>{drill[3]}</noscript></form>"
    )


def still(image: re.Match[str], page: Page, site: Path) -> str:
    """Return a figure, with its picture in a separate file."""
    alt, data, title = image.groups()
    content = base64.b64decode(data)
    address = f"{IMAGES}/{digest(content)}.png"
    write_whole(site / address, content)
    return f'<figure class="card">{picture(site, address, alt, page)}</figure>{caption(title)}'


def caption(title: str | None) -> str:
    """Return a figure's title. In a narrow window, the figure scrolls, and its title is below."""
    return f'<p class="title" aria-hidden="true">{title}</p>' if title else ""


def picture(site: Path, address: str, alt: str, page: Page) -> str:
    """Return an image that is loaded when the reader comes near; `alt` is already escaped."""
    # a PNG's first chunk has the size
    width, height = struct.unpack(">II", (site / address).read_bytes()[16:24])
    return (
        f'<img alt="{alt}" src="{uri(address, page.docname)}" width="{width // 2}" '
        f'height="{height // 2}" loading="lazy" decoding="async">'
    )


def moving(view: View, image: re.Match[str], page: Page, site: Path) -> str:
    """Return a view with its controls. The first touch of a control loads the pictures.

    The first picture may show another step than the notebook's image.
    """
    base = f"{VIEWS}/{view['base']}"
    script = uri(f"{VIEWS}/{view['name']}.js", page.docname)
    places = [[int(at) for at in key.split(",")] for key in view["places"]]
    controls = "".join(
        control(one, sorted({key[at] for key in places})) for at, one in enumerate(view["controls"])
    )
    words = escape(view["words"])
    same = words == image[1]
    name = f'role="group" aria-label="{image[3]}" ' if image[3] and same else ""
    return (
        f'<div class="view" {name}data-view="{view["name"]}" data-src="{script}" '
        f'data-places="{json.dumps(places, separators=(",", ":"))}">'
        f'<div class="controls">{controls}</div><figure class="card"><div class="stage">'
        f"{picture(site, base, words, page)}</div></figure>{caption(image[3] if same else words)}"
        '<p role="status"></p></div>'
    )


def control(described: dict[str, Any], offered: list[int]) -> str:
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
