"""When a file from an LMS was handed in: Moodle's grading worksheet, and the list of Canvas's API.

Neither LMS writes the time into the name of a downloaded file. Moodle's worksheet has it in words,
to the minute, in the language and time zone of the person who downloaded it; Canvas's API has it in
UTC. A time that can be read in two ways is refused, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from babel import Locale
from dateutil.parser import ParserError
from pydantic import TypeAdapter, ValidationError

from hood import UserError
from hood.classroom.formats.tables import Table
from hood.classroom.hand_ins.lms import LmsName
from hood.classroom.rules.deadline import Deadline, Period, end
from hood.classroom.rules.reading import FILE
from hood.classroom.rules.schema import ClassRules, Duration, End
from hood.grader.submission.names import printable
from hood.grader.submission.times import NO_TIME, is_twice, local

# What Moodle's language packs call the column, and the language of the dates in it.
MODIFIED = {
    "Last modified (submission)": "en",
    "Darrera modificació (tramesa)": "ca",
    "Poslední změna (odevzdání)": "cs",
    "Zuletzt geändert (Abgabe)": "de",
    "Última modificación (entrega)": "es",
    "Dernière modification (travail remis)": "fr",
    "Ultima modifica (consegna)": "it",
    "Laatst gewijzigd (inzending)": "nl",
    "Última atualização (submissão)": "pt",
    "Última modificação (envio)": "pt_BR",
    "Senast modifierat (inlämning)": "sv",
}
NOTHING = {"", "-"}  # Moodle's signs for what was never handed in
CLOCK = re.compile(r"(\d{1,2})[:.h](\d{2})\s*([ap])?\.?(?:\s?m\b\.?)?", re.IGNORECASE)
YEAR = re.compile(r"(?:19|20)\d\d")
GUARD = "while(1);"  # before what Canvas answers to a browser that is logged in
FIELDS = {"user_id", "submitted_at"}
NO_ZONE = (
    "its times are in the zone of the person who downloaded it, and there is no course.yml whose "
    "`time_zone` says which that is. They are not used"
)
Key = tuple[bool, str]  # whether it is Canvas's, and the LMS's number


class LmsTimes:
    """The times that tables beside a download give, by the LMS's number of a learner.

    Args:
        zone: of the class; None where it has no ``course.yml``.
    """

    def __init__(self, zone: ZoneInfo | None):
        self.said: list[str] = []  # how tables were read, and which of their times are not used
        self._zone = zone
        self._found: dict[Key, set[datetime]] = {}
        self._assignments: set[str] = set()

    def of(self, name: LmsName) -> datetime | None:
        """Return when a learner handed in, in UTC and without a zone; None where nothing says."""
        found = self._found.get((name.canvas, name.number), set())
        return next(iter(found)) if len(found) == 1 else None

    def add_table(self, table: Table) -> bool:
        """Read Moodle's grading worksheet; leave any other table alone, and return whether it is.

        Its first column has the number of a participant.
        """
        self._add(table.name, self._moodle(table))
        return bool(MODIFIED.keys() & {*table.columns})

    def add_list(self, name: str, data: bytes) -> None:
        """Read what Canvas's API answers to a request for an assignment's submissions, as JSON.

        Raises:
            UserError: when it is anything else.
        """
        self._add(name, list(self._canvas(name, data)))  # all of it, or nothing

    def _add(self, name: str, given: Iterable[tuple[Key, datetime]]) -> None:
        for key, came in given:
            known = self._found.setdefault(key, set())
            known.add(came)
            if len(known) == 2:
                self.said.append(f"{name}: {key[1]} has another time elsewhere; neither is used")

    def _moodle(self, table: Table) -> Iterator[tuple[Key, datetime]]:
        for column in MODIFIED.keys() & {*table.columns}:
            cells = [(row.cells[table.columns[0]], row.cells[column]) for row in table.rows]
            cells = [(who, said) for who, said in cells if said not in NOTHING]
            if self._zone is None:
                self.said += [f"{table.name}: {NO_ZONE}"] if cells else []
                return
            full_day = _shows_24_hours(said for _, said in cells)
            read = 0
            for who, said in cells:
                number = re.search(r"\d+$", who)
                try:
                    if number is None:
                        raise ValueError("it has no number of a participant")
                    came = read_words(said, MODIFIED[column], self._zone, full_day=full_day)
                except ValueError as error:
                    shown = f"{printable(who)}, {printable(said)!r}"
                    self.said.append(f"{table.name}: {shown} is not used: {error}")
                    continue
                read += 1
                yield (False, number[0]), came
            if read:
                many = "1 time is" if read == 1 else f"{read} times are"
                self.said.append(
                    f"{table.name}: {many} read in {self._zone.key}, the class's zone, to the "
                    "minute. Is that the zone in your Moodle profile?"
                )

    def _canvas(self, name: str, data: bytes) -> Iterator[tuple[Key, datetime]]:
        wrong = UserError(
            f"{name}: expected the list that Canvas's API gives of an assignment's submissions, "
            "with a `user_id` and a `submitted_at` in each"
        )
        try:
            found = json.loads(data.decode("utf-8-sig").removeprefix(GUARD))
        except (ValueError, RecursionError) as error:
            raise wrong from error
        if not (isinstance(found, list) and all(isinstance(one, dict) for one in found)):
            raise wrong
        self._assignments |= {str(one["assignment_id"]) for one in found if "assignment_id" in one}
        if len(self._assignments) > 1:
            those = ", ".join(sorted(self._assignments))
            raise UserError(f"{name}: expected one assignment, got those with the ids {those}")
        for one in found:
            if not one.keys() >= FIELDS:
                raise wrong
            if one["submitted_at"] is None:
                continue
            try:
                came = datetime.fromisoformat(str(one["submitted_at"]))
                if came.tzinfo is None:
                    raise wrong
                came = came.astimezone(UTC).replace(tzinfo=None)
            except (ValueError, OverflowError) as error:
                raise wrong from error
            yield (True, str(one["user_id"])), came
            if one.get("anonymous_id"):
                yield (True, f"anon_{one['anonymous_id']}"), came


def read_words(said: str, language: str, zone: ZoneInfo, *, full_day: bool = False) -> datetime:
    """Return the time that Moodle writes in words, in UTC and without a zone.

    Args:
        said: such as ``Dienstag, 2. Dezember 2025, 10:37``.
        full_day: whether other times of the column show that its clock has 24 hours.

    Raises:
        ValueError: when it can't be read, or in two ways; says why, in the middle of a sentence.
    """
    months, weekdays = _names(language)
    text = said.casefold()
    clock = list(CLOCK.finditer(text))
    words = set(re.findall(r"[^\W\d_]+", text))
    month = {months[word] for word in words & months.keys()}
    if not month:
        try:
            return _in_utc(local(said), zone)
        except (ParserError, OverflowError):
            raise ValueError(NO_TIME) from None
    if len(clock) != 1 or len(month) > 1:
        raise ValueError(NO_TIME)
    before = text[: clock[0].start()] + text[clock[0].end() :]
    years = YEAR.findall(before)
    days = re.findall(r"(?<!\d)\d{1,2}(?!\d)", before)
    if len(years) != 1 or len(days) != 1:
        raise ValueError("it has no day, or no year, or several")
    hour, minute, half = int(clock[0][1]), int(clock[0][2]), clock[0][3]
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("its hour is none of a clock of 12")
        hour = hour % 12 + 12 * (half == "p")
    elif _has_12_hours(language) and not full_day and 1 <= hour <= 12:
        raise ValueError("it may be in the morning or in the afternoon")
    moment = datetime(int(years[0]), month.pop(), int(days[0]), hour, minute)
    day = [number for name, number in weekdays.items() if name in text]
    if day and moment.weekday() not in day:
        raise ValueError("that date is another day of the week")
    return _in_utc(moment, zone)


def deadline_of(file: ClassRules | None, lab: str, student: str) -> Deadline:
    """Return until when a learner may hand a lab in. Raises UserError where no rule says that."""
    deadline = file.deadline(lab, student) if file else None
    if deadline is None:
        raise UserError(f"late_as needs the due date of {lab}: give the lab one in {FILE}")
    return deadline


def supposed(late_as: str, deadline: Deadline) -> datetime:
    """Return when those handed in of whom nothing but their lateness is known.

    Args:
        late_as: a time after the due date, such as ``2 days``, or a date of the class's zone.
        deadline: the learner's own.

    Returns:
        the time in UTC, without a zone.

    Raises:
        UserError: when ``late_as`` is neither.
    """
    for kind in (Duration, End):
        with suppress(ValidationError):
            read: datetime | Period = TypeAdapter[Any](kind).validate_python(late_as)
            if isinstance(read, Period):
                return deadline.after(read).replace(tzinfo=None)
            return end(read, deadline.zone).replace(tzinfo=None)
    raise UserError(
        f"late_as is {late_as!r}: expected a time after the due date, such as 2 days or 3 h, or a "
        "date, such as 2026-09-27 or 2026-09-27 18:00"
    )


def _in_utc(moment: datetime, zone: ZoneInfo) -> datetime:
    own = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    if is_twice(own):
        raise ValueError("clocks were changed in that hour, so it came twice or not at all")
    return own.astimezone(UTC).replace(tzinfo=None)


def _shows_24_hours(column: Iterable[str]) -> bool:
    """Return whether a column has an hour without am or pm that only a clock of 24 hours has."""
    found = [clock for said in column for clock in CLOCK.finditer(said)]
    return any(not clock[3] and not 1 <= int(clock[1]) <= 12 for clock in found)


@lru_cache
def _has_12_hours(language: str) -> bool:
    """Return whether a language writes the hours of a day twice from 1 to 12."""
    return "h" in Locale.parse(language).time_formats["short"].pattern


@lru_cache
def _names(language: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of a language's months and days of the week, by their names."""
    locale = Locale.parse(language)
    months: dict[str, int] = {}
    for form in locale.months.values():
        for width in ("wide", "abbreviated"):
            for number, name in form[width].items():
                last = re.findall(r"[^\W\d_]+", name.casefold())[-1]  # without Catalan's `de`
                months[last] = number
    weekdays = {name.casefold(): number for number, name in locale.days["format"]["wide"].items()}
    return months, weekdays
