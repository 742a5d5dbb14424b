"""What a learner's notebook may use; every limit's default stands here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from grader import UserError

MIB = 2**20
WAITS = 10

# name in a lab's metadata -> (field, what one unit is)
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
    """Limits for one kernel and everything that it starts.

    memory: bytes of the processes together, beyond what the warm kernel starts with, and of the
        files they made; a single process that asks for more gets a MemoryError
    processes: processes and threads
    file: bytes in one file
    tmp: bytes in each of /tmp, the home folder and /dev/shm
    output: bytes that a notebook may print or display (counted where the notebook is executed)
    cell_seconds: for one cell
    total_seconds: for the whole notebook, whatever its cells do: run, raise, or wait
    grace: seconds between an interrupt and the kill

    Seconds are the sandbox's own: those in which it waits for a processor that others have do not
    count, until they are WAITS times as many as the limit.
    """

    memory: int = 2048 * MIB
    processes: int = 256
    file: int = 256 * MIB
    tmp: int = 256 * MIB
    output: int = 4 * MIB
    cell_seconds: int = 120
    total_seconds: int = 300
    grace: int = 5

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or value <= 0:
                raise UserError(
                    f"limit {field.name}: expected a whole number above 0, got {value!r}"
                )

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Limits:
        """The limits that a lab's notebook asks for in its metadata.

        metadata: the notebook's metadata, of which `open_the_hood.cell_seconds` and
            `open_the_hood.limits` count; what is not named there keeps its default.
        Raises UserError for a limit that does not exist and for one that is no positive number.
        """
        ours = metadata.get("open_the_hood", {})
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
