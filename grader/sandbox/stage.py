"""What a sandbox shows of this machine: the Python environment, a stage of the project's files."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from grader.phase_paths import ROOT


def make_stage(stage: Path) -> None:
    """Make the folder `stage`: copies of `utils` and `grader/inside`, and `etc`.

    The zygote and its kernels import from the copies, because the project's root also holds what
    no learner may see.
    """
    for package in ("utils", "grader/inside"):
        unwanted = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(ROOT / package, stage / package, ignore=unwanted)
    (stage / "grader" / "__init__.py").touch()
    (stage / "etc").mkdir()
    (stage / "etc" / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    for path in (stage, *stage.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def environment_folders() -> list[str]:
    """This Python's folders: the environment's, and the interpreter's that it was made from."""
    executable = Path(os.path.realpath(sys.executable))
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    found.add(str(executable.parent.parent))
    return sorted(os.path.abspath(folder) for folder in found)


def hidden_folders(shown: list[str]) -> list[str]:
    """The project's root, where it lies in a folder that is shown."""
    inside = any(ROOT.is_relative_to(folder) for folder in (*shown, "/usr"))
    return [str(ROOT)] if inside and (ROOT / "phases").is_dir() else []
