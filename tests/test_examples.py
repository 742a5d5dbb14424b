"""The courses in examples/: their texts, notebooks and answers agree, and nothing needs torch."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from hood.authoring.command import SETTINGS
from hood.authoring.new_course import learner_packages
from hood.course import ENGINE, FILE

COURSES = sorted(path.parent for path in (ENGINE / "examples").glob(f"*/{FILE}"))
BUILT = ("notebooks", "source", "release")
OF_THIS_COURSE = {"torch", "triton", "transformers", "utils", "benchmarks"}
# `python -m hood`, which fails here if something imported one of these modules
WITHOUT_TORCH = f"""
import sys
from hood.__main__ import main
status = main(sys.argv[1:])
loaded = {OF_THIS_COURSE} & sys.modules.keys()
sys.exit(f"imported: {{loaded}}" if loaded else status)
"""
of_each = pytest.mark.parametrize("course", COURSES, ids=lambda course: course.name)


def hood(folder, *words):
    """Run a command of the engine in a folder; assert that it succeeds without torch."""
    kept = {key: value for key, value in os.environ.items() if key != "HOOD_COURSE"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *words],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ENGINE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_is_an_example():
    assert COURSES


@of_each
def test_no_file_of_an_example_imports_torch(course):
    paths = sorted(course.rglob("*.py"))
    assert any(path.name == "lab.py" for path in paths)
    named = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                named |= {one.name.partition(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                named.add(node.module.partition(".")[0])
    assert "hood" in named
    assert not named & OF_THIS_COURSE


@of_each
def test_an_examples_learners_get_the_versions_of_this_project(course):
    project = tomllib.loads((ENGINE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = {one for extra in project["optional-dependencies"].values() for one in extra}
    lines = (course / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = {line for line in lines if line and line[0] != "#"}
    assert wanted >= set(learner_packages())
    assert wanted - set(learner_packages()) <= known


@of_each
def test_an_example_has_the_engines_settings_of_nbgrader(course):
    assert (course / SETTINGS).read_bytes() == (ENGINE / SETTINGS).read_bytes()


@pytest.mark.slow(3)
@of_each
def test_an_examples_notebooks_are_those_of_its_texts(course):
    hood(course, "build", "--check")


@pytest.mark.slow(3)
@of_each
def test_an_examples_checks_judge_all_its_answers_rightly(course):
    hood(course, "selftest")


@pytest.mark.slow(8)
@of_each
def test_no_mutant_survives_in_an_example(course):
    hood(course, "mutants")


@pytest.mark.slow(25)
@of_each
def test_a_sample_class_of_an_example_gets_the_predicted_scores(course, tmp_path):
    shutil.copytree(
        course, tmp_path / "copy", ignore=shutil.ignore_patterns(".ipynb_checkpoints", "build")
    )
    last = sorted(path.name for path in (course / "phases").glob("[0-9]*/"))[-1]
    assert "scores agree with the predictions" in hood(tmp_path / "copy", "demo", last[:2])
    assert (tmp_path / "copy" / "reports" / last / "index.html").is_file()
