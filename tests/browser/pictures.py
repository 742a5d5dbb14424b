"""``make pictures``: take the README's pictures again, in docs/pictures, from a real JupyterLab.

One picture shows a graded cell and its verdict on a wrong answer from this file. The other picture
shows a live view of a lesson. Both are taken in JupyterLab's light and dark theme.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import (
    CHROMIUM,
    FLAGS,
    MILLISECONDS,
    ROOT,
    Lab,
    environment,
    serving,
)
from tests.browser.test_journeys import choose, opened

FOLDER = ROOT / "docs" / "pictures"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
CHANGE = "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})"
# JupyterLab's marks on the selected cell.
QUIET = ".jp-cell-toolbar, .jp-Collapser-child {visibility: hidden !important}"
LAB, EXERCISE = "01_tensors", "byte_offset"
ANSWER = """\
def byte_offset(t: torch.Tensor, index: tuple[int, ...]) -> int:
    \"\"\"Bytes from the start of the storage to the element at `index`.\"\"\"
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += i % size * stride
    return place"""
VIEW = "stride_explorer("
WIDE = {"width": 900, "height": 2000}


def main() -> None:
    """Take all pictures. Raises RuntimeError if there is no Chromium."""
    if CHROMIUM is None:
        raise RuntimeError("there is no Chromium here. Try: sudo apt install chromium")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-") as temporary:
        folder = Path(temporary)
        ours = {"JUPYTER_CONFIG_PATH": str(folder / "course" / "hood" / "learner" / "jupyter")}
        variables = environment(folder) | ours
        with serving(folder, variables) as lab, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            write(verdict_notebook(), lab, "verdict.ipynb")
            write(view_notebook(), lab, "view.ipynb")
            for theme in THEMES:
                context = browser.new_context(viewport=WIDE, device_scale_factor=2)
                context.set_default_timeout(MILLISECONDS)
                page = context.new_page()
                take(page, lab, "verdict", theme, cells=2)
                take(page, lab, "view", theme, cells=1)
                context.close()
            browser.close()


def verdict_notebook() -> NotebookNode:
    """Return a lab of one exercise: its imports, a wrong answer, the graded cell."""
    lab = nbformat.read(ROOT / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    code = [cell for cell in lab.cells if cell.cell_type == "code"]
    graded = next(cell for cell in code if f'check("{EXERCISE}")' in cell.source)
    graded.source = f'check("{EXERCISE}")'
    lab.cells = [code[0], new_code_cell(ANSWER), graded]
    return lab


def view_notebook() -> NotebookNode:
    """Return a lesson's first cells and its view of strides, without the cells between them."""
    lesson = nbformat.read(ROOT / "notebooks" / f"{LAB}.ipynb", as_version=4)
    code = [cell for cell in lesson.cells if cell.cell_type == "code"]
    view = next(cell for cell in code if VIEW in cell.source and "import" not in cell.source)
    lesson.cells = [code[0], view]
    return lesson


def write(notebook: NotebookNode, lab: Lab, name: str) -> None:
    nbformat.write(notebook, lab.course / name)


def take(page: Page, lab: Lab, picture: str, theme: str, cells: int) -> None:
    """Run a notebook in a theme, and take a picture of its last cells and their outputs."""
    page.goto(lab.url(f"{picture}.ipynb"))
    notebook = opened(page, f"{picture}.ipynb")
    page.evaluate(CHANGE, THEMES[theme])
    page.add_style_tag(content=QUIET)
    if page.locator("#jp-left-stack").is_visible():
        page.keyboard.press("Control+b")
    choose(page, "Run", "Run All Cells")
    shown = notebook.locator(".jp-CodeCell")
    shown.last.locator(".jp-OutputArea-output").last.wait_for()
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
    page.wait_for_timeout(2000)  # until a widget has drawn its first frame, and the theme is there
    boxes = [shown.nth(shown.count() - 1 - number).bounding_box() for number in range(cells)]
    first, last = boxes[-1], boxes[0]
    assert first is not None
    assert last is not None
    clip = {"x": first["x"] + 10, "y": first["y"], "width": first["width"] - 10}
    clip["height"] = last["y"] + last["height"] - first["y"]
    path = FOLDER / f"{picture}-{theme}.png"
    page.screenshot(path=path, clip=clip)
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
