"""Give each sandbox a cgroup (version 2) of its own, where the system lets the grader make one.

A group that has processes of its own can't share out memory among groups below it. So the grading
process moves itself into a group below its own, and starts its workers and zygotes from there. If
another process remains above, none can be made.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LEAF = "open-the-hood"  # the group of the grading process, its workers and its zygotes
# Bytes that Linux counts beyond those of the meter, such as caches that it is about to give back.
# The meter comes first where memory grows slowly.
ROOM = 64 << 20


def enter(proc: Path = Path("/proc/self")) -> Path | None:
    """Move this process into a group of its own; return the group above, for those of sandboxes.

    The grading process calls it before it starts workers and a zygote; in these it returns the
    same. None if the system lets nobody make groups here; then nothing has changed. ``proc`` is
    this process's folder in /proc.
    """
    own = _own(proc)
    if own is None:
        return None
    if own.name == LEAF:
        return own.parent if "memory" in _words(own.parent / "cgroup.subtree_control") else None
    leaf = own / LEAF
    try:
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text("0")  # whoever writes
        (own / "cgroup.subtree_control").write_text("+memory")
    except OSError:
        with contextlib.suppress(OSError):
            (own / "cgroup.procs").write_text("0")
            leaf.rmdir()
        return None
    return own


def _own(proc: Path) -> Path | None:
    """Return the folder of this process's group; None if it can't limit memory or is not shown."""
    with contextlib.suppress(OSError, StopIteration):
        mounts = (line.split() for line in (proc / "mounts").read_text().splitlines())
        top = next(mount[1] for mount in mounts if mount[2] == "cgroup2")
        lines = (proc / "cgroup").read_text().splitlines()
        below = next(line[len("0::/") :] for line in lines if line.startswith("0::/"))
        own = Path(top, below)
        # in a container the path may be one of the machine's, which is another group or none here
        here = str(os.getpid()) in _words(own / "cgroup.procs")
        if here and "memory" in _words(own / "cgroup.controllers") and os.access(own, os.W_OK):
            return own
    return None


def _words(path: Path) -> list[str]:
    return path.read_text().split()


class Group:
    """The group of one sandbox.

    ``above`` is the group that :func:`enter` returned; ``name`` is the new group's. Raises OSError
    from here and :meth:`add` and :meth:`limit`, if the system refuses.
    """

    def __init__(self, above: Path, name: str) -> None:
        self.folder = above / name
        self.folder.mkdir()

    def add(self, process: int = 0) -> None:
        """Move a process into the group, by default this one; its later children are in it, too."""
        (self.folder / "cgroup.procs").write_text(str(process))

    def limit(self, memory: int) -> None:
        """Allow so many bytes beyond what the group uses now, and no swap."""
        used = int((self.folder / "memory.current").read_text())
        for name, value in (("memory.oom.group", 1), ("memory.swap.max", 0)):
            if (self.folder / name).exists():  # not where Linux is older
                (self.folder / name).write_text(str(value))
        (self.folder / "memory.max").write_text(str(used + memory + ROOM))

    def exceeded(self) -> bool:
        """Return whether Linux ended a process because the group had reached its own limit."""
        with contextlib.suppress(OSError):
            events = (self.folder / "memory.events").read_text().splitlines()
            return any(int(n) > 0 for name, n in map(str.split, events) if name == "oom")
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):  # one has not quite; whoever delegated removes it
            self.folder.rmdir()
