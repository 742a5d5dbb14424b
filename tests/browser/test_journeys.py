"""The work of a learner and an instructor in JupyterLab, in a real browser."""

import argparse
import itertools
import re
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from hood.learner import copies, journal
from hood.learner.bring_in import Given, hash_of_outputs
from hood.learner.contents import PHASES, ROOT
from hood.learner.lab_file import read_lab

pytestmark = [pytest.mark.browser, pytest.mark.slow(100)]

TENSORS = PHASES[1]
NOTEBOOK, LESSON = f"{TENSORS.name}.ipynb", f"lesson_{TENSORS.name}.ipynb"
RELEASE = f"release/{TENSORS.name}/{NOTEBOOK}"
SOURCE = f"source/{TENSORS.name}/{NOTEBOOK}"


@pytest.fixture(scope="module")
def mine(lab):
    """The learner's copy of the released lab, as a path in the course. `make lab` made it."""
    assert copies.run(argparse.Namespace(), lab.course) == 0
    return f"work/{TENSORS.name}/{NOTEBOOK}"


@pytest.fixture(scope="module")
def desk(profile, lab, mine):
    """JupyterLab, opened once because its scripts cost four seconds; notebooks stay open."""
    page = profile.new_page()
    page.goto(lab.url("work/start.ipynb"))
    yield page
    page.close()


def test_the_start_page_shows_path_and_progress_and_links_lesson_and_lab(desk):
    page = desk
    notebook = opened(page, "start.ipynb")
    expect(notebook.get_by_role("heading", name="Open the Hood")).to_be_visible()
    road = notebook.get_by_alt_text("path of the course")
    expect(road).to_be_visible()
    assert road.evaluate("image => image.naturalWidth") > 400
    expect(notebook.get_by_role("link", name="Begin: lesson 00")).to_be_visible()

    choose(page, "Run", "Run All Cells")
    exercises = len(read_lab(TENSORS, ROOT / RELEASE).judged)
    progress = (
        notebook.get_by_role("row")
        .filter(has_text=TENSORS.title)
        .filter(has_text=f"{exercises} exercises, none begun")
    )
    expect(progress).to_be_visible()

    row = notebook.get_by_role("row").filter(has_text=TENSORS.promise)
    row.get_by_role("link", name="lab").click()
    expect(opened(page, NOTEBOOK).get_by_role("heading", level=1)).to_contain_text("Lab 01")
    tab(page, "start.ipynb").click()
    opened(page, "start.ipynb")
    row.get_by_role("link", name="lesson").click()
    lesson = opened(page, LESSON)
    expect(lesson.get_by_role("heading", level=1)).to_contain_text(TENSORS.title)
    lesson.get_by_role("link", name="The lab", exact=True).click()
    expect(opened(page, NOTEBOOK).get_by_role("heading", level=1)).to_contain_text("Lab 01")


def test_saving_a_lesson_without_a_run_keeps_its_outputs(desk, lab):
    """JupyterLab rewrites outputs when it saves; this does not count as a run."""
    page, copied = desk, lab.course / "work" / LESSON
    show(page, f"work/{LESSON}")
    before = copied.stat().st_mtime_ns
    choose(page, "File", "Save Notebook")
    page.wait_for_function("() => !document.querySelector('.jp-mod-current.jp-mod-dirty')")
    assert copied.stat().st_mtime_ns > before
    saved = nbformat.read(copied, 4)
    given = Given.read((lab.course / "work" / copies.RECORDS / f"{copied.stem}.json").read_bytes())
    assert [one.id for one in saved.cells if hash_of_outputs(one) not in given.outputs] == []


def test_the_released_lab_says_so_and_links_the_copy(desk):
    first = show(desk, RELEASE).locator(".jp-CodeCell").first
    run(desk, first)
    expect(first).to_contain_text("This is the released lab")
    assert first.get_by_role("link", name=f"work/{TENSORS.name}").count() == 1
    put_away(desk)


def test_a_view_of_the_lesson_is_a_picture_first_and_follows_its_slider_when_run(desk):
    page = desk
    notebook = show(page, f"notebooks/{NOTEBOOK}")  # without copies
    view = notebook.locator(".jp-CodeCell").filter(has_text="stride_explorer(").first
    expect(view.get_by_alt_text("Stride explorer")).to_be_visible()

    editor(view).click()
    choose(page, "Run", "Run All Above Selected Cell")
    editor(view).click()
    page.keyboard.press("Control+Enter")
    slider = view.get_by_role("slider").first
    slider.wait_for()
    picture = view.locator("img.widget-image")
    before = drawn(picture)
    slider.focus()
    slider.press("ArrowLeft")
    page.wait_for_function(
        "([image, before]) => image.src !== before", arg=[picture.element_handle(), before["src"]]
    )
    assert drawn(picture)["bytes"] != before["bytes"]
    put_away(page)


def test_a_check_names_the_mistake_then_passes_and_the_progress_follows(desk, lab, mine):
    page, notebook = desk, show(desk, mine)
    name = read_lab(TENSORS, lab.course / mine).exercises[0].name
    stub, check, graded = (
        notebook.locator(".jp-Cell").nth(number) for number in exercise(lab.course / mine, name)
    )
    setup = notebook.locator(".jp-CodeCell").first
    run(page, setup)

    write(page, stub, f"def {name}(*arguments):\n    return 'a guess'")
    for cell in (stub, check):
        run(page, cell)
    expect(check).to_contain_text("not yet")
    expect(check).not_to_contain_text("Traceback")

    write(page, stub, solution(name))
    for cell in (stub, check, graded):
        run(page, cell)
    for cell in (check, graded):
        expect(cell).to_contain_text(re.compile(r"\bok\b"))
        expect(cell).not_to_contain_text("not yet")
    expect(graded).to_contain_text("2 of 2 points")

    page.keyboard.press("Control+s")
    expect(tab(page, NOTEBOOK)).not_to_have_class(re.compile("jp-mod-dirty"))
    saved = read_lab(TENSORS, lab.course / mine)
    assert (saved.begun, saved.passing) == (1, 1)


def test_the_start_page_links_the_exercise_in_progress(desk, lab, mine):
    page, notebook = desk, show(desk, "work/start.ipynb")
    button = notebook.locator(".jp-CodeCell").filter(has_text="show_next()")
    run(page, button)
    left = read_lab(TENSORS, lab.course / mine).exercises[1]
    link = button.get_by_role("link", name=f"Continue: lab 01, {left.title}")
    link.click()
    expect(opened(page, NOTEBOOK).get_by_role("heading", level=1)).to_contain_text("Lab 01")


def test_the_verdict_stands_below_the_graded_cell_and_links_the_lesson(desk, lab, mine):
    page, notebook = desk, show(desk, mine)
    stub, visible, graded = (
        notebook.locator(".jp-Cell").nth(number)
        for number in exercise(lab.course / mine, "byte_offset")
    )
    for cell in (stub, visible, graded):
        run(page, cell)
    expect(graded).to_contain_text("Not attempted yet.")
    expect(graded).to_contain_text("byte_offset: not written yet.")
    expect(graded).not_to_contain_text("Traceback")

    write(page, stub, solution("byte_offset").replace("t.storage_offset()", "0"))
    for cell in (stub, graded):
        run(page, cell)
    expect(graded).to_contain_text("2 of 3 points")
    expect(graded).to_contain_text("“offset forgotten”")
    link = graded.get_by_role("link", name="The address of one element")
    link.click()
    lesson = opened(page, LESSON)
    heading = lesson.get_by_role("heading", name="The address of one element")
    expect(lesson.get_by_role("heading", level=1)).to_contain_text(TENSORS.title)
    # JupyterLab scrolls to a section only in a notebook that is open already.
    tab(page, NOTEBOOK).click()
    link.click()
    expect(heading).to_be_in_viewport()
    tab(page, NOTEBOOK).click()


def test_the_next_step_stands_below_a_verdict(desk, lab, mine):
    page, notebook = desk, show(desk, mine)
    stub, _, graded = (
        notebook.locator(".jp-Cell").nth(number)
        for number in exercise(lab.course / mine, "byte_offset")
    )
    run(page, graded)
    expect(graded).to_contain_text("your answer as it ran at")
    graded.get_by_text("Copy for a tutor").click()
    text = graded.locator("pre").filter(has_text="What its check said:")
    expect(text).to_contain_text("def byte_offset")
    expect(text).to_contain_text("2 of 3 points")
    graded.get_by_role("button", name="Show the solution").click()
    expect(graded.get_by_text("A worked solution of byte_offset")).to_be_visible()
    assert list(journal.read(TENSORS.name, lab.course).shown) == ["byte_offset"]

    write(page, stub, solution("byte_offset"))
    for cell in (stub, graded):
        run(page, cell)
    exercises = read_lab(TENSORS, lab.course / mine).exercises
    [after] = [b for a, b in itertools.pairwise(exercises) if a.name == "byte_offset"]
    graded.get_by_role("link", name=after.title).click()
    expect(notebook.get_by_role("heading", name=after.title)).to_be_in_viewport()
    page.keyboard.press("Control+s")
    expect(tab(page, NOTEBOOK)).not_to_have_class(re.compile("jp-mod-dirty"))
    saved = read_lab(TENSORS, lab.course / mine)
    assert [one.passing for one in saved.exercises if one.name == "byte_offset"] == [True]


def test_a_fresh_kernel_says_what_to_run(desk, lab, mine):
    page, notebook = desk, show(desk, mine)
    graded = notebook.locator(".jp-Cell").nth(exercise(lab.course / mine, "byte_offset")[2])
    page.evaluate("() => { jupyterapp.commands.execute('kernelmenu:restart') }")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    opened(page, NOTEBOOK)
    run(page, graded)
    expect(graded).to_contain_text("`check` is not defined: a cell above defines it")
    expect(graded).not_to_contain_text("Traceback")


def test_validate_names_a_failing_cell(desk, mine):
    show(desk, mine)
    desk.get_by_role("button", name="Validate").click()
    dialog = desk.get_by_role("dialog").filter(has_text="Validation Results")
    expect(dialog).to_contain_text("not written yet")
    expect(dialog).not_to_contain_text("Traceback")
    desk.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_formgrader_lists_the_assignment(desk):
    choose(desk, "Nbgrader", "Formgrader")
    row = desk.frame_locator("iframe").get_by_role("row").filter(has_text=TENSORS.name)
    expect(row).to_be_visible()


def show(page: Page, path: str) -> Locator:
    """Open a notebook of the course as the file browser does, or show its open panel."""
    opening = "path => jupyterapp.commands.execute('docmanager:open', {path}).then(() => null)"
    page.wait_for_function("() => window.jupyterapp")
    page.evaluate(opening, path)
    return opened(page, Path(path).name)


def put_away(page: Page) -> None:
    """Close the notebook in front, saved or not, so that its name is free."""
    page.evaluate("() => jupyterapp.shell.currentWidget.dispose()")


def opened(page: Page, name: str) -> Locator:
    """The notebook panel in front, once its tab shows `name` and its kernel is idle."""
    tab(page, name).and_(page.locator(".lm-mod-current")).wait_for()
    notebook = page.locator(".jp-NotebookPanel:visible")
    notebook.locator(".jp-Cell:visible").first.wait_for()  # cells out of view may be hidden
    # While the kernel starts, JupyterLab doesn't run a cell: it only shows a message about this.
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
    return notebook


def tab(page: Page, name: str) -> Locator:
    """A notebook's tab; a search of the whole page takes a second if it has many cells."""
    tabs = page.locator("#jp-main-dock-panel .lm-DockPanel-tabBar .lm-TabBar-tab")
    return tabs.filter(has=page.get_by_text(name, exact=True))


def choose(page: Page, menu: str, entry: str) -> None:
    """Choose an entry of JupyterLab's menu bar."""
    page.locator("#jp-MainMenu").get_by_role("menuitem", name=menu, exact=True).click()
    page.locator(".lm-Menu").get_by_role("menuitem", name=entry).first.click()


def editor(cell: Locator) -> Locator:
    return cell.locator(".cm-content")


def run(page: Page, cell: Locator) -> None:
    """Run one code cell and wait until it is finished."""
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    editor(cell).click()
    page.keyboard.press("Control+Enter")
    expect(prompt).not_to_have_text(before)
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"))


def write(page: Page, cell: Locator, source: str) -> None:
    """Replace a cell's source."""
    editor(cell).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def drawn(image: Locator) -> dict[str, str]:
    """Where an image's bytes come from, and the bytes themselves, in base 64."""
    return image.evaluate(
        """async image => {
            const blob = await (await fetch(image.src)).blob();
            const reader = new FileReader();
            await new Promise(done => { reader.onload = done; reader.readAsDataURL(blob); });
            return {src: image.src, bytes: reader.result};
        }"""
    )


def exercise(path: Path, name: str) -> tuple[int, int, int]:
    """The positions of an exercise's stub, visible check and graded cell in a notebook."""
    ids = [grade_id(cell) for cell in nbformat.read(path, 4).cells]
    stub, graded = ids.index(f"{name}_solution"), ids.index(name)
    return stub, stub + 1, graded


def grade_id(cell: nbformat.NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def solution(name: str) -> str:
    """The instructor's solution of an exercise, without the marker lines around the solution."""
    cells = nbformat.read(ROOT / SOURCE, 4).cells
    (source,) = (cell.source for cell in cells if grade_id(cell) == f"{name}_solution")
    return re.sub(r"(?m)^ *### (BEGIN|END) SOLUTION\n?", "", source)
