"""The command line: chosen phases, exit statuses, messages without tracebacks."""

import subprocess
import sys

import pytest

from hood.__main__ import COMMANDS, main
from hood.phase_paths import choose, lab_named, pages
from tests.hood.authoring.example import LAB


@pytest.fixture
def here(project, monkeypatch):
    """The example, with the working directory inside it."""
    monkeypatch.chdir(project.phase)
    return project


def test_a_phase_is_found_by_its_name_or_number(project):
    project.write("phases/start.py", "")
    project.write("phases/02_empty/notes.txt", "")
    assert [phase.name for phase in pages(project.root)] == ["01_rows", "start"]
    for word in ("01_rows", "01", "1", "rows", "phases/01_rows/"):
        assert [phase.name for phase in choose(project.root, [word])] == ["01_rows"]
        assert lab_named(project.root, word) == "01_rows"
    assert choose(project.root, []) == pages(project.root)
    project.write("source/rows/rows.ipynb", "{}")
    assert lab_named(project.root, "rows") == "rows"
    project.write("source/pra\u0301ctica/lab.ipynb", "{}")
    assert lab_named(project.root, "pr\xe1ctica") == "pra\u0301ctica"
    for course in (project.root, project.root / "without phases"):
        assert lab_named(course, "homework") == "homework"


def test_an_unknown_phase_is_refused(here, capsys):
    assert main(["build", "7"]) == 2
    assert capsys.readouterr().err == "hood build: there is no phase '7'; the phases are: 01_rows\n"


def test_outside_of_a_project_the_command_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "course.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 2
    assert "run this in a course's folder" in capsys.readouterr().err


def test_problems_are_listed_and_counted(here, capsys):
    (here.phase / "lab.py").write_text(LAB.replace(" points=2", "").replace("setup", "a b"))
    assert main(["build"]) == 1
    lines = capsys.readouterr().err.strip().split("\n")
    assert all(line.startswith("phases/01_rows/") for line in lines[:-1])
    assert lines[-1] == f"{len(lines) - 1} problems"


def test_check_fails_on_a_missing_file(here, capsys):
    assert main(["build", "--check"]) == 1
    assert "notebooks/01_rows.ipynb: is missing" in capsys.readouterr().err


def test_bundle_needs_a_release(here, capsys):
    assert main(["bundle"]) == 2
    assert capsys.readouterr().err.startswith("hood bundle: there is no release yet")


def test_help_lists_the_commands_and_imports_none_of_them():
    code = (
        "import sys; from hood.__main__ import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m in ('jupytext', 'nbgrader', 'torch')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in run.stdout for name in COMMANDS)
    assert run.stdout.endswith("[]\n")


def test_a_wrong_argument_is_a_usage_error():
    with pytest.raises(SystemExit) as stopped:
        main(["build", "--check", "--from-notebooks"])
    assert stopped.value.code == 2


def test_a_phase_that_the_course_does_not_list_is_refused(here, capsys):
    path = here.root / "course.toml"
    path.write_text(path.read_text() + '[[phases]]\nname = "02_later"\ntitle = "Later"\n')
    assert main(["build"]) == 1
    assert "does not list phases/01_rows/: add [[phases]]" in capsys.readouterr().err
