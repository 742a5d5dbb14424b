"""Give each sandbox its own cgroup (version 2), if the system lets the grader make one.

A group that contains processes can't divide memory among the groups below. So the grading process
moves itself into a group below its own group, and starts its workers and zygotes from there. If
another process stays in the group above, no groups can be made.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LEAF = "open-the-hood"  # the group of the grading process, its workers and its zygotes
# Extra bytes for a group, because Linux also counts memory that the meter does not count, such as
# caches. If memory grows slowly, the meter's limit is reached first.
ROOM = 64 << 20


def enter(proc: Path = Path("/proc/self")) -> Path | None:
    """Move this process into its own group; return the group above, for the sandboxes' groups.

    The grading process calls this before it starts workers and a zygote. In the workers and the
    zygote, this function returns the same group. If groups can't be made here, the function changes
    nothing and returns None. ``proc`` is this process's folder in /proc.
    """
    own = _own(proc)
    if own is None:
        return None
    if own.name == LEAF:
        return own.parent if "memory" in _words(own.parent / "cgroup.subtree_control") else None
    leaf = own / LEAF
    try:
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text("0")  # 0 is the writing process
        (own / "cgroup.subtree_control").write_text("+memory")
    except OSError:
        with contextlib.suppress(OSError):
            (own / "cgroup.procs").write_text("0")
            leaf.rmdir()
        return None
    return own


def _own(proc: Path) -> Path | None:
    """Return the folder of this process's group; None if it is hidden or can't limit memory."""
    with contextlib.suppress(OSError, StopIteration):
        mounts = (line.split() for line in (proc / "mounts").read_text().splitlines())
        top = next(mount[1] for mount in mounts if mount[2] == "cgroup2")
        lines = (proc / "cgroup").read_text().splitlines()
        below = next(line[len("0::/") :] for line in lines if line.startswith("0::/"))
        own = Path(top, below)
        # In a container, the path may be the path on the host. In the container, that path belongs
        # to another group or does not exist.
        here = str(os.getpid()) in _words(own / "cgroup.procs")
        if here and "memory" in _words(own / "cgroup.controllers") and os.access(own, os.W_OK):
            return own
    return None


def _words(path: Path) -> list[str]:
    return path.read_text().split()


class Group:
    """The group of one sandbox.

    ``above`` is the group that :func:`enter` returned; ``name`` is the new group's name. The
    constructor, :meth:`add` and :meth:`limit` raise OSError if the system refuses.
    """

    def __init__(self, above: Path, name: str) -> None:
        self.folder = above / name
        self.folder.mkdir()

    def add(self, process: int = 0) -> None:
        """Move a process (by default this process) into the group, with its later children."""
        (self.folder / "cgroup.procs").write_text(str(process))

    def limit(self, memory: int) -> None:
        """Limit the group's memory to its present use plus this many bytes, and forbid swap."""
        used = int((self.folder / "memory.current").read_text())
        for name, value in (("memory.oom.group", 1), ("memory.swap.max", 0)):
            if (self.folder / name).exists():  # older versions of Linux lack some names
                (self.folder / name).write_text(str(value))
        (self.folder / "memory.max").write_text(str(used + memory + ROOM))

    def exceeded(self) -> bool:
        """Return whether Linux ended a process because the group had reached its own limit."""
        with contextlib.suppress(OSError):
            events = (self.folder / "memory.events").read_text().splitlines()
            return any(int(n) > 0 for name, n in map(str.split, events) if name == "oom")
        return False

    def close(self) -> None:
        # a process may still be ending; the group above is removed later
        with contextlib.suppress(OSError):
            self.folder.rmdir()
