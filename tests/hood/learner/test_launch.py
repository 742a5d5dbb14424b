"""``python3 -m hood.learner.launch``: packages once, copies, and JupyterLab on the start page."""

import os
import re
import subprocess
import sys
import urllib.request

import pytest

from hood import UserError
from hood.authoring.bundle import learner_files
from hood.course import course
from hood.learner import launch
from hood.phase_paths import ROOT
from tests.patience import PATIENCE, eventually

COURSE = """
install = ["-r lock/cpu.txt", "-r lock/rest.txt"]
install_gpu = ["-r lock/gpu.txt"]
install_note = "They take no space."
"""


class Machine:
    """Replaces the programs that a set-up calls."""

    def __init__(self, folder):
        self.calls, self.gpu, self.fails = [], False, False
        self.folder = folder

    def run(self, call, **options):
        if call[-1] == "-L":
            return subprocess.CompletedProcess(call, 0 if self.gpu else 9)
        self.calls.append(" ".join(map(str, call)).replace(str(self.folder), "."))
        if self.fails:
            raise subprocess.CalledProcessError(1, call)
        if "venv" in call:
            (self.folder / ".venv").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(call, 0)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.delenv("UV", raising=False)
    (tmp_path / "lock").mkdir()
    for name in ("cpu", "gpu", "rest"):
        (tmp_path / "lock" / f"{name}.txt").write_text(f"{name}==1\n")
    (tmp_path / "course.toml").write_text(COURSE)
    made = Machine(tmp_path)
    monkeypatch.setattr(launch.subprocess, "run", made.run)
    monkeypatch.setattr(launch.shutil, "which", {"nvidia-smi": "nvidia-smi"}.get)
    return made


def installed(machine):
    return [word for call in machine.calls for word in re.findall(r"lock/\w+\.txt", call)]


def test_packages_are_installed_once(machine, capsys):
    about = course(machine.folder)
    assert launch.set_up(about, None) == str(machine.folder / ".venv" / "bin" / "python")
    assert installed(machine) == ["lock/cpu.txt", "lock/rest.txt"]
    assert "They take no space." in capsys.readouterr().out
    assert "-m venv --clear" in machine.calls[0]
    assert machine.calls[-1].endswith("--no-deps --no-build-isolation --editable .")
    done = len(machine.calls)
    launch.set_up(about, None)
    assert len(machine.calls) == done
    (machine.folder / "lock" / "cpu.txt").write_text("cpu==2\n")
    launch.set_up(about, None)
    assert len(machine.calls) == 2 * done


def test_a_folder_that_was_moved_is_set_up_again(machine, tmp_path_factory):
    launch.set_up(course(machine.folder), None)
    moved = tmp_path_factory.mktemp("moved") / "course"
    machine.folder.rename(moved)
    machine.folder, machine.calls = moved, []
    launch.set_up(course(moved), None)
    assert installed(machine) == ["lock/cpu.txt", "lock/rest.txt"]


def test_the_build_for_a_gpu_only_where_there_is_one_or_it_is_asked_for(machine):
    about = course(machine.folder)
    machine.gpu = True
    launch.set_up(about, None)
    assert installed(machine) == ["lock/gpu.txt"]
    machine.gpu, machine.calls = False, []
    launch.set_up(about, None)  # it stays as it was
    assert machine.calls == []
    launch.set_up(about, False)
    assert installed(machine) == ["lock/cpu.txt", "lock/rest.txt"]
    machine.calls = []
    launch.set_up(about, True)
    assert installed(machine) == ["lock/gpu.txt"]


def test_uv_is_taken_where_it_is(machine, monkeypatch):
    monkeypatch.setenv("UV", "/opt/uv")
    launch.set_up(course(machine.folder), None)
    assert all(call.startswith("/opt/uv ") for call in machine.calls)


def test_a_set_up_that_fails_is_not_taken_for_done(machine):
    machine.fails = True
    with pytest.raises(UserError, match=r"this command failed.* -m venv"):
        launch.set_up(course(machine.folder), None)
    machine.fails, machine.calls = False, []
    launch.set_up(course(machine.folder), None)
    assert installed(machine) == ["lock/cpu.txt", "lock/rest.txt"]


def test_a_folder_without_a_course(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "hood.learner.launch"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == f"expected a course in {tmp_path}, got no course.toml there\n"


def test_another_python_hears_which_one_to_take():
    code = "import sys; sys.version_info = (3, 9, 1); import hood.learner.launch"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("expected Python 3.11 to 3.14, got 3.9.")


def test_the_pythons_are_those_of_the_project():
    wanted = f'requires-python = ">=3.{launch.OLDEST[1]},<3.{launch.NEWEST[1] + 1}"'
    assert wanted in (ROOT / "pyproject.toml").read_text()


@pytest.mark.slow(20)
def test_jupyterlab_opens_on_the_learners_copies(tmp_path):
    for name, content in learner_files(ROOT, ["00"]).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    call = [sys.executable, "-m", "hood.learner.launch", "--python", sys.executable, "--no-browser"]
    log = tmp_path / "log"
    with (
        log.open("w") as out,
        subprocess.Popen(
            call,
            cwd=tmp_path,
            env=os.environ | {"HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"},
            stdout=out,
            stderr=out,
        ) as process,
    ):
        try:
            address = re.compile(r"http://127\.0\.0\.1:\d+/lab/tree/work/start\.ipynb\?token=\w+")
            eventually(lambda: address.search(log.read_text()), log.read_text)
            url = address.search(log.read_text())[0]
            api = url.replace("/lab/tree/", "/api/contents/")
            with urllib.request.urlopen(api, timeout=PATIENCE) as answer:
                assert b"show_contents" in answer.read()
        finally:
            process.terminate()
            subprocess.run(["pkill", "-P", str(process.pid)], check=False)
            process.wait(PATIENCE)
    assert (tmp_path / "work" / "00_hello" / "00_hello.ipynb").is_file()
