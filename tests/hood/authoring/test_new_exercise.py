"""`hood exercise` writes an exercise that is built at once, in every form of a phase."""

import argparse
import ast

import pytest

from hood import UserError
from hood.authoring import new_exercise, steps
from hood.authoring.stated import corrected_counts
from hood.judge.catalogue import load_checks
from hood.phase_paths import pages
from tests.hood.authoring.example import HEADER, LAB, lab
from tests.hood.authoring.test_new_course import hood

LAB_FILE, CHECKS_FILE = "phases/01_rows/lab.py", "phases/01_rows/checks.py"
DONE = "\n# %% [markdown]\n# ## Done\n#\n# Hand it in.\n"


def add(project, name="doubled", points=2.0):
    """Add an exercise to the example; return its files by path."""
    args = argparse.Namespace(name=name, lab=None, points=points)
    assert new_exercise.run(args, project.root) == 0
    return {
        path.relative_to(project.root).as_posix(): path.read_text()
        for path in sorted(project.phase.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.fixture
def built(monkeypatch):
    """A function that builds a project without its lesson, and judges what changed."""
    monkeypatch.setattr(steps, "build_page", lambda *_: None)

    def build(project):
        load_checks.cache_clear()
        said = []
        steps.build(pages(project.root), said.append)
        return said

    return build


def test_a_new_exercise_is_built_and_judged_at_once(project, built):
    """The check goes into `checks.py`, which has the imports. The header's points become right."""
    files = add(project)
    assert "points: 7," in files[LAB_FILE]
    assert files[CHECKS_FILE].count("import Check, case") == 1
    ast.parse(files[CHECKS_FILE])
    assert files["phases/01_rows/solutions.md"].startswith("# Lab 01, solved\n\n## doubled\n")
    said = built(project)
    assert f"{LAB_FILE}: judging doubled and its 2 answers, because it changed" in said


def test_a_new_exercise_has_a_file_of_its_own_in_a_folder_of_checks(project, built):
    checks = (project.phase / "checks.py").read_text()
    (project.phase / "checks.py").unlink()
    project.write("phases/01_rows/checks/bytes.py", checks)
    files = add(project)
    assert "doubled = Check(" in files["phases/01_rows/checks/doubled.py"]
    assert f"{LAB_FILE}: judging doubled and its 2 answers, because it changed" in built(project)


def test_a_name_that_the_file_of_checks_has_is_not_used_twice(project, built):
    project.write(CHECKS_FILE, f"import calendar\n\n{(project.root / CHECKS_FILE).read_text()}")
    files = add(project, "calendar")
    assert 'calendar_check = Check(\n    "calendar",' in files[CHECKS_FILE]
    built(project)


def test_the_cells_stand_above_a_last_section_without_an_exercise(project):
    project.write(LAB_FILE, LAB + DONE)
    content = add(project)[LAB_FILE]
    assert content.endswith(f"### END HIDDEN TESTS\n{DONE}")
    assert content.index("why_bytes") < content.index('solution="doubled"')


def test_a_lab_without_an_exercise_gets_its_set_up_cell(project, built):
    (project.phase / "checks.py").unlink()
    (project.phase / "answers" / "tensor_bytes.toml").unlink()
    title = HEADER.replace(", points: 5", "") + "# %% [markdown]\n# # Lab: rows\n"
    project.write(LAB_FILE, title + DONE)
    content = add(project)[LAB_FILE]
    assert content.index('given="setup"') < content.index("## 1 · Doubled") < content.index("Done")
    built(project)


def test_the_counts_of_the_first_paragraph_become_right(project, built):
    words = "# One exercise and one question, 5\n# points, for everybody.\n"
    project.write(LAB_FILE, LAB.replace("# Solve it from top to bottom.\n", words))
    content = add(project)[LAB_FILE]
    assert "# Two exercises and one question, 7\n# points, for everybody.\n" in content
    built(project)


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("Twenty exercises, 1 point", "One exercise, 2 points"),
        ("nineteen exercises, two points", "one exercise, two points"),
        ("several points", "several points"),
    ],
)
def test_a_corrected_count_is_written_as_it_was(said, right):
    content = LAB.replace("Solve it", said).replace(" points=3", " points=0")
    assert corrected_counts(lab(content), content) == LAB.replace("Solve it", right).replace(
        " points=3", " points=0"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("2nd", "expected a name of a Python function"),
        ("lambda", "expected a name of a Python function"),
        ("sum", "Python has a function with this name"),
        ("tensor_bytes", "lab.py has a cell of this name"),
        ("why_bytes", "lab.py has a cell of this name"),
        ("math", "a cell of phases/01_rows/lab.py defines or imports this name"),
        ("left", "phases/01_rows/answers/left.toml exists"),
    ],
)
def test_a_name_that_is_not_free_is_refused_and_nothing_is_written(project, name, why):
    project.write("phases/01_rows/answers/left.toml", "")
    with pytest.raises(UserError, match=why):
        add(project, name)
    assert (project.root / LAB_FILE).read_text() == LAB


def test_the_lab_must_be_clear_and_exist(project):
    with pytest.raises(UserError, match="points above 0"):
        add(project, points=0)
    project.write("phases/02_more/lab.py", LAB)
    with pytest.raises(UserError, match="which lab.*01, 02"):
        add(project)
    assert new_exercise.phase_with_lab(project.root, "2").name == "02_more"
    (project.root / "phases" / "02_more" / "lab.py").rename(
        project.root / "phases" / "02_more" / "lesson.py"
    )
    with pytest.raises(UserError, match="choose a phase that has a lab: 01"):
        new_exercise.phase_with_lab(project.root, "2")


@pytest.mark.slow(40)
def test_an_exercise_and_a_wrong_answer_are_added_to_a_new_course(tmp_path):
    """Each command prints the next command, and every small change of the solution is noticed."""
    folder = tmp_path / "words"
    assert hood(tmp_path, "new", "words").returncode == 0
    added = hood(folder, "exercise", "vowels", "--points", "3")
    assert "python -m hood build 01" in added.stdout, added.stderr
    (folder / "far.py").write_text("def vowels(x):\n    return x + 1000\n")
    for words, status, text in (
        (["build", "01"], 0, "judging vowels and its 2 answers"),
        (["mutants", "01", "--exercise", "vowels"], 0, "vowels"),
        (["wrong", "vowels", "far.py"], 0, "added “far”, as edits"),
        (["build", "01"], 1, "vowels.toml:8: replace the TODO"),
    ):
        done = hood(folder, *words)
        assert done.returncode == status, done.stdout + done.stderr
        assert text in done.stdout + done.stderr
    answers = folder / "phases" / "01_words" / "answers" / "vowels.toml"
    content = answers.read_text()
    answers.write_text(content.replace(content.split('says = "')[2].split('"')[0], "too large."))
    done = hood(folder, "build", "01")
    assert done.returncode == 0, done.stdout + done.stderr
