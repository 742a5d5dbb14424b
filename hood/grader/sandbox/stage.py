"""Choose what a sandbox sees of this machine: the Python environment and the stage.

The stage is a folder with copies of the project's files that kernels import, and of Linux's data on
the whole machine. If sandboxes saw the machine's current data, a sandbox could change this data,
and another sandbox could read the change. So sandboxes see the data from the moment when the stage
was made, and only the files that programs need.
"""

from __future__ import annotations

import os
import shutil
import site
import stat
import sys
from pathlib import Path

from hood.course import ENGINE, FILE, course, course_folder

# Patterns of files in /proc and /sys. A sandbox sees copies of these files. psutil, torch, the C
# library and commands such as `free` and `ps` read them.
SHOWN = (
    *(f"proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime")),
    *(f"proc/{name}" for name in ("filesystems", "version")),
    *(f"proc/sys/fs/{name}" for name in ("file-max", "nr_open", "pipe-max-size")),
    *(f"proc/sys/kernel/{name}" for name in ("cap_last_cap", "ngroups_max", "pid_max")),
    *(f"proc/sys/kernel/{name}" for name in ("osrelease", "ostype", "version")),
    *(f"proc/sys/vm/{name}" for name in ("max_map_count", "overcommit_memory")),
    "proc/sys/net/core/somaxconn",
    *(f"sys/devices/system/cpu/{name}" for name in ("online", "possible", "present", "kernel_max")),
    *(f"sys/devices/system/cpu/cpu[0-9]*/{name}/*" for name in ("topology", "cache/index*")),
)

# The engine's folders and files (as patterns) that kernels import.
IMPORTED = (
    *("hood/learner", "hood/judge/checks", "hood/judge/connection", "hood/judge/values"),
    *("hood/grader/inside", "hood/*.py", "hood/judge/history.py"),
)

PACKAGES = (f"{os.sep}site-packages", f"{os.sep}dist-packages")


def make_stage(stage: Path) -> None:
    """Make the folder ``stage``: imported files, ``course.toml``, ``etc``, ``proc``, ``sys``.

    The zygote and its kernels import from the copies, because the engine's folder and the course's
    folder also contain files that learners must not see. In ``proc``, unneeded entries are empty
    folders, or files that nobody may read. Raises OSError if a file cannot be written.
    """
    root = course_folder()
    engine = [(path, ENGINE) for pattern in IMPORTED for path in ENGINE.glob(pattern)]
    own = [(root / name, root) for name in (*course(root).packages, FILE)]
    for path, above in [*engine, *own]:
        copy = stage / path.relative_to(above)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, copy, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        elif path.exists():
            shutil.copyfile(path, copy)
    for package in ("hood/judge", "hood/grader"):
        (stage / package / "__init__.py").touch()
    (stage / "etc").mkdir()
    (stage / "etc" / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    (stage / "sys").mkdir()
    for path in (path for pattern in SHOWN for path in Path("/").glob(pattern) if path.is_file()):
        copy = stage / path.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    for path in (stage, *stage.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in Path("/proc").iterdir():
        hidden = stage / "proc" / path.name
        if path.name.isdigit() or path.is_symlink() or hidden.exists():
            continue
        if path.is_dir():
            hidden.mkdir()
            hidden.chmod(0o755)
        elif path.stat().st_mode & stat.S_IROTH:  # each file takes time at every start
            hidden.touch(0)


def environment_folders() -> list[str]:
    """Return the folders of this Python: its environment, and the installation of its interpreter.

    A ``.pth`` file may name the package folder of another environment, such as a shared
    installation; then that folder is included. Other folders in such a file may be somebody's
    source code, so they are left out. A folder behind a symbolic link is listed with both paths,
    because some packages, such as matplotlib for its fonts, resolve links before they open a file.
    """
    executable = Path(os.path.realpath(sys.executable))
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    found.add(str(executable.parent.parent))
    # the zygote's path does not include these folders
    elsewhere = {site.getusersitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    found |= {path for path in sys.path if path.endswith(PACKAGES) and path not in elsewhere}
    return sorted(
        {path(folder) for folder in found for path in (os.path.abspath, os.path.realpath)}
    )


def hidden_folders(readable: list[str]) -> list[str]:
    """Return the folders to hide, with every path through which they could be read.

    The folders to hide are the course's folder and the engine's folder, if they have phases.
    """
    seen = {folder: Path(os.path.realpath(folder)) for folder in (*readable, "/usr")}
    return sorted(
        os.path.normpath(f"{folder}/{root.relative_to(real)}")
        for root in {course_folder(), ENGINE}
        if (root / "phases").is_dir()
        for folder, real in seen.items()
        if root.is_relative_to(real)
    )
