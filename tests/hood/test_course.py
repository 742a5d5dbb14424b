"""The course that a process works for, and the settings in its course.toml."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hood import UserError
from hood.course import ENGINE, FILE, VARIABLE, course, course_folder
from hood.phase_paths import environment_with


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A course with its own package."""
    root = tmp_path / "other"
    (root / "tools").mkdir(parents=True)
    (root / "tools" / "__init__.py").write_text("WORD = 'spade'\n")
    (root / FILE).write_text('title = "Gardens"\npackages = ["tools"]\n')
    return root


def test_it_is_the_nearest_one_or_else_the_engines(other, tmp_path, monkeypatch):
    (other / "source" / "lab").mkdir(parents=True)
    for folder in (other, other / "source" / "lab"):
        monkeypatch.chdir(folder)
        assert course_folder() == other
    monkeypatch.chdir(tmp_path)
    assert course_folder() == ENGINE
    monkeypatch.setenv(VARIABLE, str(other))
    assert course_folder() == other


def test_a_child_works_for_the_course_of_its_folder_and_imports_its_packages(other, tmp_path):
    code = "import hood.phase_paths, tools; print(hood.phase_paths.ROOT, tools.WORD)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment_with(other),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{other} spade\n"


def test_in_a_folder_without_a_course_a_child_uses_its_parents_course(tmp_path):
    told = environment_with(tmp_path)
    assert told[VARIABLE] == str(ENGINE)
    assert told["PYTHONPATH"].split(os.pathsep)[:2] == [str(tmp_path), str(ENGINE)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("titel = 'x'", "unknown keys titel; expected keys:"),
        (
            "id = 'My course'",
            "expected lower-case letters, digits and '-' in `id`, got 'My course'",
        ),
        ("[[phases]]\nname = '1_a'\ntitle = 'A'", "such as 01_tensors, got '1_a'"),
        ("[[phases]]\nname = '01_a'", "missing 1 required positional argument: 'title'"),
        ("title =", "can't be read"),
    ],
)
def test_an_error_in_the_file_is_reported(tmp_path, text, said):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UserError, match=said):
        course(tmp_path)
