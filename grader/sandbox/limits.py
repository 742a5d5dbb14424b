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
    """

    # Bytes of all processes together, beyond what a fresh kernel uses, and of the files that they
    # write. A single process that allocates more gets a MemoryError.
    memory: int = 2048 * MIB
    processes: int = 64  # and threads
    file: int = 256 * MIB  # bytes in one file
    tmp: int = 256 * MIB  # bytes in each of /tmp, the home folder and /dev/shm
    output: int = 4 * MIB  # bytes that a notebook may print or display
    cell_seconds: int = 120
    total_seconds: int = 300  # for the whole notebook, whether its cells run, raise or wait
    grace: int = 5  # seconds between an interrupt and the kill

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Limits:
        """Return the limits that a lab's metadata sets, else the defaults; UserError for a wrong
        one.
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
