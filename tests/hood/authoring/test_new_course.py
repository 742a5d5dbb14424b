"""`hood new`: the course that it writes can be built, graded, packed and shown at once."""

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from hood import UserError
from hood.authoring.bundle import ENGINES_NAME, engine_wheel
from hood.authoring.new_course import learner_packages, new_course
from hood.course import ENGINE


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(UserError, match="new or empty folder"):
        new_course(tmp_path)
    with pytest.raises(UserError, match="letters or digits"):
        new_course(tmp_path / "…")


def test_the_title_and_the_id_come_from_the_folder(tmp_path):
    files = new_course(tmp_path / "My_words")
    said = tomllib.loads(files["course.toml"])
    assert (said["title"], said["id"]) == ("My words", "my-words")
    named = tomllib.loads(new_course(tmp_path / "a", 'A "good" course')["course.toml"])
    assert named["title"] == "A 'good' course"


def test_a_new_course_keeps_out_of_git_what_this_course_keeps_out(tmp_path):
    ours = (ENGINE / ".gitignore").read_text("utf-8").split("# A GPU's record")[0]
    theirs = new_course(tmp_path / "words")[".gitignore"]
    wanted = {one.strip("/") for one in ours.splitlines() if one[:1] not in ("", "#", "!")}
    missing = wanted - {"autograded/*"} - {one.strip("/") for one in theirs.splitlines()}
    assert missing == {"*.egg-info", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis",
                       ".DS_Store"}  # fmt: skip


def test_learners_get_no_package_of_this_course():
    names = {one.partition("=")[0] for one in learner_packages()}
    assert {"numpy", "jupyterlab"} <= names
    assert not names & {"torch", "transformers", "nbgrader"}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A new course, which was built."""
    folder = tmp_path_factory.mktemp("new") / "words"
    assert hood(folder.parent, "new", "words").returncode == 0
    built = hood(folder, "build")
    assert built.returncode == 0, built.stderr
    return folder


def hood(folder, *words, python=sys.executable, **variables):
    """Run a command of the engine in a folder."""
    kept = {key: value for key, value in os.environ.items() if key != "HOOD_COURSE"}
    return subprocess.run(
        [python, "-m", "hood", *words],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ENGINE)} | variables,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow(40)
def test_a_new_course_passes_its_own_tests(course):
    for words in (["build", "--check"], ["selftest"], ["mutants"], ["demo", "01"]):
        done = hood(course, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "scores agree with the predictions" in done.stdout
    assert (course / "reports" / "01_words" / "index.html").is_file()


@pytest.mark.slow(10)
def test_a_new_course_has_a_site_and_an_archive(course):
    for words in (["site"], ["bundle"], ["bundle", "--wheel", "--with-checks"]):
        done = hood(course, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (course / "build/site/html/lessons/01_words.html").is_file()
    with zipfile.ZipFile(course / "dist" / "words.zip") as packed:
        names = {name.removeprefix("words/") for name in packed.namelist()}
        needed = tomllib.loads(packed.read("words/pyproject.toml").decode())["project"]
        readme = packed.read("words/README.md").decode()
    assert {"requirements.txt", "work.sh", "LICENSE"} & names == {"requirements.txt"}
    assert needed["dependencies"] == learner_packages()
    assert "conda" not in readme
    assert "utils" not in readme


WITHOUT_TORCH = """
import sys
import importlib.util
from pathlib import Path
assert importlib.util.find_spec("utils") is None, "the wheel has the packages of this course"
import hood.__main__
assert Path(hood.__file__).is_relative_to(sys.prefix), hood.__file__
print("torch" in sys.modules)
"""


@pytest.mark.slow(20)
def test_the_engines_wheel_judges_without_this_course(course, tmp_path):
    """A separate environment with the wheel, and with this environment's packages except torch."""
    name, content = engine_wheel()
    (tmp_path / name).write_bytes(content)
    venv.create(tmp_path / "env", with_pip=False)
    python = str(tmp_path / "env" / "bin" / "python")
    [site] = (tmp_path / "env" / "lib").glob("python*/site-packages")
    ours = Path(pytest.__file__).parents[1]
    for package in os.scandir(ours):
        if not package.name.startswith(("torch", "triton", "transformers", "__editable__", "hood")):
            os.symlink(package.path, site / package.name)
    for link in site.glob("open_the_hood*"):
        link.unlink()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", site, tmp_path / name], check=True)
    away = {"PYTHONPATH": "", "HOOD_COURSE": ""}
    done = subprocess.run(
        [python, "-c", WITHOUT_TORCH], cwd=tmp_path, env=os.environ | away, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.stdout == "False\n", done.stderr
    for words in (["new", "alone"], ["selftest"]):
        folder = tmp_path if words[0] == "new" else course
        done = hood(folder, *words, python=python, **away)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_engines_wheel_names_what_it_needs():
    import io
    from email import message_from_string

    name, content = engine_wheel()
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        names = packed.namelist()
        [metadata] = [one for one in names if one.endswith("/METADATA")]
        said = message_from_string(packed.read(metadata).decode())
    assert name.startswith(ENGINES_NAME.replace("-", "_"))
    assert not [one for one in names if one.startswith("utils/")]
    assert {"grader", "classroom", "authoring"} <= set(said.get_all("Provides-Extra"))
    needed = said.get_all("Requires-Dist")
    assert any(one.startswith("numpy==") for one in needed)
    assert any(one.startswith("nbgrader==") and 'extra == "grader"' in one for one in needed)
    assert not any(one.startswith("torch") for one in needed)
    assert "hood/authoring/templates/course/dot_gitignore.j2" in names
