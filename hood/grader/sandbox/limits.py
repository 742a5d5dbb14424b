"""The limits of a learner's notebook, and their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hood import UserError
from hood.grader.inside.confinement import FILES
from hood.metadata import KEY

MIB = 2**20

# What each setting may be: a test of its value, and words for that.
Expected = Mapping[str, tuple[Callable[[Any], bool], str]]
WHOLE = (lambda value: type(value) is int and value > 0), "a whole number above 0"
# name in a lab's metadata -> (field of Limits, size of one unit)
UNITS = {
    "memory_mb": ("memory", MIB),
    "tmp_mb": ("tmp", MIB),
    "file_mb": ("file", MIB),
    "output_kb": ("output", 1024),
    "processes": ("processes", 1),
    "total_seconds": ("total_seconds", 1),
}
OF_LIMITS: Expected = dict.fromkeys(UNITS, WHOLE)
OF_TIME: Expected = {
    "cell_seconds": WHOLE,
    "limits": (lambda value: isinstance(value, Mapping), "names and numbers"),
}


def setting_faults(found: Mapping[str, Any], expected: Expected) -> Iterator[str]:
    """Yield what is wrong with the settings of a lab: one that there is not, or its value."""
    for name, value in found.items():
        if name not in expected:
            yield f"there is no setting {name!r}; there are: {', '.join(expected)}"
        elif not expected[name][0](value):
            yield f"{name}: expected {expected[name][1]}, got {value!r}"


@dataclass(frozen=True)
class Limits:
    """Limits for one kernel and all processes that it starts.

    ``cell_seconds``, ``total_seconds`` and ``grace`` are seconds of the sandbox's own time
    (:meth:`hood.grader.inside.usage.Meter.look`). Where that takes more than
    :data:`hood.grader.inside.usage.WAITS` times as long by the clock, the machine is too busy:
    there is no verdict then, and the submission is tried again.
    """

    # Bytes of all processes together, beyond what a fresh kernel uses, and of the files that they
    # write. A single process that allocates more gets a MemoryError.
    memory: int = 2048 * MIB
    processes: int = 64  # and threads
    file: int = 256 * MIB  # bytes in one file
    tmp: int = 256 * MIB  # bytes in each of /tmp, the home folder and /dev/shm
    output: int = 4 * MIB  # bytes that a notebook may print or display
    cell_seconds: int = 120
    # For the whole notebook, whether its cells run, raise or wait; and as many again for those of
    # the learner's own that no exercise needs (hood.grader.execution.own_time)
    total_seconds: int = 300
    grace: int = 5  # seconds between an interrupt and the kill

    def met(self, said: str) -> str:
        """Return how much a sandbox has of what an exception says was lacking; empty if nothing."""
        signs = {
            f"{self.memory / MIB:g} MiB of memory": ("MemoryError", "allocate memory"),
            f"{self.file / MIB:g} MiB for one file": ("File too large",),
            f"{self.tmp / MIB:g} MiB for files": ("No space left on device",),
            f"{self.processes} processes and threads": (
                *("can't start new thread", "Resource temporarily unavailable"),
            ),
            f"{FILES} open files for each process": ("Too many open files",),
        }
        return next((has for has, words in signs.items() if any(w in said for w in words)), "")

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Limits:
        """Return the limits that a lab's metadata sets, else the defaults; UserError for a wrong
        one.
        """
        ours = metadata.get(KEY, {})
        own = {name: ours[name] for name in OF_TIME if name in ours}
        wanted = own.pop("limits", {})
        for said in setting_faults({**own, "limits": wanted}, OF_TIME):
            raise UserError(f"{KEY}: {said}")
        for said in setting_faults(wanted, OF_LIMITS):
            raise UserError(f"{KEY}.limits: {said}")
        return cls(**own, **{UNITS[name][0]: UNITS[name][1] * n for name, n in wanted.items()})
