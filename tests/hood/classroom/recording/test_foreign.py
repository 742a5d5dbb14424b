"""Assignments without this course's checks get the same scores as from plain nbgrader."""

import shutil

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from hood.grader.course import open_course
from tests.hood.classroom.recording.running import OPEN, graded, rows, run
from tests.hood.classroom.recording.small import enter
from tests.hood.tiny import ROOT, cell, nbgrader, released, write

pytestmark = pytest.mark.slow(40)
NAMES = ("one", "two")


def notebook(name):
    """Return a notebook with plain asserts, partial credit, a manual task, and no `verify`."""
    nb = new_notebook()

    def add(source, make=new_code_cell, **settings):
        kind = {"grade": False, "solution": False, "locked": False, "task": False}
        nb.cells.append(
            make(source, metadata={"nbgrader": kind | {"schema_version": 3} | settings})
        )

    begin, end = "### BEGIN SOLUTION", "### END SOLUTION"
    add(f"def f(x):\n    {begin}\n    return x\n    {end}", solution=True, grade_id="f")
    hidden = "### BEGIN HIDDEN TESTS\nassert f(int(open('data.txt').read())) == 7\n"
    hidden += "### END HIDDEN TESTS"
    add(f"assert f(1) == 1\n{hidden}", grade=True, locked=True, grade_id="all", points=3)
    add("1.5 if f(3) == 3 else 0.5", grade=True, locked=True, grade_id="partial", points=2)
    add("Why?", new_markdown_cell, grade=True, solution=True, grade_id="why", points=3)
    if name == "two":
        add("Draw it.", new_markdown_cell, task=True, locked=True, grade_id="draw", points=1)
    return nb


def hand_in(course, student, answer, names=NAMES, why="Why?"):
    for name in names:
        nb = released(notebook(name))
        cell(nb, "f").source = answer
        cell(nb, "why").source = why
        write(nb, course / "submitted" / student / "hw" / f"{name}.ipynb")
    write(b"8", course / "submitted" / student / "hw" / "data.txt")
    write(b"2026-01-02 10:00:00 UTC", course / "submitted" / student / "hw" / "timestamp.txt")


@pytest.fixture(scope="module")
def courses(tmp_path_factory):
    """One class, graded by nbgrader and by the batch, with and without our settings."""
    names = ("plain", "bare", "ours")
    made = {name: tmp_path_factory.mktemp("foreign") / name for name in names}
    for name in NAMES:
        write(notebook(name), made["plain"] / "source" / "hw" / f"{name}.ipynb")
    write(b"7", made["plain"] / "source" / "hw" / "data.txt")
    enter(open_course(made["plain"]), NAMES)
    for student, answer, more in [
        ("ann", "def f(x):\n    return x", {"why": "because"}),
        ("ben", "def f(x):\n    return 1", {"names": ("one",)}),
        ("cleo", "from helper import f", {}),
        (
            "dan",
            "import sys\ndef f(x):\n    print('!', file=sys.stderr)\n    return x",
            {"names": ("one",)},
        ),
        ("eve", "def f(x):\n    raise ValueError(x)", {"names": ("one",)}),
    ]:
        hand_in(made["plain"], student, answer, **more)
    write(b"def f(x):\n    return x\n", made["plain"] / "submitted" / "cleo" / "hw" / "helper.py")
    for name in ("bare", "ours"):
        shutil.copytree(made["plain"], made[name])
    shutil.copy(ROOT / "nbgrader_config.py", made["ours"])
    with (made["ours"] / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.CourseDirectory.root = {str(made['ours'])!r}\n")
    # this learner has no notebook, with and without settings
    shutil.rmtree(made["ours"] / "submitted" / "eve")
    for name in ("plain", "ours"):
        done = nbgrader(made[name], "autograde", "hw", code=ROOT)
        assert done.returncode == 0, done.stderr
    status, text = run(open_course(made["bare"]), OPEN)
    assert status == 0, text
    return made


def test_without_settings_the_scores_are_nbgraders(courses):
    plain, bare = (rows(courses[name], "hw") for name in ("plain", "bare"))
    # The batch leaves a missing notebook to an instructor; nbgrader gives it a 0.
    for found in (plain, bare):
        for student in ("ben", "dan", "eve"):
            kept = {k: row[0] for k, row in found[student].items() if "comment" not in k}
            missing = [kept.pop(k) for k in list(kept) if k.startswith("two/")]
            assert set(missing) <= ({None} if found is bare else {0.0, None})
            found[student] = kept
    assert bare == plain
    assert plain["ann"]["one/all"] == (3.0, None, None, False)
    assert plain["cleo"]["two/partial"][0] == 1.5
    assert plain["dan"]["one/all"] == 0.0


def test_with_our_settings_the_only_difference_is_that_warnings_cost_nothing(courses):
    """With our settings, `nbgrader autograde`, which formgrader's button calls, runs the batch."""
    plain, ours = (rows(courses[name], "hw") for name in ("plain", "ours"))
    for student in ("ann", "cleo"):
        assert ours[student] == plain[student]
    for name in ("all", "partial", "why"):
        assert ours["ben"][f"one/{name}"] == plain["ben"][f"one/{name}"]
    assert plain["ben"]["one/all"][0] == 0.0
    marks = {name: row[0] for name, row in ours["dan"].items()}
    assert (marks["one/all"], marks["one/partial"]) == (3.0, 1.5)


def test_the_other_files_are_there_too(courses):
    for student in ("ann", "cleo"):
        found = [
            {p.name: p.read_bytes() for p in folder.glob("*.*") if p.suffix != ".ipynb"}
            for name in ("plain", "bare")
            for folder in [courses[name] / "autograded" / student / "hw"]
        ]
        found[0].pop(
            "helper.py", None
        )  # a kernel would import it; the code has already run with it
        assert found[0] == found[1]
        assert found[0]["data.txt"] == b"7"


def test_a_missing_notebook_is_reported(courses):
    assert "No notebook named" in graded(courses["bare"], "eve", "hw", "two").cells[0].source
