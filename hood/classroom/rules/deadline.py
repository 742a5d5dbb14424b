"""Until when something may be handed in, and how late it came, by the clocks of the class.

People count days by the clock: what is due on Saturday at 18:00 is one day late until Sunday at
18:00, also where that day has 23 or 25 hours. Whatever tells lateness asks a :class:`Deadline`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Period:
    """A length of time: days by the calendar, and then hours and minutes as they pass."""

    days: int = 0
    elapsed: timedelta = timedelta()

    def __bool__(self) -> bool:
        return bool(self.days or self.elapsed)


def begin(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment, in UTC, from which on something is open.

    Of a time that the clocks show twice it is the first. A time that they leave out is that of the
    old clock: where 02:00 becomes 03:00, 02:30 is 03:30.
    """
    return clock.replace(tzinfo=zone, fold=0).astimezone(UTC)


def end(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment, in UTC, until which something is open.

    Of a time that the clocks show twice it is the second; for one that they leave out see
    :func:`begin`.
    """
    return max(clock.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


@dataclass(frozen=True)
class Deadline:
    """Until when one learner may hand one lab in.

    A second is in time until it is over, so fractions of a second never decide.

    Attributes:
        clock: the due date, by the clocks of ``zone``.
        grace: lateness that does not count as such.
        extended: whether the date is the learner's own, later than the class's.
    """

    clock: datetime
    zone: ZoneInfo
    grace: Period = Period()
    extended: bool = False

    @property
    def due(self) -> datetime:
        """The due date, without the grace, in the class's zone."""
        return self.after(Period()).astimezone(self.zone)

    def after(self, period: Period) -> datetime:
        """Return the moment, in UTC, a period after the due date: its days first."""
        clock = self.clock + timedelta(days=period.days)
        return end(clock, self.zone) + period.elapsed

    def is_late(self, came: datetime) -> bool:
        """Return whether something came after the due date and its grace."""
        return _in_seconds(came) > self.after(self.grace)

    def seconds_late(self, came: datetime) -> float:
        """Return the seconds that passed since the due date; 0 within the grace."""
        if not self.is_late(came):
            return 0.0
        return (_in_seconds(came) - self.after(Period())).total_seconds()

    def days_late(self, came: datetime) -> int:
        """Return the days begun since the due date; 0 within the grace.

        Each ends at the due date's clock time, whatever the clocks did meanwhile.
        """
        if not self.is_late(came):
            return 0
        nights = (came.astimezone(self.zone).date() - self.clock.date()).days
        possible = itertools.count(max(0, nights - 1))
        return next(days for days in possible if _in_seconds(came) <= self.after(Period(days)))


def _in_seconds(moment: datetime) -> datetime:
    """Return a moment in UTC: two times of one zone would be compared by their clocks alone."""
    return moment.astimezone(UTC).replace(microsecond=0)
