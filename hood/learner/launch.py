"""``python3 -m hood.learner.launch``: install what a learner's archive needs, and open JupyterLab.

Run it in the folder that the archive was unpacked into. This program needs only Python's standard
library. So it can make ``.venv`` itself: with uv if uv is installed, else with pip. ``course.toml``
says what to install (`install`, and `install_gpu` if ``nvidia-smi -L`` finds a GPU). A finished
set-up is not repeated: ``.venv/.installed`` records what was installed, and in which folder.
"""

# ruff: noqa: E402  an older Python must reach the message below

from __future__ import annotations

import sys

OLDEST, NEWEST = (3, 11), (3, 14)
if not OLDEST <= sys.version_info[:2] <= NEWEST:  # before any code that an older Python can't parse
    sys.exit(
        "expected Python {}.{} to {}.{}, got {}.{}. Run this with another Python, for example: "
        "python3.12 -m hood.learner.launch".format(*OLDEST, *NEWEST, *sys.version_info[:2])
    )

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hood import UserError
from hood.course import Course, course
from hood.phase_paths import START, WORK

VENV = ".venv"
INSTALLED = ".installed"  # in VENV: a hash of the installed packages and of the folder
SETTINGS = "hood/learner/jupyter"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m hood.learner.launch",
        description="Install what the course needs, bring your copies of the notebooks up to date, "
        "and open them in JupyterLab.",
    )
    add_arguments(parser)
    try:
        return run(parser.parse_args(arguments), Path.cwd())
    except UserError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        return 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--gpu", action="store_true", default=None, help="install for an NVIDIA GPU")
    which.add_argument("--cpu", action="store_false", dest="gpu", help="install for the CPU only")
    parser.add_argument(
        "--python",
        metavar="PYTHON",
        help="use this Python, which already has the packages, and install nothing",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="only print the address, and open no browser"
    )


def run(args: argparse.Namespace, folder: Path) -> int:
    """Set the folder up and run JupyterLab until it ends; return its exit status."""
    if os.name == "nt":
        raise UserError(
            "this needs Linux or macOS. On Windows, run this in WSL. `wsl --install` installs WSL"
        )
    about = course(folder)
    if not (folder / "course.toml").is_file():
        raise UserError(f"expected a course in {folder}, got no course.toml there")
    python = args.python or set_up(about, args.gpu)
    environment = learner_environment(folder)
    subprocess.run([python, "-m", "hood.learner.copies"], cwd=folder, env=environment, check=False)
    # JupyterLab leaves out the styles of a notebook that is not trusted.
    pages = sorted((folder / WORK).glob("lesson_*.ipynb"))
    pages += [page for page in [folder / WORK / f"{START}.ipynb"] if page.is_file()]
    trust = [python, "-m", "jupyter", "trust", *map(str, pages)]
    subprocess.run(trust, cwd=folder, env=environment, check=False, stdout=subprocess.DEVNULL)
    call = [python, "-m", "jupyter", "lab", "--Application.log_level=WARN"]
    call += [f"--LabApp.default_url=/lab/tree/{WORK}/{START}.ipynb"]
    call += ["--no-browser"] * args.no_browser + ["--allow-root"] * (os.geteuid() == 0)
    print("JupyterLab starts. Ctrl-C ends it.", flush=True)
    return subprocess.run(call, cwd=folder, env=environment, check=False).returncode


def learner_environment(folder: Path) -> dict[str, str]:
    """Return the environment in which a learner's JupyterLab and kernels run."""
    ours = {"PYTHONPATH": str(folder), "JUPYTER_CONFIG_PATH": str(folder / SETTINGS)}
    before = {name: os.environ.get(name) for name in ours}
    joined = {k: os.pathsep.join(filter(None, (one, before[k]))) for k, one in ours.items()}
    return {**os.environ, **joined}


def set_up(about: Course, gpu: bool | None) -> str:
    """Return the Python of ``.venv``, which has the course's packages; install them if needed.

    ``gpu``: whether to install for a GPU. If it is None, the choice of the last set-up is repeated.
    In the first set-up, the choice depends on whether this machine has a GPU. Raises UserError when
    the packages can't be installed.
    """
    folder, venv = about.root, about.root / VENV
    python = venv / "bin" / "python"
    stamps = {what: _stamp(folder, how) for what, how in _ways(about).items()}
    found = (venv / INSTALLED).read_text("utf-8") if (venv / INSTALLED).is_file() else ""
    if gpu is None:
        gpu = "gpu" in stamps and (found == stamps["gpu"] if found in stamps.values() else _gpu())
    what = "gpu" if gpu and "gpu" in stamps else "cpu"
    if found == stamps[what]:
        return str(python)
    uv = os.environ.get("UV") or shutil.which("uv")
    print(f"Installing packages in {venv}. {about.install_note}".rstrip(), flush=True)
    base = getattr(sys, "_base_executable", sys.executable)
    if uv:
        make = [uv, "venv", "--quiet", "--seed", "--clear", "--python", base]
        pip = [uv, "pip", "install", "--python", str(python)]
    else:
        make = [base, "-m", "venv", "--clear"]
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    _must([*make, str(venv)], folder)
    for one in [*_ways(about)[what], "--quiet --no-deps --no-build-isolation --editable ."]:
        _must([*pip, *shlex.split(one)], folder)
    (venv / INSTALLED).write_text(stamps[what], "utf-8")
    return str(python)


def _ways(about: Course) -> Mapping[str, Sequence[str]]:
    """Return pip's arguments for the CPU, and for a GPU if ``course.toml`` has them."""
    return {"cpu": about.install} | ({"gpu": about.install_gpu} if about.install_gpu else {})


def _stamp(folder: Path, install: Sequence[str]) -> str:
    words = shlex.split(" ".join(install))
    files = [folder / word for word in [*words, "pyproject.toml"] if (folder / word).is_file()]
    content = " ".join(install).encode() + b"".join(path.read_bytes() for path in files)
    return f"{hashlib.sha256(content).hexdigest()}\n{folder}\n"


def _gpu() -> bool:
    """Return whether there is an NVIDIA GPU."""
    found = shutil.which("nvidia-smi")
    return found is not None and not subprocess.run([found, "-L"], capture_output=True).returncode


def _must(call: Sequence[str], folder: Path) -> None:
    try:
        subprocess.run(call, cwd=folder, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise UserError(
            f"this command failed, and its output says why: {shlex.join(call)}\n"
            "Fix the problem, then run this again. Finished steps are not repeated."
        ) from None


if __name__ == "__main__":
    sys.exit(main())
