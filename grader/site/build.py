"""Build the site with Sphinx from the notebooks that are there."""

from __future__ import annotations

import filecmp
import hashlib
import io
import shutil
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from sphinx.application import Sphinx

from grader import UserError
from grader.judging.graded_cell import plain
from grader.phase_paths import choose
from grader.site.frames import VIEWS as VIEWS_FILE
from grader.site.frames import Views, frames_of, read_views
from grader.site.links import faults, sweep
from grader.site.outputs import IMAGES, VIEWS
from grader.site.pages import INDEX, LABS, LESSONS, Page, pages, stage
from utils.notebook.style import GRADIENT, INK, RULE, STORAGE, VIEW

STATIC = Path(__file__).parent / "static"
TITLE = "Open the Hood"
DOWNLOADS = "_downloads"
# What stands below the title of a lab, and of a lesson.
DOWNLOAD = (
    "[Download this lab]({}) as a notebook. It imports the course's package `utils`, so it runs in "
    "a copy of the course: [run it yourself](../run.html) says how to get one."
)
START_HERE = (
    "*This is the course to read. To solve its labs, or to change a cell and see what happens, "
    "[get a kernel](run.html).*"
)
EXECUTED = (
    "*Executed with {}, on a CPU. The drills answer here{}; to change a cell and run it, "
    "[get a kernel](../run.html).*"
)
# The figures' own colours (utils/notebook/style.py), and how the site marks what they stand for.
LIGHT = {
    "hood-text": '"Source Serif 4", "Source Serif Pro", Georgia, serif',
    "font-stack--monospace": '"Source Code Pro", ui-monospace, Menlo, Consolas, monospace',
    "hood-storage": STORAGE.colour,
    "hood-view": VIEW.colour,
    "hood-view-tint": VIEW.tint,
    "hood-gradient": GRADIENT.colour,
    "hood-gradient-tint": GRADIENT.tint,
    "hood-rule": RULE,
    "hood-figure": "none",
    "color-brand-primary": STORAGE.colour,
    "color-brand-content": STORAGE.colour,
    "color-brand-visited": STORAGE.colour,
    "color-foreground-primary": INK,
    "color-background-primary": "#ffffff",
    "color-background-secondary": "#f6f7f8",
}
DARK = {
    "hood-storage": "#6db3ea",
    "hood-view": "#5fd0b0",
    "hood-view-tint": "#163a31",
    "hood-gradient": "#f0916b",
    "hood-gradient-tint": "#47251a",
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

    Args:
        folder: where the site and what it is made from are written.
        moving: the phases whose lessons get views that move; all by default.
        workers: how many processes to use.

    Raises:
        UserError: when a page can't be made, or a link leads nowhere.
    """
    start = time.perf_counter()
    site, sources = folder / "html", folder / "pages"
    every = pages(root)
    chosen = set() if moving == [] else set(choose(root, list(moving or [])))
    lessons = [p.phase for p in every if not (p.is_lab or p.is_words) and p.phase in chosen]
    views = frames_of(lessons, folder / "frames", say, workers)
    drawn = time.perf_counter()
    staged = set()
    code = own_digest()
    titles = [[one.title, one.docname] for one in every]
    executed = " and ".join(" ".join(pin) for pin in pins(root))
    for page in every:
        # Every page shows the contents and its neighbours, so it is made again when they change.
        more: dict[str, Any] = {"code": code, "contents": titles}
        if page.is_lab:
            more["top"] = DOWNLOAD.format(f"../{DOWNLOADS}/{page.notebook.name}")
            copy(page.notebook, site / DOWNLOADS)
        elif page.docname.startswith(f"{LESSONS}/"):
            moving_too = ", and the views move" if page.phase in views else ""
            more["top"] = EXECUTED.format(executed, moving_too)
        elif page.docname == INDEX:
            more["top"] = START_HERE
        if not page.is_lab and not page.is_words and page.phase in views:
            more["views"] = publish(views[page.phase], site / VIEWS)
        staged.add(stage(page, sources, more))
    for path in set(sources.rglob("*.ipynb")) - staged:
        path.unlink()
    run_sphinx(sources, site, folder, workers)
    forget(site, every)
    if wrong := list(faults(site)):
        raise UserError("\n".join(["the site's links are not in order:", *wrong]))
    sweep(site, (IMAGES, VIEWS))
    took = time.perf_counter() - drawn
    say(f"{len(every)} pages in {took:.0f} s, after {drawn - start:.0f} s for the views' pictures")
    return site


def pins(root: Path) -> list[tuple[str, str]]:
    """Return the packages that a reader asks for first, each with its pinned version."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {Requirement(one).name: Requirement(one) for one in project["dependencies"]}
    return [(name, str(found[name].specifier).lstrip("=")) for name in ("torch", "triton")]


def forget(site: Path, every: Sequence[Page]) -> None:
    """Remove the pages and downloads of earlier builds that are none any more; Sphinx keeps them.

    Args:
        every: the pages that the site has now.
    """
    addresses = {site / f"{page.docname}.html" for page in every}
    downloads = {site / DOWNLOADS / page.notebook.name for page in every if page.is_lab}
    for folder in (LESSONS, LABS):
        for path in set((site / folder).glob("*.html")) - addresses:
            path.unlink()
    for path in set((site / DOWNLOADS).glob("*")) - downloads:
        path.unlink()


def own_digest() -> str:
    """Return a digest of this package, so that a page is made again when what makes it changes."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run_sphinx(sources: Path, site: Path, folder: Path, workers: int) -> None:
    """Turn the copied notebooks into pages.

    Raises:
        UserError: with Sphinx's warnings, if it has any.
    """
    warnings = io.StringIO()
    app = Sphinx(
        sources,
        None,
        site,
        folder / "doctrees",
        "html",
        confoverrides=settings(),
        status=None,
        warning=warnings,
        parallel=workers,
    )
    app.build()
    if warned := plain(warnings.getvalue()).strip():
        raise UserError(f"Sphinx could not make every page:\n{warned}")


def publish(folder: Path, into: Path) -> Views:
    """Copy the pictures of a lesson's views to the site, and return the views."""
    for path in folder.iterdir():
        if path.name != VIEWS_FILE:
            copy(path, into)
    return read_views(folder)


def copy(path: Path, into: Path) -> None:
    """Copy a file into a folder, unless the same is there."""
    into.mkdir(parents=True, exist_ok=True)
    if not (into / path.name).exists() or not filecmp.cmp(path, into / path.name, shallow=False):
        shutil.copyfile(path, into / path.name)


def settings() -> dict[str, object]:
    """Return Sphinx's configuration."""
    return {
        "extensions": ["grader.site.extension", "sphinx.ext.githubpages"],
        "project": TITLE,
        "html_title": TITLE,
        "html_theme": "furo",
        "html_static_path": [str(STATIC)],
        "html_favicon": str(STATIC / "hood.svg"),
        "html_copy_source": False,
        "html_show_copyright": False,
        "html_permalinks_icon": "#",
        "html_math_renderer": "mathml",
        "html_sidebars": {
            "**": [
                "sidebar/brand.html",
                "sidebar/search.html",
                "sidebar/scroll-start.html",
                "sidebar/navigation.html",
                "sidebar/scroll-end.html",
            ]
        },
        "html_theme_options": {
            "top_of_page_buttons": [],
            "light_css_variables": LIGHT,
            "dark_css_variables": DARK,
        },
        "html_use_index": False,
        "html_domain_indices": False,
        "highlight_language": "none",
        "myst_gfm_only": True,
        "pygments_style": "github-light",
    }
