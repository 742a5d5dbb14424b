"""Lint, types, packages and the archive reach all files that they should."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mypy.main import process_options
from setuptools import Distribution
from setuptools.config.pyprojecttoml import apply_configuration

from hood.authoring.bundle import learner_files
from hood.phase_paths import ROOT

# The format of notebook text is its author's.
UNFORMATTED = re.compile(r"(examples/\w+/)?phases/")
UNTIDY = "import os\nx=1\n"


def tracked(*folders):
    """Return the files of the project, or of some of its folders, that Git has."""
    words = ["git", "ls-files", "-z", *folders]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return set(said.rstrip("\0").split("\0"))


def python(paths):
    return {path for path in paths if path.endswith(".py")}


@pytest.mark.slow(2)
def test_ruff_reads_every_python_file(tmp_path):
    for path in python(tracked()):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(UNTIDY)
    for name in ("pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)

    def read(*words):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--no-cache", "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1, done.stderr
        return set(re.findall(r"([\w./-]+\.py)\b", done.stdout))

    assert read("check", "--select=F401", "--output-format=concise") == python(tracked())
    formatted = read("format", "--check", "--output-format=concise", "--preview")
    assert formatted == {one for one in python(tracked()) if not UNFORMATTED.match(one)}


def test_mypy_reads_every_file_of_the_engine_and_of_the_courses_packages(monkeypatch):
    monkeypatch.chdir(ROOT)
    sources, _ = process_options([])
    assert {source.path for source in sources} == python(
        tracked("hood", "utils", "examples/numerics/numerics")
    )


def test_no_test_stands_where_pytest_does_not_look():
    others = {one for one in python(tracked("tests")) if "/test_" not in one}
    text = {one: (ROOT / one).read_text(encoding="utf-8") for one in others}
    assert [one for one in others if re.search(r"^(async )?def test_", text[one], re.M)] == []


def test_git_ignores_no_file_of_the_project():
    words = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""


@pytest.mark.filterwarnings("ignore")
def test_an_installed_copy_has_every_module_and_all_data(monkeypatch):
    monkeypatch.chdir(ROOT)
    project = Distribution({"script_name": "setup.py"})
    apply_configuration(project, "pyproject.toml")
    project.include_package_data = False  # looking for a manifest writes into the folder
    build = project.get_command_obj("build_py")
    build.ensure_finalized()
    found = {Path(path).as_posix() for path in build.get_source_files()}
    found |= {
        Path(folder, name).as_posix() for _, folder, _, names in build.data_files for name in names
    }
    assert tracked("hood", "utils", "benchmarks") - found == set()


@pytest.mark.slow(2)
def test_the_learners_archive_has_all_of_utils_and_of_the_records():
    assert tracked("utils", "benchmarks/records") - learner_files(ROOT).keys() == set()
