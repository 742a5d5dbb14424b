"""Build the site with Sphinx from the built notebooks."""

from __future__ import annotations

import io
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
from docutils import nodes
from sphinx.application import Sphinx

from hood import UserError
from hood.addresses import INDEX, LESSONS, codespaces_url, colab_url, repository_url
from hood.atomic_files import write_whole
from hood.authoring.notebooks.notebook import stamp
from hood.authoring.site.docs import write_docs
from hood.authoring.site.frames import VIEWS as VIEWS_FILE
from hood.authoring.site.frames import frames_of
from hood.authoring.site.markdown import VIEWS, page_markdown
from hood.authoring.site.pages import pages, words_of
from hood.course import Course, course
from hood.grader.cleaning.formulas import mathml
from hood.grader.execution.graded_cell import plain
from hood.manifest import PYTHON, in_words
from hood.metadata import VERSIONS
from hood.palette import palette
from hood.phase_paths import choose

STATIC = Path(__file__).parent / "static"
TEMPLATES = Path(__file__).parent / "templates"
DOWNLOADS = "_downloads"
# This file marks a folder from a build. In the site itself, the file also lets GitHub publish
# "_static".
MADE = ".nojekyll"
# FOREIGN: what a browser would load from another site. OWN: links and files of this site.
FOREIGN = re.compile(
    r'(?:\ssrc="|rel="(?:stylesheet|(?:shortcut )?icon)"[^>]*?\shref="|url\(\s*["\']?)'
    r"((?:[a-z][a-z0-9+.-]*:)?//[^\"')]*)"
)
OWN = re.compile(r'\s(?:href|src|data-src)="(?![a-z][a-z0-9+.-]*:|//)([^"#?]+)')
# Texts below the title of a lab (DOWNLOAD), of the start page, and of a lesson (EXECUTED).
DOWNLOAD = (
    '<a href="../{}">Download this lab</a> as a notebook. '
    "It imports the course's own packages, so it runs in a copy of the course{}."
)
HOW_TO_RUN = ": [run it yourself](/run.md) explains how to get a copy"
KERNEL = "[get a kernel](/run.md)", "run it in a copy of the course"  # with and without that page
COLAB = (
    " Or [open it in Colab]({}), put this into a new first cell, run it, and restart the kernel:"
    "\n\n```\n!git clone --quiet --depth 1 {} course\n"
    "!pip install --quiet --no-deps --editable course\n```"
)
START_HERE = (
    "*Here you can read the course. To solve its labs, or to change a cell and see what happens, "
    "{}.*"
)
EXECUTED = (
    "*This page was executed{}, on a CPU. The drills answer here{}. To change a cell and run it, "
    "{}.*"
)
# The languages of sections that are not in the site's language, by heading. Screen readers and
# browsers use them.
LANGUAGES = {"Resumen en español": "es"}
LIGHT = {
    "hood-text": '"Source Serif 4", "Source Serif Pro", Georgia, serif',
    "font-stack--monospace": '"Source Code Pro", ui-monospace, Menlo, Consolas, monospace',
    "hood-figure": "none",
    "color-background-primary": "#ffffff",
    "color-background-secondary": "#f6f7f8",
}
DARK = {
    "hood-link": "#6db3ea",
    "hood-full-tint": "#163a31",
    "hood-alarm": "#f0916b",
    "hood-right": "#7fcf87",
    "hood-right-tint": "#1d3a20",
    "hood-wrong": "#f58a94",
    "hood-wrong-tint": "#4a1c22",
    "hood-rule": "#34383d",
    "hood-figure": "invert(0.9) hue-rotate(180deg)",
    "color-brand-primary": "#6db3ea",
    "color-brand-content": "#6db3ea",
    "color-brand-visited": "#6db3ea",
    "color-foreground-primary": "#d6d8db",
    "color-background-primary": "#131416",
    "color-background-secondary": "#1c1e21",
}


def build(
    root: Path,
    folder: Path,
    say: Callable[[str], None],
    moving: Sequence[str] | None = None,
    workers: int = 1,
) -> Path:
    """Build the site, and return the folder to publish.

    `moving` has the phases with moving views in their lessons, by default all phases. Raises
    UserError when a page can't be made, or a link leads nowhere.
    """
    start = time.perf_counter()
    site, sources = folder / "html", folder / "markdown"
    every = pages(root)
    chosen = set() if moving == [] else set(choose(root, list(moving or [])))
    lessons = [p.phase for p in every if not (p.is_lab or p.is_words) and p.phase in chosen]
    pictures = frames_of(lessons, folder / "frames", say, workers)
    drawn = time.perf_counter()
    repository = repository_url(root)
    clear(site)
    clear(sources)
    about = course(root)
    guides = write_docs(root, sources)
    can_run = any(path.stem == "run" for path in words_of(root))
    kernel = KERNEL[0 if can_run else 1]
    for page in every:
        top, views = "", None if page.is_lab or page.is_words else pictures.get(page.phase)
        if page.is_lab:
            (site / DOWNLOADS).mkdir(exist_ok=True)
            shutil.copy(page.notebook, site / DOWNLOADS)
            how = HOW_TO_RUN if can_run else ""
            top = DOWNLOAD.format(f"{DOWNLOADS}/{page.notebook.name}", how)
            colab = colab_url(repository, page.phase.relative(page.notebook))
            top += COLAB.format(colab, repository) if colab else ""
        elif page.docname.startswith(f"{LESSONS}/"):
            moving_too = ", and the views move" if views else ""
            top = EXECUTED.format(executed_with(page.notebook, about), moving_too, kernel)
        elif page.docname == INDEX:
            top = START_HERE.format(kernel)
            page = replace(page, guides=guides)
        moved = {}
        if views:
            moved = json.loads((views / VIEWS_FILE).read_text(encoding="utf-8"))
            leave = shutil.ignore_patterns(VIEWS_FILE)
            shutil.copytree(views, site / VIEWS, ignore=leave, dirs_exist_ok=True)
        text = page_markdown(page, top, moved, site, repository)
        write_whole(sources / f"{page.docname}.md", text.encode())
    run_sphinx(sources, site, folder, workers, settings(about, repository))
    if wrong := list(faults(site)):
        raise UserError("\n".join(["the site has wrong links:", *wrong]))
    took = time.perf_counter() - drawn
    say(f"{len(every)} pages in {took:.0f} s, after {drawn - start:.0f} s for the views' pictures")
    return site


def executed_with(lesson: Path, about: Course) -> str:
    """Return the versions with which a lesson was executed; empty if they are unknown."""
    said = stamp(nbformat.read(lesson, as_version=4)).get(VERSIONS) or {}
    first = [name for name in (PYTHON, *about.versions) if name in said]
    return f" with {in_words({name: said[name] for name in [*first, *said]})}" if said else ""


def clear(folder: Path) -> None:
    """Make a folder, or empty a folder of an earlier build; refuse any other folder with files."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MADE).exists():
        raise UserError(f"{folder} has files that are not part of a site: move these files away")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MADE).touch()


def faults(site: Path) -> Iterator[str]:
    """Yield a line for each missing file, and for each file from another site.

    MyST itself checks anchors.
    """
    for path in sorted(path for path in site.rglob("*") if path.suffix in (".html", ".css")):
        name, content = path.relative_to(site).as_posix(), path.read_text(encoding="utf-8")
        for address in sorted(set(FOREIGN.findall(content))):
            yield f"{name} loads {address} from another site"
        for address in sorted(set(OWN.findall(content))) if path.suffix == ".html" else ():
            if not (path.parent / unquote(address)).is_file():
                yield f"{name} leads to {address}, which does not exist"


def run_sphinx(
    sources: Path, site: Path, folder: Path, workers: int, settings: dict[str, object]
) -> None:
    warnings = io.StringIO()
    app = Sphinx(
        sources,
        None,
        site,
        folder / "doctrees",
        "html",
        confoverrides=settings,
        status=None,
        warning=warnings,
        freshenv=True,
        parallel=workers,
    )
    app.build()
    if warned := plain(warnings.getvalue()).strip():
        raise UserError(f"Sphinx could not make every page:\n{warned}")


def settings(about: Course, repository: str = "") -> dict[str, object]:
    """Return Sphinx's settings. Every page links to the repository, if the address is known."""
    title = about.title
    codespace = codespaces_url(repository)
    links = {"Repository": ("The course's repository", repository)}
    links |= {"Open in Codespaces": ("A machine in the browser, with the course", codespace)}
    footer = [
        {"name": name, "url": url, "html": html, "class": ""}
        for html, (name, url) in links.items()
        if url
    ]
    return {
        "extensions": ["myst_parser", "sphinx.ext.githubpages", __name__],
        "myst_enable_extensions": ["dollarmath", "strikethrough"],
        # Markdown as in JupyterLab
        "myst_dmath_allow_labels": False,
        "myst_dmath_double_inline": True,
        "myst_disable_syntax": [
            *("myst_block_break", "myst_line_comment", "myst_role", "myst_target"),
            *("footnote_def", "footnote_ref"),
        ],
        "suppress_warnings": ["myst.strikethrough"],  # HTML can show it
        "myst_heading_anchors": 6,
        "myst_heading_slug_func": "hood.phase_paths.slug",
        "myst_update_mathjax": False,
        "project": title,
        "html_title": title,
        "html_theme": "furo",
        "templates_path": [str(TEMPLATES)],
        "html_static_path": [str(STATIC)],
        "html_css_files": ["hood.css"],
        "html_js_files": [("hood.js", {"defer": "defer"})],
        "html_favicon": str(STATIC / "hood.svg"),
        "html_copy_source": False,
        "html_show_copyright": False,
        "html_permalinks_icon": "#",
        "html_math_renderer": "mathml",
        "html_theme_options": {
            "top_of_page_buttons": [],
            "footer_icons": footer,
            "light_css_variables": light(),
            "dark_css_variables": DARK,
        },
        "html_use_index": False,
        "html_domain_indices": False,
        "highlight_language": "none",
        "pygments_style": "github-light",
    }


def light() -> dict[str, str]:
    """Return Furo's variables for a light page, in the course's colours."""
    colours = palette()
    links = dict.fromkeys(("primary", "content", "visited"), colours["link"])
    return {
        **LIGHT,
        **{f"hood-{role.replace('_', '-')}": colour for role, colour in colours.items()},
        **{f"color-brand-{name}": colour for name, colour in links.items()},
        "color-foreground-primary": colours["ink"],
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Set up this module as a Sphinx extension, for MathML, sections' languages and dark code."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("doctree-read", say_languages)
    app.connect("builder-inited", dark_code, priority=100)  # before Furo writes the style
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def say_languages(app: Sphinx, page: nodes.document) -> None:
    """Give sections in another language the class from which docutils makes `lang`."""
    for section in page.findall(nodes.section):
        if language := LANGUAGES.get(section[0].astext()):
            section["classes"].append(f"language-{language}")


def dark_code(app: Sphinx) -> None:
    """Choose the colours of code on a dark page. The loaded theme adds this setting."""
    app.config["pygments_dark_style"] = "github-dark"
