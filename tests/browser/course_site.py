"""The site as a reader opens it: built, served, and shown in a window that reaches nothing else."""

import contextlib
import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import nbformat.v4
import pytest
from playwright.sync_api import BrowserContext, Page

from hood import audience
from hood.authoring.notebooks.notebook import read
from hood.authoring.site.frames import keep, rests_on
from hood.authoring.steps import read_texts
from hood.phase_paths import ROOT, phases
from utils.views import backward_stepper

AUTOGRAD = next(phase for phase in phases(ROOT) if phase.number == "02")
START, LESSON, LAB = "index.html", f"lessons/{AUTOGRAD.name}.html", f"labs/{AUTOGRAD.name}.html"
# In a separate process: Sphinx registers its extensions once in a process. If it does so a second
# time, it warns.
BUILD = """
import pathlib, sys
from hood.authoring.site.build import build
build(pathlib.Path.cwd(), pathlib.Path(sys.argv[1]), print, moving=sys.argv[2:])
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and prints nothing."""

    def log_message(self, *words: object) -> None:
        pass


def stepper(monkeypatch: pytest.MonkeyPatch) -> tuple[nbformat.NotebookNode, dict]:
    """Return the cell of the lesson's first view, and its output with pictures.

    The lesson itself is not executed; its other outputs are the committed ones.
    """
    published: list[dict] = []
    monkeypatch.setenv(audience.FRAMES, "1")
    monkeypatch.setattr("IPython.display.publish_display_data", published.append)
    backward_stepper({"c": "a * b", "d": "c + a", "L": "d ** 2"}, a=2.0, b=3.0)
    notebook = read(AUTOGRAD.page)
    assert notebook is not None
    cell = next(c for c in notebook.cells if c.source.startswith("backward_stepper("))
    return cell, published[0]


def build_site(folder: Path) -> Path:
    """Build the site of the committed notebooks; return the folder of its pages."""
    with pytest.MonkeyPatch.context() as patch:
        cell, bundle = stepper(patch)
    text = read_texts(AUTOGRAD).lesson
    cell.outputs = [nbformat.v4.new_output("display_data", bundle)]
    kept = folder / "frames" / f"{AUTOGRAD.page.stem}-{rests_on(text, ROOT)}"
    keep(nbformat.v4.new_notebook(cells=[cell]), kept)
    command = [sys.executable, "-c", BUILD, str(folder), AUTOGRAD.name]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder / "html"


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; yield its address."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Reader:
    """A window on the site; it reaches no other address."""

    def __init__(self, context: BrowserContext, site: str, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.loaded: set[str] = set()
        self.foreign: list[str] = []
        self.errors: list[str] = []
        context.route(lambda url: not url.startswith(site), self.refuse)
        self.page: Page = context.new_page()
        self.page.on("response", self.count)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def refuse(self, route) -> None:
        if not route.request.url.startswith("data:"):
            self.foreign.append(route.request.url)
        route.abort()

    def count(self, response) -> None:
        if not response.ok:
            self.errors.append(f"{response.status} {response.url}")
        self.loaded.add(response.url)

    def weight(self) -> int:
        """The bytes of the files that the page has loaded, uncompressed."""
        paths = {urlsplit(url).path for url in self.loaded}
        return sum((self.folder / path.lstrip("/")).stat().st_size for path in paths)

    def open(self, path: str) -> Page:
        self.loaded.clear()
        # on a busy machine, the network can be idle before the page's scripts have run
        self.page.goto(f"{self.site}/{path}")
        self.page.wait_for_load_state("networkidle")
        return self.page
