"""The whole build of the example: written, checked, edited, copied back into the text."""

import json

import nbformat
import pytest

from hood.authoring import execute, review, steps
from hood.authoring.notebooks.release import generate
from hood.authoring.notebooks.text import Refused
from hood.authoring.site.build import executed_with
from hood.course import course as of_folder
from hood.manifest import versions
from hood.metadata import JUDGED, KEY, VERSIONS
from hood.phase_paths import ROOT, pages
from tests.hood.authoring.example import HEADER, LAB
from tests.hood.other_versions import pretend

SOURCE = "source/01_rows/01_rows.ipynb"
RELEASE = "release/01_rows/01_rows.ipynb"
PAGE = "notebooks/01_rows.ipynb"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The bytes of each file of the example, built once for this module."""
    from tests.hood.authoring.example import make_project

    made = make_project(tmp_path_factory.mktemp("built"))
    build(made)
    return {path: (made.root / path).read_bytes() for path in (SOURCE, RELEASE, PAGE)}


@pytest.fixture
def course(project, built):
    """A fresh project with the built notebooks in place."""
    for path, content in built.items():
        (project.root / path).parent.mkdir(parents=True, exist_ok=True)
        (project.root / path).write_bytes(content)
    return project


@pytest.fixture
def no_kernel(monkeypatch):
    """Count executions of lessons instead of running them."""
    ran = []

    def pretend(notebook, text, root):
        ran.append(text.path)
        for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
            cell.execution_count = count

    monkeypatch.setattr(steps, "run_page", pretend)
    return ran


def build(project, **options):
    """Build the project and return the messages."""
    said = []
    steps.build(pages(project.root), said.append, **options)
    return said


def check(project):
    """`build --check` as lines."""
    return [str(problem) for problem in review.problems(pages(project.root), True)]


def edit(project, path, change):
    """Change a built notebook, as someone in JupyterLab would."""
    notebook = nbformat.read(project.root / path, as_version=4)
    change(notebook)
    nbformat.write(notebook, project.root / path)


def set_source(index, old, new):
    """Return an edit that replaces one cell's source."""

    def change(notebook):
        assert old in notebook.cells[index].source
        notebook.cells[index].source = notebook.cells[index].source.replace(old, new)

    return change


def test_the_lesson_keeps_its_outputs(built):
    page = json.loads(built[PAGE])
    assert page["cells"][1]["outputs"][0]["text"] == ["hello 1\n"]
    assert page["cells"][2]["outputs"][0]["ename"] == "ValueError"
    assert page["metadata"]["language_info"]["name"] == "python"


def test_source_holds_everything_and_release_nothing_hidden(built):
    source, release = built[SOURCE].decode(), built[RELEASE].decode()
    for secret in ("math.prod(shape)", "verify", "because the dtype"):
        assert secret in source
        assert secret not in release
    assert "from hood.judge.verify import verify" in source
    assert r"raise NotImplementedError(\"write your answer here\")" in release
    assert "assert tensor_bytes((2, 3), 4) == 24" in release


def test_a_built_course_is_clean_and_stays_as_it_is(course, built, no_kernel):
    assert check(course) == []
    said = build(course)
    assert [line.split(": ")[1] for line in said] == ["up to date"] * 3
    assert no_kernel == []
    for path, content in built.items():
        assert (course.root / path).read_bytes() == content


def test_jupyterlabs_own_metadata_is_no_difference(course):
    edit(course, SOURCE, lambda nb: nb.cells[0].metadata.update(tags=[], trusted=True))
    assert check(course) == []


def test_a_release_that_a_learner_works_in_is_kept(course, no_kernel):
    def answer(notebook):
        cell = next(c for c in notebook.cells if "NotImplementedError" in c.source)
        cell.source = cell.source.split("raise")[0] + "return 24"

    edit(course, RELEASE, answer)
    mine = (course.root / RELEASE).read_bytes()
    beside = (course.root / RELEASE).with_name("own.csv")
    beside.write_bytes(b"by hand")
    assert any(line.startswith(f"{RELEASE}: kept") for line in build(course))
    assert (course.root / RELEASE).read_bytes() == mine
    build(course, force=True)
    assert b"return 24" not in (course.root / RELEASE).read_bytes()
    assert beside.read_bytes() == b"by hand"


@pytest.mark.parametrize("content", ["{ half a noteb", "[]", "{}", '{"nbformat": 4}'])
def test_a_damaged_release_is_kept(course, no_kernel, content):
    (course.root / RELEASE).write_text(content)
    assert any(line.startswith(f"{RELEASE}: kept") for line in build(course))


@pytest.mark.slow(3)
def test_the_release_equals_the_one_that_nbgrader_generates(course, tmp_path, monkeypatch):
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    from hood.authoring.notebooks.release import course_config

    config = course_config(course.root, course.root)
    config.CourseDirectory.db_url = f"sqlite:///{tmp_path}/own.db"
    before = (course.root / RELEASE).read_bytes()
    (course.root / RELEASE).unlink()
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    assert api.generate_assignment("01_rows")["success"]
    assert (course.root / RELEASE).read_bytes() == before


def test_a_release_does_not_show_how_answers_were_judged(built):
    released = generate({"01_rows": built[SOURCE]}, ROOT)["01_rows"]
    assert JUDGED.encode() in built[SOURCE]
    assert JUDGED.encode() not in released


def test_changed_utils_or_force_execute_again(course, no_kernel):
    course.write("utils/__init__.py", 'WORD = "changed"\n')
    assert check(course) == [
        f"{PAGE}: was executed before its text or its imports changed: run `python -m hood build`"
    ]
    build(course)
    assert no_kernel == ["phases/01_rows/lesson.py"]
    build(course, force=True)
    assert len(no_kernel) == 2


def test_changed_hours_execute_the_start_page_again(project, no_kernel):
    row = '[[phases]]\nname = "01_rows"\ntitle = "Rows"\nhours = [1, '
    project.write("phases/start.py", HEADER.replace(", points: 5, cell_seconds: 60", ""))
    project.write("course.toml", row + "2]\n")
    build(project)
    assert no_kernel == ["phases/01_rows/lesson.py", "phases/start.py"]
    project.write("course.toml", row + "3]\n")
    of_folder.cache_clear()
    stale = "was executed before its text or its imports changed: run `python -m hood build`"
    assert check(project) == [f"notebooks/start.ipynb: {stale}"]
    build(project)
    assert no_kernel[2:] == ["phases/start.py"]


def test_a_lesson_executed_with_other_versions_is_stale_and_executed_again(
    course, no_kernel, tmp_path, monkeypatch
):
    assert check(course) == []
    pretend(tmp_path, "numpy", "9.9.9")
    had, python = versions(course.root)["numpy"], versions(course.root)["Python"]
    monkeypatch.syspath_prepend(tmp_path)
    assert check(course) == [
        f"{PAGE}: was executed with numpy {had} (now numpy 9.9.9): run `python -m hood build`"
    ]
    assert (
        executed_with(course.root / PAGE, of_folder(course.root))
        == f" with Python {python} and numpy {had}"
    )
    build(course)
    assert no_kernel == ["phases/01_rows/lesson.py"]
    assert (
        executed_with(course.root / PAGE, of_folder(course.root))
        == f" with Python {python} and numpy 9.9.9"
    )
    assert check(course) == []
    build(course)
    assert len(no_kernel) == 1


def test_another_python_makes_no_lesson_stale_but_one_without_versions_is_stale(course, no_kernel):
    edit(course, PAGE, lambda nb: nb.metadata[KEY][VERSIONS].update(Python="3.99"))
    assert check(course) == []
    build(course)
    assert executed_with(course.root / PAGE, of_folder(course.root)).startswith(
        " with Python 3.99 and numpy"
    )
    edit(course, PAGE, lambda nb: nb.metadata[KEY].pop(VERSIONS))
    assert check(course) == [
        f"{PAGE}: does not say with which packages it was executed: run `python -m hood build`"
    ]
    assert executed_with(course.root / PAGE, of_folder(course.root)) == ""
    build(course)
    assert no_kernel == ["phases/01_rows/lesson.py"]


def test_a_lesson_that_someone_ran_and_saved_is_executed_again(course, no_kernel):
    edit(course, PAGE, lambda nb: nb.cells[1].outputs.clear())
    build(course)
    assert no_kernel == ["phases/01_rows/lesson.py"]


def test_a_new_title_keeps_the_outputs(course, no_kernel):
    lesson = course.phase / "lesson.py"
    lesson.write_text(lesson.read_text().replace('"Rows"', '"Rows and columns"'))
    (problem,) = check(course)
    assert problem.startswith(f"{PAGE}: is not what its text builds")
    assert '"Rows and columns"' in problem
    build(course)
    assert no_kernel == []
    assert check(course) == []


def test_texts_are_refused_before_anything_is_written(project):
    (project.phase / "lab.py").write_text(LAB.replace(" points=2", ""))
    with pytest.raises(Refused, match="has no points"):
        build(project)
    assert not (project.root / "source").exists()


def test_checks_that_cannot_be_loaded_are_reported(project):
    (project.phase / "checks.py").write_text("x = 1\nx.y\n")
    with pytest.raises(Refused, match=r"checks.py:2: can't be loaded: AttributeError"):
        build(project)


def test_a_lesson_that_is_too_large_is_not_written(project, no_kernel, monkeypatch):
    monkeypatch.setattr(execute, "LARGEST", 500)
    with pytest.raises(
        Refused, match=r"lesson.py:1: the built notebook has 1,\d+ bytes, expected under"
    ):
        build(project)
    assert not (project.root / PAGE).exists()


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (
            SOURCE,
            set_source(3, "count =", "number ="),
            "+cell 4:     number = math.prod(shape)",
        ),
        (
            RELEASE,
            lambda nb: nb.cells[5].metadata.nbgrader.update(points=9),
            '"points": 9',
        ),
        (RELEASE, lambda nb: nb.cells.pop(4), ', "bytes")'),
        (
            SOURCE,
            lambda nb: nb.cells.append(nbformat.v4.new_code_cell("1")),
            ": 1",
        ),
        (SOURCE, lambda nb: nb.cells[4].update(execution_count=1), '"holds": "outputs"'),
        (SOURCE, lambda nb: nb.cells[4].update(id="other"), '+cell 5: {"id": "other"'),
        (PAGE, set_source(0, "A fact", "A claim"), "+cell 1: A claim."),
        (PAGE, lambda nb: nb.cells[1].update(execution_count=None), "was not executed"),
        (PAGE, lambda nb: nb.cells[2].metadata.pop("tags"), '"type": "code"}'),
    ],
)
def test_check_names_the_differences(course, path, change, message):
    edit(course, path, change)
    found = check(course)
    assert any(message in line for line in found), found
    assert all(line.startswith((path, "phases/01_rows/lesson.py")) for line in found)


def test_check_finds_missing_damaged_and_forgotten_notebooks(course):
    (course.root / RELEASE).unlink()
    course.write(PAGE, "{")
    stale = (course.root / SOURCE).read_text()
    course.write("source/02_gone/02_gone.ipynb", stale)
    course.write("source/exam/exam.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4, '
                 '"nbformat_minor": 5}')  # fmt: skip
    missing, damaged, gone = sorted(check(course), key=lambda line: line.count("gone"))[::1]
    assert {missing.split(":")[0], damaged.split(":")[0]} == {PAGE, RELEASE}
    assert gone == "source/02_gone/02_gone.ipynb: no text builds it any more: delete it"


def bring_home(project):
    """Run `build --from-notebooks` and return the messages."""
    said = []
    steps.bring_home(pages(project.root), said.append)
    return said


def test_an_edit_is_copied_into_the_text(course, no_kernel):
    edit(course, SOURCE, set_source(3, "count = math.prod(shape)", "count = math.prod([*shape])"))
    edit(course, PAGE, set_source(0, "A fact", "A claim"))
    with pytest.raises(Refused, match="has edits that phases/01_rows/lab.py does not"):
        build(course)
    assert bring_home(course) == [
        "phases/01_rows/lesson.py: written",
        "phases/01_rows/lab.py: written",
    ]
    assert (course.phase / "lab.py").read_text() == LAB.replace(
        "count = math.prod(shape)", "count = math.prod([*shape])"
    )
    # A second edit, before any build, is detected.
    edit(course, SOURCE, set_source(4, '"bytes"', '"B"'))
    assert bring_home(course) == ["phases/01_rows/lab.py: written"]
    build(course)
    assert check(course) == []
    assert bring_home(course) == ["no notebook has edits that are missing in its text"]


def test_points_changed_in_jupyterlab_are_copied_into_the_text(course):
    edit(course, SOURCE, lambda nb: nb.cells[5].metadata.nbgrader.update(points=4.0))
    bring_home(course)
    assert '# %% test="tensor_bytes" points=4\n' in (course.phase / "lab.py").read_text()


def test_a_conflict_lists_both_sides_and_writes_nothing(course):
    changed = LAB.replace("Solve it", "Work through it")
    (course.phase / "lab.py").write_text(changed)
    edit(course, SOURCE, set_source(4, "bytes", "B"))
    edit(course, PAGE, set_source(0, "A fact", "A claim"))
    before = (course.phase / "lesson.py").read_text()
    with pytest.raises(Refused) as refused:
        bring_home(course)
    message = str(refused.value)
    assert "both changed since the last build; nothing was written" in message
    assert "phases/01_rows/lab.py: changed: cell 1 '# Lab: rows'" in message
    assert f"{SOURCE}: changed: cell 5 'print(tensor_B((2, 3), 4), \"B\")'" in message
    assert (course.phase / "lab.py").read_text() == changed
    assert (course.phase / "lesson.py").read_text() == before


def test_the_same_edit_on_both_sides_is_no_conflict(course, no_kernel):
    (course.phase / "lab.py").write_text(LAB.replace("Solve it", "Work through it"))
    edit(course, SOURCE, set_source(0, "Solve it", "Work through it"))
    assert bring_home(course) == ["no notebook has edits that are missing in its text"]
    build(course)
    assert check(course) == []


def test_a_notebook_of_unknown_origin_is_not_overwritten(course):
    edit(course, SOURCE, lambda nb: nb.metadata.pop("open_the_hood"))
    edit(course, SOURCE, set_source(4, "bytes", "B"))
    with pytest.raises(Refused, match="was not built from a text"):
        bring_home(course)
    with pytest.raises(Refused, match="has edits"):
        build(course)


def test_an_exercises_name_is_unique_in_the_course(project):
    other = LAB.replace("cell_seconds: 60", "cell_seconds: 90")
    project.write("phases/02_more/lab.py", other)
    with pytest.raises(Refused, match="01_rows has an exercise 'tensor_bytes', too") as refused:
        build(project)
    said = [str(p) for p in refused.value.problems if "rename one" in str(p)]
    line = LAB.splitlines().index('# %% test="tensor_bytes" points=2') + 1
    assert f"phases/01_rows/lab.py:{line}: " in said[0]
    assert len(said) == 2
