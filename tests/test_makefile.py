"""Which build of PyTorch `make` installs, and with which commands."""

import ast
import os
import re
import shutil
import subprocess

import pytest

from hood.phase_paths import ROOT

CPU, CUDA = "-r lock/torch-cpu.txt", "-r lock/torch-cuda.txt"
EXTRAS = "-r lock/extras.txt"


@pytest.fixture
def printed(tmp_path):
    """Call `make --just-print` in a copy of the project that has no .venv."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "lock", tmp_path / "lock")

    def call(*variables: str, target: str = "build", **more: str) -> str:
        # `make test` passes its own variables on to this `make`.
        ours = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "TORCH", "UV", "PIP_FIND_LINKS"}
        kept = {name: value for name, value in os.environ.items() if name not in ours}
        done = subprocess.run(
            ["make", "--just-print", target, *variables],
            cwd=tmp_path,
            env=kept | more,
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr

    return call


@pytest.fixture
def gpu(tmp_path):
    """Return a PATH with a program that says whether there is a GPU, as NVIDIA's does."""

    def path(status: int) -> str:
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho GPU; exit {status}\n")
        program.chmod(0o755)
        return f"{program.parent}:{os.environ['PATH']}"

    return path


def test_cuda_is_chosen_with_a_gpu_or_on_request(printed, gpu):
    assert CPU in printed(PATH=gpu(1))
    said = printed(PATH=gpu(0))
    assert CUDA in said
    assert "5.7 GB, with PyTorch's CUDA build; with TORCH=cpu it takes 2.7 GB" in said
    assert CPU in printed("TORCH=cpu", PATH=gpu(0))
    assert CPU in printed(TORCH="cpu", PATH=gpu(0))  # as a container sets it
    assert CUDA in printed("TORCH=cuda", PATH=gpu(1))
    assert 'TORCH is cuda or cpu, not "gpu"' in printed("TORCH=gpu")


def test_a_venv_keeps_its_build_until_the_other_is_requested(printed, tmp_path, gpu):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".ready-0123abc-cpu").write_text(str(tmp_path))
    assert CPU in printed(PATH=gpu(0))
    assert CUDA in printed("TORCH=cuda")


def test_only_make_lab_installs_a_learners_packages_and_keeps_existing_ones(printed, tmp_path):
    said = printed("TORCH=cpu", target="lab")
    assert "2.2 GB" in said
    assert EXTRAS not in said
    for target in ("teach", "hub", "site", "test", "demo", "tools"):
        said = printed("TORCH=cpu", target=target)
        assert EXTRAS in said, target
        assert "2.7 GB" in said
    (tmp_path / ".venv").mkdir()
    ready = tmp_path / ".venv" / ".ready-0123abc-cpu-learner"
    ready.write_text(str(tmp_path))
    assert EXTRAS in printed(target="teach")
    ready.rename(ready.with_name(".ready-0123abc-cpu-all"))
    assert EXTRAS in printed(target="lab")


def test_threads_that_wait_for_work_sleep():
    rule = "show: ; @echo $$OMP_WAIT_POLICY"
    shown = ["make", "--silent", "--no-print-directory", f"--eval={rule}", "show"]
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "OMP_WAIT_POLICY")
    }
    assert subprocess.check_output(shown, cwd=ROOT, env=kept, text=True) == "passive\n"


def test_uv_is_used_if_installed_and_hashes_are_always_required(printed):
    with_pip, with_uv = printed("UV="), printed("UV=/opt/uv")
    assert "/opt/uv" not in with_pip
    assert "python3 -m venv" in with_pip
    assert "/opt/uv venv --quiet --seed --clear  .venv" in with_uv
    assert "-m pip install" not in with_uv
    assert ".venv/bin/python -m pip check" in with_pip
    assert "/opt/uv pip check" in with_uv
    assert "--python python3.12" in printed("UV=/opt/uv", "PYTHON=python3.12")
    for said in (with_pip, with_uv):
        locked = [line for line in said.splitlines() if "-r lock/" in line]
        assert len(locked) == 2
        assert all("--no-deps --require-hashes --only-binary :all:" in line for line in locked)
        assert not any(
            "-q" in line for line in locked
        )  # otherwise there would be no output for minutes
    assert "lock/numbered.py" in with_pip
    assert "lock/numbered.py" not in with_uv  # uv shows how far it is


@pytest.mark.parametrize(("target", "at_once"), [("check", 3), ("test", 2), ("proof", 2)])
def test_each_width_checks_format_types_and_notebooks(printed, target, at_once):
    said = printed("CORES=5", target=target)
    for step in ("ruff check", "ruff format --check", "mypy", "hood build --check"):
        assert step in said, step
    assert f"--jobs={at_once} " in said
    assert f"pytest -n {5 if target == 'check' else 7} --durations=20" in said
    assert f"--width {target}\n" in said
    assert (f"[ {target} != proof ] || " in said) == (target != "check")
    assert ("faulthandler_timeout" in said) == (target == "proof")


@pytest.mark.parametrize("target", ["lab", "teach"])
def test_jupyterlabs_log_is_a_named_file_and_the_screen_has_its_errors(printed, target):
    said = printed(target=target)
    assert "Its log: build/jupyter.log" in said
    (words,) = re.findall(r'--Application.logging_config="(.*?)"', said)
    handlers = ast.literal_eval(words)["handlers"]
    assert handlers["console"]["level"] == "ERROR"
    assert handlers["file"]["filename"] == "build/jupyter.log"
    # only its owner can read the log, because it contains the server's token
    assert "install -m 600 /dev/null build/jupyter.log" in said


@pytest.mark.parametrize("odd", list(':$"\\`*?'))
def test_a_path_that_a_shell_or_nbgrader_misreads_is_refused_first(tmp_path, odd):
    said, status = at(tmp_path / f"ML {odd} 1")
    assert status == 2
    assert f"has {odd}, which means something else to the shell, PATH or nbgrader. Rename" in said


def test_in_other_paths_make_works(tmp_path):
    folder = tmp_path / "ML #1 'x' [2026] é ~ & (so on); %"
    (folder / ".venv" / "bin").mkdir(parents=True)
    program = folder / ".venv" / "bin" / "show"
    program.write_text('#!/bin/sh\nprintf "from %s" "$0"\n')
    program.chmod(0o755)
    said, status = at(folder, "--eval=show: ; @$(RUN) show", "show")
    assert (said, status) == (f"from {program}", 0)


def at(folder, *words: str) -> tuple[str, int]:
    """Return the output and status of `make` in a folder with the project's Makefile."""
    folder.mkdir(exist_ok=True)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "lock", folder / "lock", dirs_exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("M")}
    command = ["make", "--silent", *words]
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode
