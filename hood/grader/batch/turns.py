"""Give each submission of a run a turn, so that what takes long waits until the others are graded.

A learner's endless loop costs a worker minutes, and many of them would hold up a whole class. So
while other submissions wait, each has a turn: twice the time that three quarters of those before it
took, the lab's own source among them. What needs more begins anew after all others, with a turn
four times as long, and in the end with all the time that its lab gives. So nobody loses a point by
it, only the last turn is recorded, and all earlier ones together cost a third of it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hood.grader.batch.job import Job

LEAST = 2  # seconds; below that a turn costs more at its start than it saves
TIMES, LONGER = 2, 4
# Bytes of the submissions that wait for another turn. Above that they are graded before new ones.
MOST_BYTES = 256_000_000


@dataclass(order=True)
class Turn:
    """A job and how many seconds of its sandboxes' own time it had before; 0 for none."""

    had: int
    number: int  # in the order in which they came
    job: Job = field(compare=False)


class Turns:
    """The jobs of a run that are not graded yet: first the new ones, then the shortest turns."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._new: Iterator[Job] = iter(jobs)
        self._again: list[Turn] = []
        self._took: list[float] = []
        self._number = 0
        self._more = True  # whether new jobs may come
        self._bytes = 0

    def next(self) -> Turn | None:
        """Return what is to be graded next; None where nothing waits."""
        if self._bytes <= MOST_BYTES:
            if job := next(self._new, None):
                self._number += 1
                return Turn(0, self._number, job)
            self._more = False
        if not self._again:
            return None
        turn = heapq.heappop(self._again)
        self._bytes -= turn.job.submission.bytes
        return turn

    def seconds(self, turn: Turn) -> int:
        """Return how long a turn is while others wait."""
        usual = sorted(self._took)[len(self._took) * 3 // 4] if self._took else 0
        return max(LEAST, math.ceil(TIMES * usual), LONGER * turn.had)

    def put_off(self, turn: Turn, seconds: int) -> None:
        """Let a job wait for another turn, after one of so many seconds that was too short."""
        self._bytes += turn.job.submission.bytes
        heapq.heappush(self._again, Turn(seconds, turn.number, turn.job))

    def ended(self, took: float) -> None:
        """Note the seconds of a job that has ended."""
        self._took.append(took)

    @property
    def waiting(self) -> bool:
        """Whether a job waits here, as far as is known."""
        return self._more or bool(self._again)
