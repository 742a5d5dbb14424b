"""How the tests themselves are run: what is left out, in which order, what may be skipped."""

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest

from grader.phase_paths import ROOT
from tests.conftest import ByGroup
from tests.proven import Proven, digests

LAB = "99_tiny"


class Cache(dict):
    """As much of pytest's as is used."""

    set = dict.__setitem__


@pytest.fixture
def course(tmp_path):
    """A folder with all that a proof rests on."""
    for name in ("grader", "utils", "tests/grader", "tests/phases", f"phases/{LAB}"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.py").write_text(name)
    return tmp_path


def test_pytest_passes_over_no_folder_of_tests(pytestconfig):
    """By default it enters no folder named build, dist or venv, and says nothing of it."""
    folders = {
        part
        for path in (ROOT / "tests").rglob("test_*.py")
        for part in path.parent.relative_to(ROOT).parts
    }
    left_out = pytestconfig.getini("norecursedirs")
    assert [name for name in folders if any(fnmatch(name, one) for one in left_out)] == []


def proven(width, cache):
    return Proven(SimpleNamespace(cache=cache, option=SimpleNamespace(width=width)))


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        (f"phases/{LAB}/checks/twice.py", {"own"}),
        (f"release/{LAB}/{LAB}.ipynb", {"own"}),
        ("phases/98_other/lab.py", set()),
        ("grader/inside/bubblewrap.py", {"shared"}),
        ("utils/checks/exercise.py", {"shared"}),
        ("pyproject.toml", {"shared"}),
        ("tests/grader/proof/test_lab_proof.py", {"shared"}),
        ("grader/__pycache__/sandbox.pyc", set()),
    ],
)
def test_a_proof_stands_while_what_it_rests_on_is_the_same(course, path, changed):
    from tests import proven as module

    module._shared.cache_clear()
    before = digests(LAB, course)
    (course / path).parent.mkdir(parents=True, exist_ok=True)
    (course / path).write_text("new")
    module._shared.cache_clear()
    after = digests(LAB, course)
    assert {part for part in before if before[part] != after[part]} == changed


def test_what_was_proven_is_skipped_here_and_never_in_ci_or_a_proof(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    cache = Cache()
    assert not proven("test", cache).unchanged(LAB, "twice")
    proven("test", cache).remember(LAB, "twice")
    assert proven("test", cache).unchanged(LAB, "twice")
    assert not proven("test", cache).unchanged(LAB, "row_sums")
    assert not proven("proof", cache).unchanged(LAB, "twice")
    monkeypatch.setattr("tests.proven._shared", lambda root: "a changed grader")
    assert not proven("test", cache).unchanged(LAB, "twice")
    assert proven("check", cache).unchanged(LAB, "twice")
    monkeypatch.setenv("CI", "true")
    assert not proven("check", cache).unchanged(LAB, "twice")


def test_a_files_tests_stay_together_unless_they_are_of_a_group():
    split = ByGroup._split_scope
    assert split(None, "tests/a/test_b.py::test_c") == "tests/a/test_b.py"
    assert split(None, "tests/a/test_b.py::test_c[x-1]") == "tests/a/test_b.py"
    assert split(None, "tests/a/test_b.py::test_c[kernel: dies]") == "tests/a/test_b.py kernel"


MARKED = """
import pytest

def test_quick(): pass

@pytest.mark.slow(5)
def test_slow(): pass

@pytest.mark.slow(50)
def test_slower(): pass

@pytest.mark.full
def test_full(full): assert full
"""


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("width", "order"),
    [
        ("check", ["quick"]),
        ("test", ["slower", "slow", "quick"]),
        ("proof", ["slower", "slow", "quick", "full"]),
    ],
)
def test_each_width_runs_its_own_and_the_slowest_first(tmp_path, width, order):
    for name in ("conftest", "proven"):
        (tmp_path / "tests").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tests" / f"{name}.py", tmp_path / "tests")
    (tmp_path / "tests" / "test_marked.py").write_text(MARKED)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    words = [sys.executable, "-m", "pytest", "--width", width, "-vv", "--seed", "abc"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    ran = [line for line in done.stdout.splitlines() if "PASSED" in line]
    assert [line.partition("::test_")[2].split()[0] for line in ran] == order
    assert "--seed abc" in done.stdout


SEEDED = """
def test_seed(seeds): assert False, f"drawn with {seeds}"
"""


@pytest.mark.slow(3)
def test_all_workers_draw_with_the_seed_that_is_printed(tmp_path):
    """Else nobody could repeat a run that failed."""
    for name in ("conftest", "proven"):
        (tmp_path / "tests").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tests" / f"{name}.py", tmp_path / "tests")
    for name in ("a", "b"):
        (tmp_path / "tests" / f"test_{name}.py").write_text(SEEDED)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    words = [sys.executable, "-m", "pytest", "-n", "2"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    [printed] = re.findall(r"--seed (\w+)", done.stdout)
    assert re.findall(r"^E .*drawn with \['(\w+)'\]", done.stdout, re.M) == [printed] * 2


@pytest.mark.slow(4)
def test_check_leaves_out_a_package_that_has_passed_until_it_changes(tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    for name in ("conftest", "proven"):
        (tmp_path / "tests" / "utils").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / f"{name}.py", tmp_path / "tests")
    (tmp_path / "tests" / "utils" / "test_a.py").write_text("def test_a(): pass")
    (tmp_path / "tests" / "test_b.py").write_text("def test_b(): pass")
    (tmp_path / "utils").mkdir()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def ran(*words):
        asked = [sys.executable, "-m", "pytest", "-vv", *words]
        said = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True).stdout
        assert ("nothing has changed: tests/utils" in said) == ("::test_a" not in said)
        return len(re.findall("PASSED", said))

    check = ("--width", "check")
    assert ran(*check, "-k", "test_a") == 1  # not all: nothing is stored
    assert ran(*check) == 2
    assert ran(*check) == 1
    assert ran(*check, "-n", "1", "--dist", "load") == 1
    assert ran(*check, "tests/utils") == 1  # asked for
    assert ran("--width", "test") == 2
    (tmp_path / "utils" / "new.py").write_text("")
    assert ran(*check) == 2
    (tmp_path / "tests" / "utils" / "test_a.py").write_text("def test_a(): assert False")
    assert ran(*check) == 1
