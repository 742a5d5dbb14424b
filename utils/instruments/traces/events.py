"""What a trace consists of. Times are whole nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """Something that ran for a while.

    Attributes:
        name: what ran, such as ``aten::mm``.
        start: when it began, in nanoseconds.
        duration: how long it took, in nanoseconds.
        lane: where it ran: a thread of the host, ``cpu`` or ``cpu 2``, or a stream of the device,
            ``gpu 7``.
        kind: on the host ``range`` (a label around other events), ``op`` (an operator) or ``call``
            (of CUDA); on the device ``kernel`` or ``copy``.
        correlation: the number that a call shares with what it has started on the device; None
            for all other events.
    """

    name: str
    start: int
    duration: int
    lane: str = "cpu"
    kind: str = "op"
    correlation: int | None = None

    @property
    def end(self) -> int:
        """When it ended, in nanoseconds."""
        return self.start + self.duration

    @property
    def on_device(self) -> bool:
        """Whether it ran on the device."""
        return self.lane.startswith("gpu")


@dataclass(frozen=True)
class Allocation:
    """Memory that an allocator handed out or took back.

    Attributes:
        address: of its first byte.
        bytes: how many; negative where they were given back.
        time: when, in nanoseconds.
    """

    address: int
    bytes: int
    time: int = 0
