"""What has happened in a world: messages, collectives and computing, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """A tensor that went from one rank to another; times in seconds of the simulated clock.

    Attributes:
        bytes: of the tensor.
        sent: when the sender asked for it.
        awaited: when the receiver asked for it.
        start, end: when it left, and when it had come.
    """

    source: int
    to: int
    bytes: int
    sent: float
    awaited: float
    start: float
    end: float


@dataclass(frozen=True)
class Collective:
    """What all ranks did together.

    Attributes:
        kind: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast`` or ``barrier``.
        bytes: of what one rank put in; of a broadcast, what the source put in.
        shape: of the tensor that one rank put in, of the first one of a list; None for a barrier.
        posted: when each rank asked for it.
        end: when the last one did. It takes no time of its own.
    """

    kind: str
    bytes: int
    shape: tuple[int, ...] | None
    posted: tuple[float, ...]
    end: float


@dataclass(frozen=True)
class Computed:
    """What one rank said that it computes: ``yield "compute", seconds``."""

    rank: int
    start: float
    end: float


@dataclass
class Outcome:
    """How a world ended, or how far it came.

    Attributes:
        results: what each rank returned; None of those that did not come to their end.
        log: messages, collectives and computing, in the order in which they ended.
        clocks: each rank's clock, in simulated seconds.
        waiting: for each rank that waits for ever, what it waits for, in words.
        awaits: for the same ranks, the ranks that they wait for.
    """

    results: list[Any]
    log: list[Message | Collective | Computed] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)
    waiting: dict[int, str] = field(default_factory=dict)
    awaits: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """When the last rank came to its end, by the simulated clock."""
        return max(self.clocks, default=0.0)

    @property
    def messages(self) -> list[Message]:
        """What went from one rank to another."""
        return [event for event in self.log if isinstance(event, Message)]

    @property
    def collectives(self) -> list[Collective]:
        """What all ranks did together."""
        return [event for event in self.log if isinstance(event, Collective)]

    def sent(self, rank: int) -> int:
        """Return the bytes of all messages that a rank sent to others; collectives not counted."""
        return sum(message.bytes for message in self.messages if message.source == rank)
