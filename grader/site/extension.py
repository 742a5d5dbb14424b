"""The Sphinx extension: notebooks as sources, folds, and math as MathML."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from myst_parser.sphinx_ext.main import setup_sphinx
from sphinx.application import Sphinx

from grader.preprocessors.formulas import mathml
from grader.site.folds import Fold, depart_fold, visit_fold
from grader.site.parser import NotebookParser


def setup(app: Sphinx) -> dict[str, bool]:
    """Register it all; Sphinx calls this."""
    setup_sphinx(app)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.add_node(Fold, html=(visit_fold, depart_fold))
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("builder-inited", dark_code, priority=100)  # before Furo writes the style
    app.connect("html-page-context", say_language)
    app.add_css_file("hood.css")
    app.add_js_file("hood.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_math(self: Any, node: nodes.math) -> None:
    """Write math in a line: browsers set MathML themselves, without a script."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write math on a line of its own."""
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def dark_code(app: Sphinx) -> None:
    """Choose the colours of code on a dark page, a setting that only the loaded theme knows."""
    app.config["pygments_dark_style"] = "github-dark"


def say_language(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Name the language of a translated lesson's page."""
    context["language"] = app.env.metadata[pagename].get("language", "en")
