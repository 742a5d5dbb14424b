"""Give each submission of a run a turn, so that slow submissions are graded after the others.

A learner's endless loop costs a worker minutes, and many such loops would delay a whole class. So
while other submissions wait, each submission has a turn of limited length: twice the third quartile
of the times so far, including the time of the lab's own source. If a submission needs more time, it
starts again after all others, with a turn four times as long. In the last turn, it gets all the
time that its lab allows. Nobody loses a point, because only the last turn is recorded. Each turn is
four times as long as the turn before it, so all earlier turns together are about a third as long as
the last turn.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hood.grader.batch.job import Job

LEAST = 2  # seconds; starting a shorter turn would cost more time than the turn saves
TIMES, LONGER = 2, 4
# Limit on the bytes of submissions that wait for another turn. Above this limit, these submissions
# are graded before new jobs.
MOST_BYTES = 256_000_000


@dataclass(order=True)
class Turn:
    """A job, and the length of its last turn in seconds of sandbox time; 0 without any turn."""

    had: int
    number: int  # in the order of arrival
    job: Job = field(compare=False)


class Turns:
    """The ungraded jobs of a run: first the new jobs, then the jobs with the shortest turns."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._new: Iterator[Job] = iter(jobs)
        self._again: list[Turn] = []
        self._took: list[float] = []
        self._number = 0
        self._more = True  # whether new jobs may come
        self._bytes = 0

    def next(self) -> Turn | None:
        """Return the next job to grade; None if no job waits."""
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
        """Return how long a turn is while other jobs wait."""
        usual = sorted(self._took)[len(self._took) * 3 // 4] if self._took else 0
        return max(LEAST, math.ceil(TIMES * usual), LONGER * turn.had)

    def put_off(self, turn: Turn, seconds: int) -> None:
        """Queue a job for another turn, after a turn of ``seconds`` was too short."""
        self._bytes += turn.job.submission.bytes
        heapq.heappush(self._again, Turn(seconds, turn.number, turn.job))

    def ended(self, took: float) -> None:
        """Record how many seconds an ended job took."""
        self._took.append(took)

    @property
    def waiting(self) -> bool:
        """Whether a job may be waiting."""
        return self._more or bool(self._again)
