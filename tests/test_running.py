"""How the tests are run: selection, order and skips."""

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest

from hood.phase_paths import ROOT
from tests.conftest import ByGroup, drawn_labs, nearness


def test_pytest_skips_no_folder_of_tests(pytestconfig):
    """By default, pytest silently skips folders named build, dist or venv."""
    folders = {
        part
        for path in (ROOT / "tests").rglob("test_*.py")
        for part in path.parent.relative_to(ROOT).parts
    }
    left_out = pytestconfig.getini("norecursedirs")
    assert [name for name in folders if any(fnmatch(name, one) for one in left_out)] == []


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        (
            "hood/classroom/recording/command.py",
            "tests/hood/classroom/recording/test_command.py::test_a",
        ),
        (
            "tests/hood/classroom/recording/test_command.py",
            "tests/hood/classroom/recording/test_command.py::test_a",
        ),
        ("hood/grader/batch/job.py", "tests/hood/grader/test_course.py::test_a"),
        ("phases/07_training/answers/fit.toml", "tests/phases/test_checks.py::t[07_training: fit]"),
        ("release/07_training/07_training.ipynb", "tests/phases/test_checks.py::t[07_training: x]"),
        ("utils/notebook/style.py", "tests/utils/notebook/test_style.py::test_a"),
    ],
)
def test_check_begins_with_what_is_nearest_to_a_change(path, nearest):
    tests = [
        "tests/hood/grader/test_course.py::test_a",
        "tests/hood/classroom/recording/test_command.py::test_a",
        "tests/hood/judge/verdicts/test_judge.py::test_a",
        "tests/utils/notebook/test_style.py::test_a",
        "tests/phases/test_checks.py::t[01_tensors: byte_offset]",
        "tests/phases/test_checks.py::t[07_training: x]",
        "tests/phases/test_checks.py::t[07_training: fit]",
    ]
    assert max(tests, key=lambda test: nearness(test, [path])) == nearest


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
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
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
    """Otherwise a failed run could not be repeated."""
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    for name in ("a", "b"):
        (tmp_path / "tests" / f"test_{name}.py").write_text(SEEDED)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    words = [sys.executable, "-m", "pytest", "-n", "2"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    [printed] = re.findall(r"--seed (\w+)", done.stdout)
    assert re.findall(r"^E .*drawn with \['(\w+)'\]", done.stdout, re.M) == [printed] * 2


@pytest.mark.slow(4)
@pytest.mark.parametrize(
    ("width", "workers", "said"),
    [
        ("check", "0", "1 tests were not begun"),
        ("check", "1", "1 tests were not begun"),
        ("test", "0", "1 passed"),
    ],
)
def test_only_check_leaves_out_tests_for_lack_of_time_and_says_so(tmp_path, width, workers, said):
    (tmp_path / "tests").mkdir()
    text = (ROOT / "tests" / "conftest.py").read_text()
    assert "CHECK_SECONDS = 35" in text
    short = text.replace("CHECK_SECONDS = 35", "CHECK_SECONDS = -1")
    (tmp_path / "tests" / "conftest.py").write_text(short)
    (tmp_path / "tests" / "test_a.py").write_text("def test_a(): pass")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    words = [sys.executable, "-m", "pytest", "--width", width, "-n", workers]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert said in done.stdout


def test_labs_with_changed_text_checks_or_bank_are_tested(monkeypatch):
    config = SimpleNamespace(option=SimpleNamespace(width="test", seed="a seed"))
    for lab in ("02_autograd", "05_custom_op", "09_profiling"):
        for path in (f"phases/{lab}/lab.py", f"tests/phases/answers/{lab[:2]}/x.toml"):
            monkeypatch.setattr("tests.conftest.changed", lambda root, path=path: [path])
            assert lab in drawn_labs(config)
    monkeypatch.setattr("tests.conftest.changed", lambda root: ["README.md"])
    assert len(drawn_labs(config)) == 3
