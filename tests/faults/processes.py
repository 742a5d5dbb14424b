"""Finds the processes of a grading run: its descendants, and those that it left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.patience import PATIENCE

WORKER = b"hood.grader.batch.worker"
ZYGOTE = b"from hood.grader.inside.zygote import main"


def below(pid: int) -> list[int]:
    """Every process below this one, nearest first."""
    found, todo = [], [pid]
    while todo:
        children = _children(todo.pop(0))
        found += children
        todo += children
    return found


def workers(pid: int) -> list[int]:
    """The run's worker processes."""
    return [one for one in below(pid) if WORKER in _command(one)]


def zygotes(pid: int) -> list[int]:
    """The warm processes of its workers."""
    return [one for worker in workers(pid) for one in _children(worker) if ZYGOTE in _command(one)]


def kernels(pid: int) -> list[int]:
    """The kernels in sandboxes: forks of a zygote that are in a separate PID namespace."""
    forks = [one for zygote in zygotes(pid) for one in _children(zygote)]
    return [one for one in forks if ZYGOTE in _command(one) and _is_in_sandbox(one)]


def of(folder: Path) -> list[int]:
    """Processes whose command line or environment names the folder, without zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if os.fsencode(folder) in _command(int(entry.name)) + (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def after_a_while(left: Callable[[], list]) -> list:
    """The processes that stay.

    A warm process that gets the signal at its start cleans up after it has started.
    """
    end = time.monotonic() + PATIENCE
    while (found := left()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def named(pids: list[int]) -> str:
    """The processes' command lines, for a message."""
    return "; ".join(f"{pid} {_command(pid)[:150].replace(bytes(1), b' ')!r}" for pid in pids)


def kill(pid: int) -> None:
    """Send SIGKILL if the process still exists."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _is_in_sandbox(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return any(line.startswith("NSpid") and len(line.split()) > 2 for line in status.splitlines())
