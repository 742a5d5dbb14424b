"""Compute due dates and lateness according to the clocks in the class's time zone.

People count days by the clock: a lab that is due on Saturday at 18:00 is one day late until Sunday
at 18:00, even if 23 or 25 hours pass in between. All code that needs lateness asks a
:class:`Deadline`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Period:
    """A length of time: a number of calendar days, then hours and minutes of elapsed time."""

    days: int = 0
    elapsed: timedelta = timedelta()

    def __bool__(self) -> bool:
        return bool(self.days or self.elapsed)


def begin(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment, in UTC, at which something opens.

    If the clocks show the time twice, the first moment is returned. If the clocks skip the time,
    the result is what the clock before the change would give: if 02:00 becomes 03:00, then 02:30
    means 03:30.
    """
    return clock.replace(tzinfo=zone, fold=0).astimezone(UTC)


def end(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment, in UTC, at which something closes.

    If the clocks show the time twice, the second moment is returned. A time that the clocks skip is
    treated as in :func:`begin`.
    """
    return max(clock.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


@dataclass(frozen=True)
class Deadline:
    """The due date of one learner in one lab.

    Fractions of a second are ignored: a hand-in within the due second is in time.

    Attributes:
        clock: the due date, as the clocks of ``zone`` show it.
        grace: how long after the due date a hand-in is still in time.
        extended: whether the date is the learner's own, and later than the date for the class.
    """

    clock: datetime
    zone: ZoneInfo
    grace: Period = Period()
    extended: bool = False

    @property
    def due(self) -> datetime:
        """The due date without the grace, in the class's time zone."""
        return self.after(Period()).astimezone(self.zone)

    def after(self, period: Period) -> datetime:
        """Return when a period after the due date ends, in UTC; days are added before hours."""
        clock = self.clock + timedelta(days=period.days)
        return end(clock, self.zone) + period.elapsed

    def is_late(self, came: datetime) -> bool:
        """Return whether a hand-in came after the due date and its grace."""
        return _in_seconds(came) > self.after(self.grace)

    def seconds_late(self, came: datetime) -> float:
        """Return how many seconds after the due date a hand-in came; 0 within the grace."""
        if not self.is_late(came):
            return 0.0
        return (_in_seconds(came) - self.after(Period())).total_seconds()

    def days_late(self, came: datetime) -> int:
        """Return how many days of lateness had begun when a hand-in came; 0 within the grace.

        Each day ends at the clock time of the due date, even if the clocks were changed meanwhile.
        """
        if not self.is_late(came):
            return 0
        nights = (came.astimezone(self.zone).date() - self.clock.date()).days
        possible = itertools.count(max(0, nights - 1))
        return next(days for days in possible if _in_seconds(came) <= self.after(Period(days)))


def _in_seconds(moment: datetime) -> datetime:
    """Return a moment in UTC, in whole seconds.

    Moments are compared in UTC, because Python compares two times of the same zone only by what the
    clocks show.
    """
    return moment.astimezone(UTC).replace(microsecond=0)
