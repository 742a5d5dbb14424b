"""Sphinx reads a notebook: markdown cells as in JupyterLab, code cells with their outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import nbformat
from docutils import nodes
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from myst_parser.mdit_to_docutils.sphinx_ import SphinxRenderer
from nbformat import NotebookNode
from sphinx.addnodes import toctree
from sphinx.parsers import Parser

from grader.phase_paths import slug
from grader.site.folds import CODE, DRILL, OUTPUTS, Fold, folded
from grader.site.outputs import Place, is_drill, output_nodes
from grader.site.pages import SITE, link


class NotebookParser(Parser):
    """Parses the copies of notebooks that `grader.site.pages.stage` makes."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Fill the document with the notebook's cells, and a list of the pages below it."""
        notebook = nbformat.reads(inputstring, as_version=4)
        said = notebook.metadata[SITE]
        env = document.settings.env
        env.metadata[env.docname]["language"] = said["language"]
        markdown = markdown_parser()
        markdown.options.update(document=document, myst_config=env.myst_config)
        renderer = cast(NotebookRenderer, markdown.renderer)
        renderer.setup_render(dict(markdown.options), {})
        renderer.place = Place(env.docname, said["notebook"], Path(env.app.outdir))
        tokens = page_tokens(notebook.cells, said, markdown)
        renderer._render_tokens(folded(tokens, said["language"]))
        if said["below"]:
            document.children[0] += contents(env.docname, said["below"])


class NotebookRenderer(SphinxRenderer):
    """Renders markdown-it's tokens, and those that stand for code cells and folds."""

    place: Place

    def render_cell_code(self, token: Any) -> None:
        """Append the source of a code cell."""
        source = token.content
        self.current_node += nodes.literal_block(
            source, source, language="ipython3", classes=["source"]
        )

    def render_cell_outputs(self, token: Any) -> None:
        """Append the outputs of a code cell."""
        self.current_node += output_nodes(token.meta["cell"], token.meta["views"], self.place)

    def render_cell_drill(self, token: Any) -> None:
        """Append a drill."""
        self.render_cell_outputs(token)

    def render_fold(self, token: Any) -> None:
        """Append what a prediction hides."""
        with self.current_node_context(Fold(language=token.attrs["language"]), append=True):
            self.render_children(token)

    def render_heading(self, token: Any) -> None:
        """Give a section the anchor that links to it use."""
        seen: Counter[str] = self.md_env.setdefault("anchors", Counter())
        anchor = slug(token.children[0].content)
        seen[anchor] += 1
        super().render_heading(token)
        self.current_node["ids"] = [anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"]

    def render_link(self, token: Any) -> None:
        """Lead links between notebooks to their pages."""
        place = self.place
        token.attrs["href"] = link(str(token.attrs["href"]), place.notebook, place.docname)
        self.render_link_url(token)


def markdown_parser() -> MarkdownIt:
    """Return a parser of the markdown that JupyterLab shows: CommonMark, tables, strikes, math."""
    parser = MarkdownIt("commonmark", renderer_cls=NotebookRenderer)
    parser.enable(["table", "strikethrough"])
    return parser.use(dollarmath_plugin, allow_labels=False, double_inline=True)


def page_tokens(
    cells: Sequence[NotebookNode], said: Mapping[str, Any], markdown: MarkdownIt
) -> Iterator[Token]:
    """Yield the tokens of all cells.

    The source of a drill is left out, because the answer stands in it.
    """
    views = said.get("views", {})
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            yield from markdown.parse(cell.source, {})
            if index == 0 and said.get("top"):
                yield from markdown.parse(said["top"], {})
            continue
        if not is_drill(cell):
            yield Token(CODE, "", 0, content=cell.source.rstrip("\n"))
        if cell.get("outputs"):
            kind = DRILL if is_drill(cell) else OUTPUTS
            yield Token(kind, "", 0, meta={"cell": cell, "views": views.get(cell.id, {})})


def contents(docname: str, below: Sequence[Sequence[str]]) -> toctree:
    """Return a hidden list of the pages below this one, from which Sphinx makes the contents."""
    return toctree(
        parent=docname,
        entries=[(title, page) for title, page in below],
        includefiles=[page for _, page in below],
        maxdepth=-1,
        caption=None,
        glob=False,
        hidden=True,
        includehidden=False,
        numbered=0,
        titlesonly=True,
    )
