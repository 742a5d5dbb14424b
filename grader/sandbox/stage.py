"""What a room shows of this machine: the Python environment, and a stage of the project's files."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from grader.layout import ROOT

# The kernels' side of this package: a zygote and its kernels find these files and no others.
SANDBOX = (
    "app",
    "headers",
    "kernel",
    "linux",
    "messages",
    "preload",
    "room",
    "seccomp",
    "watch",
    "zygote",
)
REMOTE = ("answer", "wire")


def make_stage(stage: Path) -> None:
    """Make the folder `stage`: `utils`, the kernels' side of the grader, and `etc`.

    A copy, because the project's root also holds what no learner may see.
    """
    shutil.copytree(
        ROOT / "utils", stage / "utils", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    for package, names in (("sandbox", SANDBOX), ("remote", REMOTE)):
        folder = stage / "grader" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        for name in names:
            source = ROOT / "grader" / package / f"{name}.py"
            if source.exists():
                shutil.copyfile(source, folder / source.name)
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
