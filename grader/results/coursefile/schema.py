"""What ``course.yml`` may say. :mod:`grader.results.coursefile.reading` makes these of the file."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

UNITS = {"min": 60, "h": 3600, "hour": 3600, "hours": 3600, "day": 86400, "days": 86400}
DURATION = re.compile(r"(\d+(?:\.\d+)?) *(min|h|hours?|days?)")
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


def _duration(value: Any) -> timedelta:
    found = DURATION.fullmatch(str(value).strip())
    if not found:
        raise ValueError(f"expected a time such as 30 min, 2 h or 1 day, got {value!r}")
    return timedelta(seconds=float(found[1]) * UNITS[found[2]])


def _moment(value: Any, end: bool) -> datetime:
    text = str(value).strip()
    try:
        if len(text) == len("2026-09-25"):
            return datetime.combine(date.fromisoformat(text), END_OF_DAY if end else time())
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo:
        raise ValueError(
            f"expected a day, 2026-09-25, or a time of the course's zone, 2026-09-25 18:00, "
            f"got {text!r}"
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
    from grader.lesson_links import URL  # here, because it imports nbgrader

    if value and not URL.fullmatch(value):
        raise ValueError(
            f"expected the address of the course's site, such as https://example.org/course/, "
            f"got {value!r}"
        )
    return value


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Share = Annotated[float, BeforeValidator(_share)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
Beginning = Annotated[datetime, BeforeValidator(lambda value: _moment(value, end=False))]
End = Annotated[datetime, BeforeValidator(lambda value: _moment(value, end=True))]
Points = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_several)]  # a name alone is a list of one
Id = Annotated[str, AfterValidator(_id)]
Zone = Annotated[str, AfterValidator(_zone)]
Address = Annotated[str, AfterValidator(_address)]


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
    """Where the class is listed: a CSV file, and which of its columns is what."""

    file: Name
    id: Name
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    section: str = ""
    moodle: str = ""
    canvas: str = ""


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


class TermPolicy(LatePolicy):
    """The policy of labs that have none of their own: ``late:`` at the top.

    Attributes:
        free_days: days of lateness in the whole term that cost a learner nothing.
    """

    free_days: Annotated[int, Field(ge=0)] = 0


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
        grace: lateness that does not count as such.
        drop: exercises that do not count; they stay in the lab.
        points: what an exercise counts, in place of its points.
        bonus: exercises that add points and are no part of the maximum.
        hand_ins: which of several hand-ins counts, in place of what the top of the file says.
    """

    release: Beginning | None = None
    due: End | None = None
    grace: Duration = timedelta()
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
        identify: for Moodle, the heading of the column by which it knows its users.
    """

    identify: Name = "Username"
    items: dict[Name, Name] = Field(default_factory=dict)


class Export(Part):
    """``export:``, by platform."""

    moodle: Platform = Platform()
    canvas: Platform = Platform()


class CourseFile(Part):
    """The whole file. Labs stand in its order, under the names of their folders."""

    course: About = About()
    sections: dict[Name, Group] = Field(default_factory=dict)
    roster: Roster | None = None
    late: TermPolicy = TermPolicy()
    hand_ins: HandInRule = HandInRule.BEST
    labs: dict[Name, LabRules] = Field(default_factory=dict)
    extensions: tuple[Extension, ...] = ()
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

    def due(self, lab: str, student: str) -> datetime | None:
        """Return until when a learner may hand a lab in, in the course's zone; None: for ever.

        Of several extensions the latest holds.
        """
        own = [e.due for e in self.extensions if (e.who, e.lab) == (student, lab)]
        due = max(own) if own else self.labs[lab].due
        return due and due.replace(tzinfo=self.zone)

    def is_too_early(self, lab: str, now: datetime) -> bool:
        """Return whether a lab is not to be released yet; ``now`` has a time zone."""
        release = self.labs[lab].release
        return release is not None and now < release.replace(tzinfo=self.zone)

    def shows(self, what: str, lab: str, student: str, now: datetime) -> bool:
        """Return whether feedback shows a learner this now: a field of :class:`Feedback`.

        Args:
            now: with a time zone. After the due date is after the learner's own.
        """
        when: Shown = getattr(self.labs[lab].feedback, what)
        due = self.due(lab, student)
        return when is Shown.ALWAYS or when is Shown.AFTER_DUE and due is not None and now > due
