"""What ``course.yml`` may say. :mod:`hood.classroom.rules.reading` makes these of the file."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hood.classroom.rules.deadline import Deadline, Period, begin

MOST_DAYS = 366  # of a period
YEARS = range(1970, 9000)  # datetime ends with 9999, and days are added to a date
DURATION = re.compile(r"(\d+(?:\.\d+)?) *(min|h|hours?|days?)")
ADDRESS = re.compile(r"https?://[^\s()\[\]<>\"']+")
ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
END_OF_DAY = time(23, 59, 59)


class Withheld(StrEnum):
    """What counts of points that the grading machine could not ask for, as those of a GPU."""

    EXCLUDE = "exclude"  # they are no part of this learner's maximum
    COUNT = "count"  # they stay in the maximum, and are lost until they can be earned
    CREDIT = "credit"  # they are given


class HandInRule(StrEnum):
    """Which hand-in of a learner to a lab counts, of several."""

    BEST = "best"  # the one that counts most after lateness
    LAST = "last"
    LAST_IN_TIME = "last in time"  # and the last one where none came in time


class Shown(StrEnum):
    """When feedback shows something."""

    ALWAYS = "always"
    AFTER_DUE = "after due"
    NEVER = "never"


def _share(value: Any) -> float:
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError(f"expected a share such as 10% or 0.1, got {text!r}")
    return number


def _weight(value: Any) -> float:
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise ValueError(f"expected a weight such as 20% or 2, got {text!r}")
    return number


def _period(value: Any) -> Period:
    if isinstance(value, Period):
        return value
    found = DURATION.fullmatch(str(value).strip())
    if not found:
        raise ValueError(f"expected a time such as 30 min, 2 h or 1 day, got {value!r}")
    number, unit = float(found[1]), found[2]
    if number > MOST_DAYS * {"m": 1440, "h": 24, "d": 1}[unit[0]]:
        raise ValueError(f"expected at most {MOST_DAYS} days, got {value!r}")
    if not unit.startswith("day"):
        key = "minutes" if unit == "min" else "hours"
        return Period(elapsed=timedelta(**{key: number}))
    return Period(int(number), timedelta(days=number % 1))


def _moment(value: Any, end: bool) -> datetime:
    text = str(value).strip()
    try:
        if len(text) == len("2026-09-25"):
            day = date.fromisoformat(text)
            moment = datetime.combine(day, END_OF_DAY if end else time())
        else:
            moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo:
        raise ValueError(
            f"expected a day, 2026-09-25, or a time of the course's zone, 2026-09-25 18:00, "
            f"got {text!r}"
        )
    if moment.year not in YEARS:
        raise ValueError(
            f"expected a year from {YEARS[0]} to {YEARS[-1]}, got {text!r}; leave the line out "
            "where there is no date"
        )
    return moment


def _id(value: str) -> str:
    if value and not ID.fullmatch(value):
        raise ValueError(
            f"expected an id of letters, digits, '-', '_' and '.', such as pytorch-2026, "
            f"got {value!r}"
        )
    return value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"expected a time zone such as Europe/Madrid, got {value!r}") from None
    return value


def _address(value: str) -> str:
    if value and not ADDRESS.fullmatch(value):
        raise ValueError(
            f"expected the address of the course's site, such as https://example.org/course/, "
            f"got {value!r}"
        )
    return value


def _encoding(value: str) -> str:
    try:
        b"text".decode(value or "utf-8")  # of no bytes Python would look up nothing
    except (LookupError, UnicodeError):
        raise ValueError(f"expected an encoding such as windows-1250, got {value!r}") from None
    return value


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Share = Annotated[float, BeforeValidator(_share)]
Weight = Annotated[float, BeforeValidator(_weight)]
Duration = Annotated[Period, BeforeValidator(_period)]
Beginning = Annotated[datetime, BeforeValidator(lambda value: _moment(value, end=False))]
End = Annotated[datetime, BeforeValidator(lambda value: _moment(value, end=True))]
Points = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_several)]  # a name alone is a list of one
Id = Annotated[str, AfterValidator(_id)]
Zone = Annotated[str, AfterValidator(_zone)]
Address = Annotated[str, AfterValidator(_address)]
Encoding = Annotated[str, AfterValidator(_encoding)]


class Part(BaseModel):
    """What every part of the file has in common: a key that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class About(Part):
    """The course: ``course:``.

    Attributes:
        id: nbgrader's ``course_id``, by which learners fetch and submit.
        lesson_url: where links to lessons lead, in place of the project's setting of that name.
    """

    id: Id = ""
    title: str = ""
    time_zone: Zone = "UTC"
    lesson_url: Address = ""


class Group(Part):
    """A section of the class, under its name in ``sections:``."""

    graders: tuple[Name, ...] = ()


class Roster(Part):
    """Where the class is listed: a CSV file, and which of its columns is what.

    Attributes:
        encoding: of the file, where it is found out wrongly: UTF-8 and UTF-16 can be told, and
            what is neither is taken for Windows-1252.
    """

    file: Name
    id: Name
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    section: str = ""
    moodle: str = ""
    canvas: str = ""
    encoding: Encoding = ""


class LatePolicy(Part):
    """What a day's lateness costs, of what was earned.

    Attributes:
        per_day: the share that each day begun takes.
        floor: the share that always stays, until ``last_day``.
        last_day: the day after which nothing counts; None for no such day.
    """

    per_day: Share = 0.0
    floor: Share = 0.0
    last_day: Annotated[int, Field(ge=0)] | None = None

    def is_over(self, days: int) -> bool:
        """Return whether nothing counts any more, so many days late."""
        return self.last_day is not None and days > self.last_day


class TermPolicy(LatePolicy):
    """The policy of labs that have none of their own: ``late:`` at the top.

    Attributes:
        free_days: days of lateness in the whole term that cost a learner nothing; they are spent
            where they save most points.
    """

    free_days: Annotated[int, Field(ge=0)] = 0


class TotalPolicy(Part):
    """What the labs make together: ``total:``.

    Attributes:
        weights: of the labs, as any numbers or percentages; by default what each lab counts.
        drop_lowest: how many labs are dropped for each learner: those without which the total is
            highest.
        out_of: what somebody has who reached all points.
        decimals: of the total as it is shown.
    """

    weights: dict[Name, Weight] = Field(default_factory=dict)
    drop_lowest: Annotated[int, Field(ge=0)] = 0
    out_of: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 100.0
    decimals: Annotated[int, Field(ge=0, le=2)] = 1


class Feedback(Part):
    """What learners see: the names of mistakes, calls that fail, and rubrics of what is marked.

    Attributes:
        attempts: how many verdicts on an exercise the service gives a learner in a day.
    """

    misconceptions: Shown = Shown.ALWAYS
    examples: Shown = Shown.ALWAYS
    rubrics: Shown = Shown.NEVER
    attempts: Annotated[int, Field(ge=0)] | None = None


class LabRules(Part):
    """One lab. Exercises are named by the names of their checks.

    In `drop` and `bonus` the word ``further`` names all exercises that the lab's text calls so;
    once the file is read, their own names stand in its place.

    Attributes:
        due: until when; by the clock of the course's zone. A day alone means its last second.
        grace: lateness that does not count as such: hours and minutes as they pass, days by the
            calendar.
        drop: exercises that do not count; they stay in the lab.
        points: what an exercise counts, in place of its points.
        bonus: exercises that add points and are no part of the maximum.
        hand_ins: which of several hand-ins counts, in place of what the top of the file says.
    """

    release: Beginning | None = None
    due: End | None = None
    grace: Duration = Period()
    late: LatePolicy | None = None
    drop: Names = ()
    points: dict[Name, Points] = Field(default_factory=dict)
    bonus: Names = ()
    withheld: Withheld = Withheld.EXCLUDE
    feedback: Feedback = Feedback()
    hand_ins: HandInRule | None = None


class Extension(Part):
    """Somebody's own due date in a lab."""

    who: Name
    lab: Name
    due: End
    why: str = ""


class Platform(Part):
    """What a learning platform calls the labs: the heading of each one's column.

    Attributes:
        identify: for Moodle, the roster's column by which it knows its users; by default the one
            that `roster` names as ``moodle``, or as ``id``.
        total: the heading of the total's column. Canvas gets none without it: it would make an
            assignment of it, and count it beside the labs.
    """

    identify: str = ""
    items: dict[Name, Name] = Field(default_factory=dict)
    total: str = ""


class Export(Part):
    """``export:``, by platform."""

    moodle: Platform = Platform()
    canvas: Platform = Platform()


class ClassRules(Part):
    """The whole file. Labs stand in its order, under the names of their folders.

    Attributes:
        left: ids of learners who left the class. They are passed over, and nothing is deleted.
    """

    course: About = About()
    sections: dict[Name, Group] = Field(default_factory=dict)
    roster: Roster | None = None
    left: Names = ()
    late: TermPolicy = TermPolicy()
    hand_ins: HandInRule = HandInRule.BEST
    labs: dict[Name, LabRules] = Field(default_factory=dict)
    extensions: tuple[Extension, ...] = ()
    total: TotalPolicy | None = None
    export: Export = Export()

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which the file's times are meant."""
        return ZoneInfo(self.course.time_zone)

    def policy(self, lab: str) -> LatePolicy:
        """Return what lateness costs in a lab."""
        return self.labs[lab].late or self.late

    def hand_in_rule(self, lab: str) -> HandInRule:
        """Return which of several hand-ins to a lab counts."""
        return self.labs[lab].hand_ins or self.hand_ins

    def deadline(self, lab: str, student: str) -> Deadline | None:
        """Return until when a learner may hand a lab in; None: for ever.

        Of several extensions the latest holds. A lab that the file does not name has no date.
        """
        if lab not in self.labs:
            return None
        own = [e.due for e in self.extensions if (e.who, e.lab) == (student, lab)]
        clock, grace = max(own) if own else self.labs[lab].due, self.labs[lab].grace
        return Deadline(clock, self.zone, grace, extended=bool(own)) if clock else None

    def is_too_early(self, lab: str, now: datetime) -> bool:
        """Return whether a lab is not to be released yet; ``now`` has a time zone."""
        release = self.labs[lab].release
        return release is not None and now.astimezone(UTC) < begin(release, self.zone)

    def shows(self, what: str, lab: str, student: str, now: datetime) -> bool:
        """Return whether feedback shows a learner this now: a field of :class:`Feedback`.

        Args:
            now: with a time zone. After the due date is after the learner's own, and its grace.
        """
        when: Shown = getattr(self.labs[lab].feedback, what)
        deadline = self.deadline(lab, student)
        if when is Shown.AFTER_DUE:
            return deadline is not None and deadline.is_late(now)
        return when is Shown.ALWAYS
