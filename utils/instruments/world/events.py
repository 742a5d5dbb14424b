"""What has happened in a world: messages, collectives and computing, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """A tensor that went from one rank to another; times in seconds of the simulated clock."""

    source: int
    to: int
    bytes: int  # of the tensor
    sent: float  # when the sender asked for it
    awaited: float  # when the receiver asked for it
    start: float  # when it left
    end: float  # when it had come


@dataclass(frozen=True)
class Collective:
    """What all ranks did together."""

    kind: str  # ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast`` or ``barrier``
    bytes: int  # of what one rank put in; of a broadcast, what the source put in
    # of the tensor that one rank put in, of the first one of a list; None for a barrier
    shape: tuple[int, ...] | None
    posted: tuple[float, ...]  # when each rank asked for it
    end: float  # when the last one did. It takes no time of its own.


@dataclass(frozen=True)
class Computed:
    """What one rank said that it computes: ``yield "compute", seconds``."""

    rank: int
    start: float
    end: float


@dataclass
class Outcome:
    """How a world ended, or how far it came."""

    results: list[Any]  # what each rank returned; None of those that did not come to their end
    # messages, collectives and computing, in the order in which they ended
    log: list[Message | Collective | Computed] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)  # each rank's clock, in simulated seconds
    # for each rank that waits for ever, what it waits for, in words
    waiting: dict[int, str] = field(default_factory=dict)
    # for the same ranks, the ranks that they wait for
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
