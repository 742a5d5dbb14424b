"""Choose what a sandbox sees of this machine: the Python environment and the stage.

The stage is a folder with copies of the project's files that kernels import.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from grader.phase_paths import ROOT


def make_stage(stage: Path) -> None:
    """Make the folder ``stage`` with copies of ``utils`` and ``grader/inside``, and with ``etc``.

    The zygote and its kernels import from the copies, because the project's root also contains
    files that no learner may see.

    Raises:
        OSError: if a file cannot be written.
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
    """Return the folders of this Python: the environment, and the interpreter it was made from."""
    executable = Path(os.path.realpath(sys.executable))
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    found.add(str(executable.parent.parent))
    return sorted(os.path.abspath(folder) for folder in found)


def hidden_folders(readable: list[str]) -> list[str]:
    """Return the folders to hide: the project's root, if it lies in a readable one."""
    inside = any(ROOT.is_relative_to(folder) for folder in (*readable, "/usr"))
    return [str(ROOT)] if inside and (ROOT / "phases").is_dir() else []
