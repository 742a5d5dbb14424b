"""The limits of a learner's notebook, and their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hood import UserError
from hood.grader.inside.confinement import FILES
from hood.metadata import KEY

MIB = 2**20

# For each setting: a test of its value, and a description of the expected value.
Expected = Mapping[str, tuple[Callable[[Any], bool], str]]
WHOLE = (lambda value: type(value) is int and value > 0), "a whole number above 0"
# name in a lab's metadata -> (field of Limits, size of one unit)
UNITS = {
    # MiB for all processes together: their memory and the files that they write. The memory of a
    # fresh kernel does not count. If a single process allocates more than the limit, it gets a
    # MemoryError
    "memory_mb": ("memory", MIB),
    "tmp_mb": ("tmp", MIB),  # MiB for files in each of /tmp, the home folder and /dev/shm
    "file_mb": ("file", MIB),  # MiB for one file
    "output_kb": ("output", 1024),  # KiB that a notebook may print or display
    "processes": ("processes", 1),  # the number of processes and threads at a time
    # seconds for the whole notebook. All of the learner's own cells together have a second limit of
    # the same size. When they have used it up, those that an exercise needs use the first limit
    "total_seconds": ("total_seconds", 1),
}
OF_LIMITS: Expected = dict.fromkeys(UNITS, WHOLE)
OF_TIME: Expected = {
    "cell_seconds": WHOLE,  # the time limit of one cell, in seconds
    # limits of the lab's sandbox that differ from the defaults
    "limits": (lambda value: isinstance(value, Mapping), "names and numbers"),
}


def setting_faults(found: Mapping[str, Any], expected: Expected) -> Iterator[str]:
    """Yield the errors in a lab's settings: unknown names, and wrong values."""
    for name, value in found.items():
        if name not in expected:
            yield f"no such setting {name!r}; expected one of: {', '.join(expected)}"
        elif not expected[name][0](value):
            yield f"{name}: expected {expected[name][1]}, got {value!r}"


@dataclass(frozen=True)
class Limits:
    """Limits for one kernel and all processes that it starts.

    ``cell_seconds``, ``total_seconds`` and ``grace`` are seconds of the sandbox's own time
    (``Meter.look`` in ``hood/grader/inside/usage.py``). If the code needs more than
    ``WAITS`` times such a limit in wall-clock time, the machine is too busy. Then there is no
    verdict, and the submission is tried again.
    """

    # Sizes are in bytes. UNITS describes the fields.
    memory: int = 2048 * MIB
    processes: int = 64
    file: int = 256 * MIB
    tmp: int = 256 * MIB
    output: int = 4 * MIB
    cell_seconds: int = 120
    # For the whole notebook, no matter whether its cells run, raise or wait. The learner's own
    # cells get as many seconds again (hood.grader.execution.own_time)
    total_seconds: int = 300
    grace: int = 5  # seconds between an interrupt and the kill

    def met(self, said: str) -> str:
        """Return the sandbox's limit that an exception's text is about; empty if there is none."""
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
        """Return a lab's limits from its metadata; the other limits have their defaults.

        Raises UserError if a limit in the metadata is wrong.
        """
        ours = metadata.get(KEY, {})
        own = {name: ours[name] for name in OF_TIME if name in ours}
        wanted = own.pop("limits", {})
        for said in setting_faults({**own, "limits": wanted}, OF_TIME):
            raise UserError(f"{KEY}: {said}")
        for said in setting_faults(wanted, OF_LIMITS):
            raise UserError(f"{KEY}.limits: {said}")
        return cls(**own, **{UNITS[name][0]: UNITS[name][1] * n for name, n in wanted.items()})
