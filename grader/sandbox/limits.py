"""The limits of a learner's notebook, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader import UserError
from grader.metadata import KEY

MIB = 2**20

# name in a lab's metadata -> (field of Limits, size of one unit)
UNITS = {
    "memory_mb": ("memory", MIB),
    "tmp_mb": ("tmp", MIB),
    "file_mb": ("file", MIB),
    "output_kb": ("output", 1024),
    "processes": ("processes", 1),
    "total_seconds": ("total_seconds", 1),
}


@dataclass(frozen=True)
class Limits:
    """Limits for one kernel and all processes that it starts.

    ``cell_seconds``, ``total_seconds`` and ``grace`` are seconds of the sandbox's own time
    (:meth:`grader.inside.usage.Meter.look`). Where that takes more than
    :data:`grader.inside.usage.WAITS` times as long by the clock, the machine is too busy: there is
    no verdict then, and the submission is tried again.

    Attributes:
        memory: bytes of all processes together, beyond what a fresh kernel uses, and of the files
            that they write. A single process that allocates more gets a MemoryError.
        processes: number of processes and threads.
        file: bytes in one file.
        tmp: bytes in each of /tmp, the home folder and /dev/shm.
        output: bytes that a notebook may print or display; counted where it is executed.
        cell_seconds: time for one cell.
        total_seconds: time for the whole notebook, whether its cells run, raise or wait.
        grace: seconds between an interrupt and the kill.
    """

    memory: int = 2048 * MIB
    processes: int = 64
    file: int = 256 * MIB
    tmp: int = 256 * MIB
    output: int = 4 * MIB
    cell_seconds: int = 120
    total_seconds: int = 300
    grace: int = 5

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Limits:
        """Return the limits that a lab's notebook sets in its metadata, else their defaults.

        Raises:
            UserError: for an unknown limit and for one that is no whole number above 0.
        """
        ours = metadata.get(KEY, {})
        chosen: dict[str, Any] = {}
        if "cell_seconds" in ours:
            chosen["cell_seconds"] = _positive("open_the_hood.cell_seconds", ours["cell_seconds"])
        wanted = ours.get("limits", {})
        if not isinstance(wanted, Mapping):
            raise UserError(f"open_the_hood.limits: expected names and numbers, got {wanted!r}")
        for name, value in wanted.items():
            if name not in UNITS:
                raise UserError(
                    f"open_the_hood.limits: there is no limit {name!r}; there are: "
                    + ", ".join(UNITS)
                )
            field, unit = UNITS[name]
            chosen[field] = _positive(f"open_the_hood.limits.{name}", value) * unit
        return cls(**chosen)


def _positive(name: str, value: Any) -> int:
    if type(value) is not int or value <= 0:
        raise UserError(f"{name}: expected a whole number above 0, got {value!r}")
    return value
