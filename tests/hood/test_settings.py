"""nbgrader's settings and the commands if a package or the grader is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hood import not_installed
from hood.phase_paths import ROOT

CONFIG = "nbgrader_config.py"
HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        for one in {names}:
            if name == one or name.startswith(one + "."):
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""
READ = """
from traitlets.config.loader import PyFileConfigLoader
c = PyFileConfigLoader("nbgrader_config.py", sys.argv[1]).load_config()
print(c.ExchangeFactory.get("collect"), c.ExportApp.get("plugin_class"))
"""
NBGRADER = "from nbgrader.apps.nbgraderapp import main\nmain()\n"
OURS = "hood.classroom.hand_ins.exchange.Collect hood.classroom.nbgrader.export.Export\n"
NBGRADERS = "None None\n"


def python(code, *words, hidden=(), cwd):
    """Run code in which some modules can't be imported."""
    return subprocess.run(
        [sys.executable, "-c", HIDDEN.format(names=list(hidden)) + code, *words],
        cwd=cwd,
        env=os.environ
        | {
            "OPEN_THE_HOOD_EXCHANGE": str(cwd / "exchange"),
            "HOME": str(cwd),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
    )


@pytest.fixture
def course(tmp_path):
    """A course with our settings, whose grader is this project's."""
    (tmp_path / CONFIG).write_bytes((ROOT / CONFIG).read_bytes())
    for package in ("hood", "utils"):
        (tmp_path / package).symlink_to(ROOT / package)
    return tmp_path


@pytest.mark.slow(3)
def test_with_the_whole_grader_its_own_steps_are_set(course):
    assert python(READ, str(course), cwd=course).stdout == OURS


@pytest.mark.slow(3)
@pytest.mark.parametrize("absent", ["hood", "hood.grader", "hood.grader.course"])
def test_a_folder_without_a_grader_has_nbgraders_steps(absent, course):
    """A learner's folder has no grader; it may have the part of the package that makes copies."""
    done = python(READ, str(course), hidden=[absent], cwd=course)
    assert (done.stdout, done.returncode) == (NBGRADERS, 0), done.stderr


@pytest.mark.slow(10)
@pytest.mark.parametrize(
    "missing", ["pydantic", "yaml", "dateutil", "jinja2", "hood.grader.submission"]
)
def test_a_grader_that_lacks_a_package_stops_nbgrader(missing, course):
    done = python(READ, str(course), hidden=[missing], cwd=course)
    assert (done.stdout, done.returncode) == ("", 1)
    assert f"No module named '{missing}" in done.stderr
    assert "nbgrader stops, because the grader in" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow(3)
@pytest.mark.parametrize("damage", ["def (", "from hood.grader.course import nothing", "1 / 0"])
def test_a_damaged_grader_stops_nbgrader(damage, course):
    """traitlets logs any other exception of a settings file, and nbgrader goes on without it."""
    (course / "hood").unlink()
    (course / "hood" / "grader").mkdir(parents=True)
    for package in ("hood", "hood/grader"):
        (course / package / "__init__.py").touch()
    (course / "hood" / "grader" / "course.py").write_text(damage)
    done = python(READ, str(course), cwd=course)
    assert (done.stdout, done.returncode) == ("", 1)
    assert "nbgrader stops, because the grader in" in done.stderr


@pytest.mark.slow(10)
@pytest.mark.parametrize("words", [("collect", "01_x"), ("zip_collect", "01_x"), ("export",)])
def test_our_commands_are_never_replaced_by_nbgraders(words, course):
    done = python(NBGRADER, *words, hidden=["pydantic"], cwd=course)
    assert done.returncode == 1
    assert "No module named 'pydantic'" in done.stderr
    made = {one.name for one in Path(course).iterdir()} - {CONFIG, "hood", "utils", "exchange"}
    assert {one for one in made if not one.startswith(".")} == set()


MAIN = "from hood.__main__ import main\nsys.exit(main({words}))\n"
COMMANDS = {
    "distributed": "import hood.grader.batch.cluster",
    "uvicorn": MAIN.format(words=["serve"]),
    "fastapi": MAIN.format(words=["serve"]),
    "jupyterhub": MAIN.format(words=["serve", "--hub"]),
    "sphinx": MAIN.format(words=["site"]),
}


@pytest.mark.slow(10)
@pytest.mark.parametrize("missing", COMMANDS)
def test_missing_packages_are_installed_from_the_lock(missing, tmp_path):
    """A package index may have a foreign package with this project's name."""
    done = python(COMMANDS[missing], hidden=[missing], cwd=tmp_path)
    assert done.returncode != 0
    assert (
        f" needs {missing}, which is not installed. In the project's folder, run: " in done.stderr
    )
    assert done.stderr.endswith(
        f"{sys.executable} -m pip install --no-deps --require-hashes -r lock/packages.txt "
        "-r lock/extras.txt\n"
    )
    names = (ROOT / "lock" / "extras.txt").read_text() + (ROOT / "lock/packages.txt").read_text()
    assert f"\n{missing}==" in names


def test_a_missing_module_of_this_project_is_no_package_to_install():
    with pytest.raises(ModuleNotFoundError):
        not_installed("the service", ModuleNotFoundError("no", name="hood.classroom.service.app"))
