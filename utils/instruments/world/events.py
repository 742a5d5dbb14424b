"""The events of a world: messages, collectives and computing, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """A tensor that went from one rank to another. Times are seconds of the simulated clock."""

    source: int
    to: int
    bytes: int  # the size of the tensor
    sent: float  # when the sender requested to send it
    awaited: float  # when the receiver requested to receive it
    start: float  # when the transfer began
    end: float  # when the transfer ended


@dataclass(frozen=True)
class Collective:
    """A collective: an operation of all ranks together."""

    kind: str  # ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast`` or ``barrier``
    bytes: int  # bytes of one rank's input; for a broadcast, bytes of the source's input
    # the shape of a rank's tensor, or of the first tensor in a rank's list; None for a barrier
    shape: tuple[int, ...] | None
    posted: tuple[float, ...]  # when each rank requested it
    end: float  # when the last rank requested it; a collective takes no additional time


@dataclass(frozen=True)
class Computed:
    """A computation of one rank: ``yield "compute", seconds``."""

    rank: int
    start: float
    end: float


@dataclass
class Outcome:
    """The state of a world when all ranks have ended, or when the world stopped earlier."""

    results: list[Any]  # each rank's result; None for ranks that did not finish
    # messages, collectives and computing, in the order in which they ended
    log: list[Message | Collective | Computed] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)  # each rank's clock, in simulated seconds
    # a rank that waits for ever -> the reason in words
    waiting: dict[int, str] = field(default_factory=dict)
    # a rank that waits for ever -> the ranks for which it waits
    awaits: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The simulated time at which the last rank ended."""
        return max(self.clocks, default=0.0)

    @property
    def messages(self) -> list[Message]:
        """The messages that ranks sent to each other."""
        return [event for event in self.log if isinstance(event, Message)]

    @property
    def collectives(self) -> list[Collective]:
        """The collectives of all ranks together."""
        return [event for event in self.log if isinstance(event, Collective)]

    def sent(self, rank: int) -> int:
        """Return the bytes of all messages that a rank sent to others, without collectives."""
        return sum(message.bytes for message in self.messages if message.source == rank)
