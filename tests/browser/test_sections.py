"""The first click on a link to a section leads there, even if its lesson is not open yet."""

import argparse
import os
import re
import subprocess
import sys

import nbformat
import pytest
from playwright.sync_api import Error, Page, expect

from hood.learner import copies
from tests.browser.test_journeys import grade_id, opened, put_away
from tests.patience import PATIENCE, eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow(120)]

LAB = "01_tensors"
TO_READ = re.compile(r'<div>To read: <a href="[^"#]+#cell-id=([^"]+)">')
# Scrolls a cell into view, as a reader does.
SHOW = """async id => {
  const notebook = jupyterapp.shell.currentWidget.content;
  const index = [...notebook.model.cells].findIndex((cell) => cell.id === id);
  await notebook.scrollToItem(index, "end");
}"""


@pytest.fixture(scope="module")
def to_read(learners):
    """The section that the verdict of each graded cell of an unsolved lab links to."""
    assert copies.run(argparse.Namespace(), learners.course) == 0
    copy = learners.course / "work" / LAB / f"{LAB}.ipynb"
    words = [sys.executable, "-m", "jupyter", "execute", "--allow-errors", "--inplace", copy.name]
    variables = os.environ | {"PYTHONPATH": str(learners.course)}
    subprocess.run(words, cwd=copy.parent, env=variables, check=True, timeout=PATIENCE)
    shown = {
        cell.id: "".join(one.get("data", {}).get("text/html", "") for one in cell.outputs)
        for cell in nbformat.read(copy, 4).cells
        if grade_id(cell) and cell.cell_type == "code"
    }
    return {cell: link[1] for cell, said in shown.items() if (link := TO_READ.search(said))}


def test_the_first_click_on_a_link_to_a_section_reaches_it(profile, learners, to_read):
    lesson = nbformat.read(learners.course / "work" / f"lesson_{LAB}.ipynb", 4)
    first_lines = {cell.id: cell.source.partition("\n")[0] for cell in lesson.cells}
    titles = {cell: line.strip("# ").replace("`", "") for cell, line in first_lines.items()}
    assert len(to_read) == 10
    page = profile.new_page()
    try:
        page.goto(learners.url(f"work/{LAB}/{LAB}.ipynb"))
        opened(page, f"{LAB}.ipynb")
        assert page.get_by_text("Jupyter news").count() == 0
        for graded, section in to_read.items():
            click(page, graded, section)
            lesson = opened(page, f"lesson_{LAB}.ipynb")
            expect(lesson.get_by_role("heading", name=titles[section])).to_be_in_viewport()
            put_away(page)
            opened(page, f"{LAB}.ipynb")
    finally:
        page.close()


def click(page: Page, graded: str, section: str) -> None:
    """Click a verdict's link. JupyterLab removes cells from the page while it draws others."""
    links = page.locator(f".jp-NotebookPanel:visible .jp-OutputArea a[href$='#cell-id={section}']")

    def clicked() -> bool:
        page.evaluate(SHOW, graded)
        try:
            links.first.click(timeout=3000)
        except Error:
            return False
        return True

    eventually(clicked, f"a click on the link to {section}", step=0.5)
