"""A course folder: nbgrader's settings for it, and nbgrader's commands in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from grader import UserError

CONFIG = "nbgrader_config.py"


@dataclass(frozen=True)
class Course:
    """Where nbgrader works.

    Attributes:
        root: the folder with ``nbgrader_config.py``.
        config: what stands in it.
        directory: nbgrader's view: its folders' names, the gradebook's address.
    """

    root: Path
    config: Config
    directory: CourseDirectory

    def folder(self, step: str, student: str, lab: str) -> Path:
        """The folder of one student and lab in ``submitted``, ``autograded`` or ``source``."""
        name = getattr(self.directory, f"{step}_directory")
        return Path(self.directory.format_path(name, student, lab))


def open_course(root: Path) -> Course:
    """Read the settings of a course folder."""
    config = nbgrader_config(root)
    if "root" not in config.CourseDirectory:
        config.CourseDirectory.root = str(root)
    return Course(root, config, CourseDirectory(config=config))


def nbgrader_config(root: Path) -> Config:
    """The course's nbgrader settings, so that stubs look as they do when nbgrader makes them."""
    if not (root / CONFIG).exists():
        return Config()
    before = list(sys.path)
    try:
        return PyFileConfigLoader(CONFIG, path=str(root)).load_config()
    finally:
        # What it adds, so that nbgrader finds a course's own steps, comes last: a copy of this
        # project that lies there must not take the place of the one that runs.
        sys.path[:] = before + [path for path in sys.path if path not in before]


def enter_lab(root: Path, lab: str) -> None:
    """Let nbgrader record the lab. The release it writes is thrown away: the built one stays."""
    with tempfile.TemporaryDirectory() as folder:
        release = f"--CourseDirectory.release_directory={folder}"
        nbgrader(root, "generate_assignment", lab, "--force", release)


def nbgrader(root: Path, *words: str) -> None:
    """Run an nbgrader command in the course's folder.

    Raises:
        UserError: with the end of its log, when it fails.
    """
    run_module(root, "grader.nbgrader", *words)


def run_module(root: Path, module: str, *words: str, shown: bool = False) -> None:
    """Run ``python -m MODULE`` in the course's folder, with the code that lies there.

    Args:
        shown: let it write to this process's terminal.

    Raises:
        UserError: when it fails; with the end of its log, unless that was shown.
    """
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
        stdout=None if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        log = "" if shown else ":\n" + "\n".join(done.stdout.splitlines()[-20:])
        raise UserError(f"{module} {words[0]} failed{log}")
