"""The list of phases is consistent, agrees with what is on disk, and links only to what exists."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from hood import audience
from hood.learner.contents import (
    PHASES,
    ROOT,
    check_command,
    contents_html,
    contents_text,
    lab_of,
    lesson_of,
    show_check_command,
)
from hood.phase_paths import copy_of


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_phases_are_numbered_along_the_path_and_names_say_the_number():
    assert [item.number for item in PHASES] == list(range(12))
    assert all(need < item.number for item in PHASES for need in item.needs)
    folders = {path.name for path in (ROOT / "phases").iterdir() if (path / "lab.py").exists()}
    assert folders <= {item.name for item in PHASES}
    for item in PHASES:
        text = ROOT / "phases" / item.name / "lesson.py"
        if text.exists():
            assert f'title: "{item.title}"' in text.read_text(encoding="utf-8")


def test_an_absent_lesson_or_lab_is_none(tmp_path):
    tensors = PHASES[1]
    assert lesson_of(tensors, tmp_path) is None
    assert lab_of(tensors, tmp_path) is None
    lesson = touch(tmp_path / "notebooks" / "01_tensors.ipynb")
    lab = touch(tmp_path / "release" / "01_tensors" / "01_tensors.ipynb")
    assert lesson_of(tensors, tmp_path) == lesson
    assert lab_of(tensors, tmp_path) == lab


def test_a_learners_copy_of_a_lab_goes_before_the_released_one(tmp_path):
    touch(tmp_path / "release" / "01_tensors" / "01_tensors.ipynb")
    mine = touch(tmp_path / "work" / "01_tensors" / "01_tensors.ipynb")
    assert lab_of(PHASES[1], tmp_path) == mine
    assert "../work/01_tensors/01_tensors.ipynb" in contents_html(tmp_path)


def test_a_learners_copy_of_a_lesson_goes_before_the_lesson_and_has_another_name(
    tmp_path, monkeypatch
):
    touch(tmp_path / "notebooks" / "01_tensors.ipynb")
    mine = touch(tmp_path / "work" / "lesson_01_tensors.ipynb")
    assert lesson_of(PHASES[1], tmp_path) == mine
    assert '"../work/lesson_01_tensors.ipynb"' in contents_html(tmp_path)
    monkeypatch.chdir(tmp_path / "work")
    assert '"lesson_01_tensors.ipynb"' in contents_html(tmp_path)


@pytest.mark.parametrize(
    ("notebook", "place"),
    [
        ("notebooks/start.ipynb", "work/start.ipynb"),
        ("notebooks/06_compile.ipynb", "work/lesson_06_compile.ipynb"),
        ("release/06_compile/06_compile.ipynb", "work/06_compile/06_compile.ipynb"),
        ("notebooks/06_compile-Copy1.ipynb", None),
        ("notebooks/Untitled.ipynb", None),
        ("release/06_compile/data.csv", None),
        ("README.md", None),
    ],
)
def test_a_copys_place_and_no_two_copies_have_one_name(notebook, place):
    assert copy_of(Path(notebook)) == (Path(place) if place else None)
    names = [
        copy_of(Path(original)).name
        for item in PHASES
        for original in (f"notebooks/{item.name}.ipynb", f"release/{item.name}/{item.name}.ipynb")
    ]
    assert len(set(names)) == 2 * len(PHASES)


def test_built_pages_link_the_released_lab_even_if_a_copy_exists(tmp_path, monkeypatch):
    released = touch(tmp_path / "release" / "01_tensors" / "01_tensors.ipynb")
    touch(tmp_path / "work" / "01_tensors" / "01_tensors.ipynb")
    monkeypatch.setenv(audience.BUILD, "1")
    assert lab_of(PHASES[1], tmp_path) == released
    assert "../work/" not in contents_html(tmp_path)


def test_only_what_exists_is_linked_and_links_lead_there_from_the_start_page(tmp_path):
    html = contents_html(tmp_path)
    assert "href" not in html
    assert html.count("not written yet") == len(PHASES)
    touch(tmp_path / "notebooks" / "01_tensors.ipynb")
    touch(tmp_path / "release" / "01_tensors" / "01_tensors.ipynb")
    links = re.findall(r'href="([^"]*)"', contents_html(tmp_path))
    assert links == ["01_tensors.ipynb", "../release/01_tensors/01_tensors.ipynb"]
    assert all((tmp_path / "notebooks" / link).resolve().is_file() for link in links)
    lines = contents_text(tmp_path).splitlines()
    assert lines[1].startswith("01 Tensors: storage and view (lesson 01_tensors.ipynb, lab ")
    assert lines[2] == "02 Autograd by hand (not written yet)"


def test_the_table_shows_the_progress(tmp_path):
    begun = contents_html(tmp_path, {1: "4 of <11>"})
    assert "4 of &lt;11&gt;" in begun
    assert begun.count("<th") - contents_html(tmp_path).count("<th") == 1
    assert begun.count("<td") - contents_html(tmp_path).count("<td") == len(PHASES)


HOURS = {"ten minutes": 0.2, "half an hour": 0.5, "an hour": 1, "an hour and a half": 1.5}
HOURS |= {"two hours": 2, "two and a half hours": 2.5, "three hours": 3}
HOURS |= {"three and a half hours": 3.5, "four hours": 4}
SAID = re.compile(
    r"points, (?:about |a little over )?([\w ]*?(?:hours|minutes))"
    r"(?: without the \*further\* exercises? ([\d, and]+), which takes? ([\w ]+) more\.)?"
)
INVITED = re.compile(
    r"A class may leave (?:those|it) out, or count (?:them|it) as a bonus\. "
    "Otherwise all points count"
)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_the_table_agrees_with_the_lab(phase):
    text = (ROOT / "phases" / phase.name / "lab.py").read_text().replace("\n# ", " ")
    said = SAID.search(text)
    assert said is not None
    assert HOURS[said[1]] == phase.hours[1]
    assert HOURS.get(said[3], 0) == phase.further
    assert bool(INVITED.search(text)) is bool(phase.further)


@pytest.mark.parametrize("shell", [["bash", "--login"], ["sh"]])
def test_the_command_that_checks_a_lab_works_in_any_shell(shell, tmp_path):
    (tmp_path / ".bash_profile").write_text("PATH=/usr/bin:/bin\n")
    words = [*shell, "-c", check_command("no_such_lab")]
    variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(words, cwd="/", env=variables, capture_output=True, text=True)
    assert "no_such_lab" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_that_checks_a_lab_is_quoted_and_needs_the_checks(tmp_path, capsys):
    folder = tmp_path / "my 'course'"
    words = shlex.split(check_command("01_tensors", folder))
    assert words[:2] == ["cd", str(folder)]
    assert words[-4:] == ["-m", "hood", "check", "01_tensors"]
    show_check_command("01_tensors", folder)
    assert "does not have the checks" in capsys.readouterr().out
    show_check_command("01_tensors")
    assert capsys.readouterr().out == f"{check_command('01_tensors')}\n"


def test_built_pages_have_no_command_of_the_building_machine(monkeypatch, capsys):
    monkeypatch.setenv(audience.BUILD, "1")
    show_check_command("01_tensors")
    assert str(ROOT) not in capsys.readouterr().out
