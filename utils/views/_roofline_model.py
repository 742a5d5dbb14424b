"""The roofline model: what bounds a kernel, from its FLOPs and its bytes. No drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Roof:
    """A machine: `flops` in FLOP/s, `bandwidth` in B/s."""

    flops: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in FLOP/B, from which compute is the bound, and not memory."""
        return self.flops / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the most FLOP/s that a kernel of this intensity (FLOP/B) can reach."""
        return min(self.flops, intensity * self.bandwidth)


@dataclass(frozen=True)
class Work:
    """One kernel or op: FLOPs, bytes moved, and the measured seconds, None when not timed."""

    name: str
    flops: float
    bytes: float
    seconds: float | None = None

    @property
    def intensity(self) -> float:
        """FLOPs for each byte moved."""
        return self.flops / self.bytes

    @property
    def attained(self) -> float | None:
        """Measured FLOP/s."""
        return None if self.seconds is None else self.flops / self.seconds


def works(points: Mapping[str, Sequence[float]]) -> list[Work]:
    """`points` as Work; ValueError when one isn't (flops, bytes[, seconds]) with all above 0."""
    if not points:
        raise ValueError("roofline needs at least one point, got none: pass {name: (flops, bytes)}")
    found = []
    for name, point in points.items():
        numbers = tuple(float(number) for number in point)
        if len(numbers) not in (2, 3) or any(not number > 0 for number in numbers):
            raise ValueError(
                f"roofline point {name!r}: expected (flops, bytes) or (flops, bytes, seconds), "
                f"all above 0, got {tuple(point)}"
            )
        found.append(Work(str(name), *numbers))
    return found
