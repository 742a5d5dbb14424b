"""Make views that move without Python: execute their lessons once, and keep the pictures.

Each lesson has a folder of pictures. The folder's name is a hash of everything that the pictures
depend on: the lesson's text, the utils that it imports, and the versions of packages. So a second
build executes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from rich.progress import track

from hood.audience import FRAMES
from hood.authoring.digest import lesson_digest
from hood.authoring.execute import run_page
from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.text import Refused, Text
from hood.authoring.steps import read_texts
from hood.manifest import versions
from hood.metadata import FRAMES_MIME as MIME
from hood.phase_paths import PhasePaths

VIEWS = "views.json"
FORM = 2  # of that file; with another number, all pictures are made again
Views = dict[str, dict[str, Any]]  # the views of a page, by cell, then by output


def frames_of(
    lessons: Iterable[PhasePaths], cache: Path, say: Callable[[str], None], workers: int
) -> dict[PhasePaths, Path]:
    """Return for each lesson the folder with its views. Execute lessons that have no folder yet.

    The folders are in `cache`. Folders of earlier texts are removed. If a lesson can't be executed,
    `say` reports it, and the lesson's page shows the pictures of the committed notebook.
    """
    folders: dict[PhasePaths, Path] = {}
    missing: list[tuple[PhasePaths, Text]] = []
    for phase in lessons:
        text = read_texts(phase).lesson
        assert text is not None
        folders[phase] = cache / f"{phase.page.stem}-{rests_on(text, phase.root)}"
        if not (folders[phase] / VIEWS).exists():
            missing.append((phase, text))

    def make(phase: PhasePaths, text: Text) -> None:
        notebook = to_notebook(text)
        run_page(notebook, text, phase.root, {FRAMES: "1"})
        keep(notebook, folders[phase])

    with ThreadPoolExecutor(workers) as pool:
        made = {pool.submit(make, *each): each[0] for each in missing}
        words = "executing lessons, for the pictures of their views"
        for done in track(as_completed(made), words, total=len(made), disable=not made):
            phase = made[done]
            try:
                done.result()
            except Refused as refused:
                del folders[phase]
                why = "; ".join(map(str, refused.problems[:1]))
                say(f"{phase.relative(phase.page)}: its views don't move, because {why}")
    for phase, folder in folders.items():
        for old in set(cache.glob(f"{phase.page.stem}-*")) - {folder}:
            shutil.rmtree(old)
    return folders


def rests_on(text: Text, root: Path) -> str:
    """Return a hash of everything that the pictures of a lesson's views depend on."""
    return digest(json.dumps([lesson_digest(text, root), versions(root), FORM]).encode())


def keep(notebook: NotebookNode, folder: Path) -> None:
    """Write the pictures of an executed lesson's views into a folder, with a table of them."""
    fresh = folder.with_name(f"new.{folder.name}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    views: Views = {}
    for cell in notebook.cells:
        for number, output in enumerate(cell.get("outputs", [])):
            frames = output.get("data", {}).get(MIME)
            if frames is None:
                continue
            picture = base64.b64decode(frames["base"])
            moving = {"pictures": frames["pictures"], "frames": frames["frames"]}
            base, name = f"{digest(picture)}.png", digest(json.dumps(moving).encode())
            script = f"hood.views[{json.dumps(name)}] = {json.dumps(moving, ensure_ascii=False)};\n"
            (fresh / base).write_bytes(picture)
            (fresh / f"{name}.js").write_text(script, encoding="utf-8")
            first = ",".join(str(control["start"]) for control in frames["controls"])
            views.setdefault(cell.id, {})[str(number)] = {
                "name": name,
                "base": base,
                "words": frames["frames"][first][1],
                "controls": frames["controls"],
                "places": list(frames["frames"]),
            }
    (fresh / VIEWS).write_text(json.dumps(views), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(fresh, folder)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
