"""The faults that can hit a grading run, and how often each is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults import deaths, shortages
from tests.faults.patched import POINTS
from tests.faults.scene import Scene, Struck


@dataclass(frozen=True)
class Kind:
    """A fault.

    Attributes:
        strike: causes the fault.
        rounds: the fault's share of the default rounds.
        real: whether the fault needs the class in sandboxed kernels.
        root: whether only root can cause the fault.
    """

    strike: Callable[[Scene], Struck]
    rounds: int
    real: bool = False
    root: bool = False


KINDS = {
    "killed": Kind(deaths.killed, 5),
    "killed-early": Kind(deaths.killed_early, 1),
    "killed-twice": Kind(deaths.killed_twice, 3),
    "all-killed": Kind(deaths.all_killed, 2),
    "worker": Kind(deaths.worker, 3),
    **{
        f"writer-{point}": Kind(lambda scene, point=point: deaths.writer_at(scene, point), 1)
        for point in POINTS
    },
    "writer": Kind(deaths.writer, 3),
    "disk-full": Kind(shortages.disk_full, 2, root=True),
    "file-limit": Kind(shortages.file_limit, 2),
    "tmp-full": Kind(shortages.tmp_full, 1, root=True),
    "locked-long": Kind(shortages.locked_long, 1),
    "locked-short": Kind(shortages.locked_short, 1),
    "locked-at-start": Kind(shortages.locked_at_start, 1),
    "ctrl-c": Kind(deaths.ctrl_c, 2),
    "ctrl-c-twice": Kind(deaths.ctrl_c_twice, 2),
    "scheduler": Kind(deaths.scheduler, 1),
    "dask-worker": Kind(deaths.dask_worker, 1),
    "zygote": Kind(deaths.zygote, 2, real=True),
    "kernel": Kind(deaths.kernel, 2, real=True),
    "in-sandboxes": Kind(deaths.in_sandboxes, 2, real=True),
    "entering": Kind(deaths.entering, 1, real=True),
}
