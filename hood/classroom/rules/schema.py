"""Define what ``course.yml`` may contain.

:mod:`hood.classroom.rules.reading` makes objects of these classes from the file. The reference page
is made from these classes too: ``Attributes`` describes each key, a type's ``description``
describes its values, and each ``Example`` is a whole file.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hood.addresses import URL
from hood.classroom.rules.deadline import Deadline, Period, begin

MOST_DAYS = 366  # days in a time such as `grace`
YEARS = range(1970, 9000)  # datetime ends with the year 9999, and days are added to a date
DURATION = re.compile(r"(\d+(?:\.\d+)?) *(min|h|hours?|days?)")
ADDRESS = re.compile(r"https?://[^\s()\[\]<>\"']+")
ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
END_OF_DAY = time(23, 59, 59)


class Withheld(StrEnum):
    """What happens to points that the grading machine can't judge, for example without a GPU."""

    EXCLUDE = "exclude"  # these points are left out of this learner's maximum
    # these points stay in the maximum, and the learner has 0 of them until a machine can judge them
    COUNT = "count"
    CREDIT = "credit"  # the learner gets these points


class HandInRule(StrEnum):
    """Which hand-in counts if a learner has several hand-ins for a lab."""

    BEST = "best"  # the hand-in with the most points after the late penalty
    LAST = "last"  # the newest hand-in
    # the newest hand-in that is in time, or the newest of all hand-ins if all are late
    LAST_IN_TIME = "last in time"


class Shown(StrEnum):
    """When feedback shows a kind of information."""

    ALWAYS = "always"
    AFTER_DUE = "after due"  # after the learner's own due date and grace
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
            "expected a day such as 2026-09-25, or a time in the course's zone such as "
            "2026-09-25 18:00, "
            f"got {text!r}"
        )
    if moment.year not in YEARS:
        raise ValueError(
            f"expected a year from {YEARS[0]} to {YEARS[-1]}, got {text!r}; leave the line out if "
            "there is no date"
        )
    return moment


def _id(value: str) -> str:
    if value and not ID.fullmatch(value):
        raise ValueError(
            "expected an id of letters, digits, '-', '_' and '.', such as pytorch-2026, "
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
    if value and not URL.fullmatch(value):
        raise ValueError(
            "expected the address of the course's site, such as https://example.org/course/, "
            f"got {value!r}"
        )
    return value


def _encoding(value: str) -> str:
    try:
        b"text".decode(value or "utf-8")  # Python looks up no encoding for empty bytes
    except (LookupError, UnicodeError):
        raise ValueError(f"expected an encoding such as windows-1250, got {value!r}") from None
    return value


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


MOMENT = Field(description="day or time, such as `2026-09-25` or `2026-09-25 18:00`")
Share = Annotated[
    float, BeforeValidator(_share), Field(description="share, such as `10%` or `0.1`")
]
Weight = Annotated[
    float, BeforeValidator(_weight), Field(description="weight, such as `20%` or `2`")
]
Duration = Annotated[
    Period, BeforeValidator(_period), Field(description="time, such as `30 min`, `2 h` or `1 day`")
]
Beginning = Annotated[datetime, BeforeValidator(lambda value: _moment(value, end=False)), MOMENT]
End = Annotated[datetime, BeforeValidator(lambda value: _moment(value, end=True)), MOMENT]
Points = Annotated[float, Field(ge=0, allow_inf_nan=False, description="number, 0 or more")]
Count = Annotated[int, Field(ge=0, description="whole number, 0 or more")]
Name = Annotated[str, Field(min_length=1, description="name")]
Names = Annotated[
    tuple[Name, ...], BeforeValidator(_several), Field(description="name, or list of names")
]
Id = Annotated[str, AfterValidator(_id), Field(description="letters, digits, `-`, `_` and `.`")]
Zone = Annotated[
    str, AfterValidator(_zone), Field(description="time zone, such as `Europe/Madrid`")
]
Address = Annotated[
    str,
    AfterValidator(_address),
    Field(description="address, such as `https://example.org/course/`"),
]
Encoding = Annotated[
    str, AfterValidator(_encoding), Field(description="encoding, such as `windows-1250`")
]


class Part(BaseModel):
    """The base class of every part of the file. An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class About(Part):
    """The class's names, time zone and site: ``course:``.

    Attributes:
        id: the ``course_id`` of nbgrader, with which learners fetch and submit labs. The default is
            the ``id`` in ``course.toml``.
        title: the name of the class.
        time_zone: the time zone of all times in this file.
        lesson_url: the address to which links to lessons lead. It replaces ``lesson_url`` in
            ``course.toml``.

    Example::

        course:
          id: pytorch-2026
          title: Inside PyTorch, autumn 2026
          time_zone: Europe/Madrid
          lesson_url: https://example.org/course/
    """

    id: Id = ""
    title: str = ""
    time_zone: Zone = "UTC"
    lesson_url: Address = ""


class Group(Part):
    """A section of the class, under its name in ``sections:``.

    Attributes:
        graders: the people who mark the section's written answers.

    Example::

        sections:
          A: {graders: [marta]}
          B: {graders: [ben]}
    """

    graders: tuple[Name, ...] = ()


class Roster(Part):
    """The list of the class: the name of a CSV file, and the headings of its columns.

    Attributes:
        file: the CSV file, in the course's folder.
        id: the heading of the column with each learner's id.
        first_name: the heading of the column with first names.
        last_name: the heading of the column with last names.
        email: the heading of the column with email addresses.
        section: the heading of the column with the names of sections.
        moodle: the heading of the column with the values by which Moodle identifies learners.
        canvas: the heading of the column with the numbers by which Canvas identifies learners.
        encoding: the file's encoding. Without this key, the program recognises UTF-8 and UTF-16,
            and reads every other file as Windows-1252.

    Example::

        roster:
          file: class.csv
          id: Username
          first_name: First name
          last_name: Last name
          email: Email address
          section: Group
          moodle: ID number
          canvas: Canvas ID
          encoding: windows-1250
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
    """What lateness costs, as a share of the earned points.

    Attributes:
        per_day: the share that each day of lateness costs, as soon as the day has begun.
        floor: the share of the earned points that always counts, up to ``last_day``.
        last_day: the number of late days after which work counts nothing. Without this key, late
            work always counts.

    Example::

        labs:
          05:
            due: 2026-11-20
            late: {per_day: 20%, floor: 0, last_day: 2}
    """

    per_day: Share = 0.0
    floor: Share = 0.0
    last_day: Count | None = None

    def is_over(self, days: int) -> bool:
        """Return whether work no longer counts if it is this many days late."""
        return self.last_day is not None and days > self.last_day


class TermPolicy(LatePolicy):
    """What lateness costs in labs that have no ``late:``.

    Attributes:
        free_days: how many days of lateness in the whole term cost a learner nothing. These days
            are used for the labs in which they save most points.

    Example::

        late: {per_day: 10%, floor: 50%, last_day: 7, free_days: 3}
    """

    free_days: Count = 0


class TotalPolicy(Part):
    """The total of all labs: ``total:``.

    Attributes:
        weights: each lab's weight. Without this key, a lab's weight is its maximum in this
            class.
        drop_lowest: how many labs are left out for each learner. These are the labs without which
            the learner's total is highest.
        out_of: the total of a learner who has all points of all labs.
        decimals: the number of decimals to which the total is rounded.

    Example::

        total:
          weights: {01: 40%, 05: 60%}
          drop_lowest: 0
          out_of: 100
          decimals: 1
    """

    weights: dict[Name, Weight] = Field(default_factory=dict)
    drop_lowest: Count = 0
    out_of: Annotated[float, Field(gt=0, allow_inf_nan=False, description="number above 0")] = 100.0
    decimals: Annotated[int, Field(ge=0, le=2, description="`0`, `1` or `2`")] = 1


class Feedback(Part):
    """What feedback shows about mistakes: the mistakes' names, failing calls, and rubrics.

    Attributes:
        misconceptions: when feedback shows the names of mistakes.
        examples: when feedback shows calls that failed.
        rubrics: when feedback shows the rubric of a written answer that a person marked.
        attempts: how many verdicts on one exercise a learner can get from the service in a day.
            Without this key, there is no limit.

    Example::

        labs:
          01_tensors:
            feedback: {misconceptions: after due, examples: always, rubrics: never, attempts: 20}
    """

    misconceptions: Shown = Shown.ALWAYS
    examples: Shown = Shown.ALWAYS
    rubrics: Shown = Shown.NEVER
    attempts: Count | None = None


class LabRules(Part):
    """One lab. The name of an exercise is the name in its ``check(...)``.

    In `drop` and `bonus`, the word ``further`` means all further exercises of the lab.

    Attributes:
        release: the time from which learners can get the lab. A date without a time means the first
            second of that day.
        due: the due date. A date without a time means the last second of that day.
        grace: the time after the due date in which a hand-in still counts as in time. Days are days
            of the calendar; hours and minutes are elapsed time.
        late: what lateness costs in this lab, in place of ``late:`` at the top of the file. ``{}``
            means that lateness costs nothing.
        drop: exercises that do not count, although they stay in the lab.
        points: the points of exercises in this class, in place of their points in the lab.
        bonus: exercises that add points, but do not change the maximum.
        withheld: what happens to points that the grading machine could not judge, for example
            because the check needs a GPU.
        feedback: what feedback shows about mistakes, and when.
        hand_ins: which hand-in counts if a learner has several hand-ins for this lab, in place of
            ``hand_ins:`` at the top of the file.

    Example::

        labs:
          01_tensors:
            release: 2026-09-14
            due: 2026-09-25
            grace: 30 min
            late: {}
            drop: [attention_scores]
            points: {model_costs: 3}
            bonus: [result_dtype]
          05:
            due: 2026-11-20 18:00
            bonus: further
            withheld: credit
            feedback: {misconceptions: after due}
            hand_ins: last
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
    """A later due date for one learner in one lab. Of several extensions, the latest counts.

    Attributes:
        who: the learner's id.
        lab: the lab's folder or number.
        due: the learner's due date, in place of the lab's due date.
        why: the reason, for teachers.

    Example::

        extensions:
          - {who: ana, lab: 01_tensors, due: 2026-09-28, why: ill}
    """

    who: Name
    lab: Name
    due: End
    why: str = ""


class Platform(Part):
    """The column headings in the file for a learning platform.

    Attributes:
        identify: for Moodle, the heading of the first column, which identifies Moodle's users. The
            default is the heading that `roster` gives for ``moodle``, or else for ``id``. The
            users' values come from the roster's column for ``moodle``. If `roster` has no
            ``moodle``, they come from the roster's column with the heading ``identify``.
        items: the heading of each lab's column. For Canvas, this is the assignment's name and
            number.
        total: the heading of the total's column. Without this key, Canvas's file has no total,
            because Canvas would treat the total as an assignment, and count it in addition to the
            labs.

    Example::

        total: {out_of: 10}
        export:
          moodle:
            identify: Email address
            items: {01_tensors: Lab 1}
            total: Course total
          canvas:
            items: {01_tensors: Lab 1 (4711)}
    """

    identify: str = ""
    items: dict[Name, Name] = Field(default_factory=dict)
    total: str = ""


class Export(Part):
    """The columns of the files for learning platforms: ``export:``.

    Attributes:
        moodle: the columns of Moodle's file.
        canvas: the columns of Canvas's file.
    """

    moodle: Platform = Platform()
    canvas: Platform = Platform()


class ClassRules(Part):
    """The whole file. The key of a lab is the name or the number of its folder.

    Attributes:
        course: the class's id, title, time zone and site.
        sections: the sections of the class, and who marks their written answers.
        roster: the file that lists the class.
        left: the ids of learners who left the class. The project skips these learners, but deletes
            none of their work.
        late: what lateness costs in labs that have no ``late:``.
        hand_ins: which hand-in counts if a learner has several hand-ins for a lab.
        labs: the labs of the class. A lab that the file does not name is not released.
        extensions: later due dates for single learners.
        total: how the total is computed from the labs. Without this key, pages show no total.
        export: the column headings in the files for learning platforms.

    Example::

        left: [eve]
        hand_ins: last in time
        labs:
          01_tensors: {due: 2026-09-25}
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
        """The time zone of all times in the file."""
        return ZoneInfo(self.course.time_zone)

    def policy(self, lab: str) -> LatePolicy:
        """Return what lateness costs in a lab."""
        return self.labs[lab].late or self.late

    def hand_in_rule(self, lab: str) -> HandInRule:
        """Return which of several hand-ins to a lab counts."""
        return self.labs[lab].hand_ins or self.hand_ins

    def deadline(self, lab: str, student: str) -> Deadline | None:
        """Return a learner's deadline in a lab; None if the file gives no due date.

        If a learner has several extensions, the latest date counts.
        """
        if lab not in self.labs:
            return None
        own = [e.due for e in self.extensions if (e.who, e.lab) == (student, lab)]
        clock, grace = max(own) if own else self.labs[lab].due, self.labs[lab].grace
        return Deadline(clock, self.zone, grace, extended=bool(own)) if clock else None

    def is_too_early(self, lab: str, now: datetime) -> bool:
        """Return whether it is too early to release a lab; ``now`` has a time zone."""
        release = self.labs[lab].release
        return release is not None and now.astimezone(UTC) < begin(release, self.zone)

    def shows(self, what: str, lab: str, student: str, now: datetime) -> bool:
        """Return whether a learner may see one kind of information in feedback.

        Args:
            what: the kind of information: the name of a field of :class:`Feedback`.
            now: the current time, with a time zone. "After the due date" means after the learner's
                own due date and its grace.
        """
        when: Shown = getattr(self.labs[lab].feedback, what)
        deadline = self.deadline(lab, student)
        if when is Shown.AFTER_DUE:
            return deadline is not None and deadline.is_late(now)
        return when is Shown.ALWAYS
