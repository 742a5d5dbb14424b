"""Runs a command as another user, or with other mounts."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from hood.grader.sandbox.stage import environment_folders
from hood.phase_paths import ROOT

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
TOOLS = ("unshare", "setpriv", "mount")


def why_not() -> str:
    """The reason why such a command cannot run here; empty if there is none."""
    if os.geteuid() != 0:
        return "only root can become somebody else"
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"there is no {lacking[0]} here" if lacking else ""


def as_nobody(stash: Path, arguments: list[str]) -> list[str]:
    """The command that runs Python with `arguments` as an ordinary user.

    Folders on the way to the environment and the project that such a user cannot enter, such as
    /root, are covered in a mount namespace, and the needed folders are mounted on top.
    stash: an empty folder
    """
    needed = [path for path in {*map(Path, environment_folders()), ROOT} if not _within_usr(path)]
    needed = [path for path in needed if not any(other in path.parents for other in needed)]
    closed = {folder for path in needed if (folder := _first_closed(path))}
    steps = ["set -e"]
    for number, path in enumerate(needed):
        (stash / str(number)).mkdir()
        steps.append(f"mount --bind '{path}' '{stash}/{number}'")
    steps += [f"mount -t tmpfs -o mode=755 none '{folder}'" for folder in closed]
    for number, path in enumerate(needed):
        if _first_closed(path):
            steps += [f"mkdir -p '{path}'", f"mount --bind '{stash}/{number}' '{path}'"]
    steps.append('exec "$@"')
    return [*in_namespace(steps), *NOBODY, sys.executable, *arguments]


def in_namespace(steps: list[str]) -> list[str]:
    """The start of a command that first runs shell steps in a new mount namespace."""
    return ["unshare", "--mount", "sh", "-c", "\n".join(steps), "sh"]


def _within_usr(path: Path) -> bool:
    return path.is_relative_to("/usr")


def _first_closed(path: Path) -> Path | None:
    """The outermost parent that other users may not enter."""
    for parent in reversed(path.parents):
        if not parent.stat().st_mode & 0o001:
            return parent
    return None
