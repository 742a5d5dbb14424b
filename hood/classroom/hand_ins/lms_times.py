"""Read the times of hand-ins from Moodle's grading worksheet, or from the list of Canvas's API.

Neither LMS writes the time into the name of a downloaded file. Moodle's worksheet has the time
without seconds, as text. The text is in the language and the time zone of the person who downloaded
the worksheet. Canvas's API gives the time in UTC. A time that can be read in two ways is not used,
and a message gives the reason.
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

# The column's heading in Moodle's language packs, and the language of its dates.
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
NOTHING = {"", "-"}  # Moodle's signs for no hand-in
CLOCK = re.compile(r"(\d{1,2})[:.h](\d{2})\s*([ap])?\.?(?:\s?m\b\.?)?", re.IGNORECASE)
YEAR = re.compile(r"(?:19|20)\d\d")
GUARD = "while(1);"  # Canvas's prefix in its answer to a logged-in browser
FIELDS = {"user_id", "submitted_at"}
NO_ZONE = (
    "its times are not used. The times are in the time zone of the person who downloaded the "
    "table, and no course.yml gives that zone (`time_zone`)"
)
Key = tuple[bool, str]  # whether the number is from Canvas, and the number


class LmsTimes:
    """The times in the tables beside a download, keyed by the learner's number in the LMS.

    Args:
        zone: the time zone of the class; None if there is no ``course.yml``.
    """

    def __init__(self, zone: ZoneInfo | None):
        # messages on how tables were read, and on times that are not used
        self.said: list[str] = []
        self._zone = zone
        self._found: dict[Key, set[datetime]] = {}
        self._assignments: set[str] = set()

    def of(self, name: LmsName) -> datetime | None:
        """Return when a learner handed in, in UTC but without a time zone; None if not known."""
        found = self._found.get((name.canvas, name.number), set())
        return next(iter(found)) if len(found) == 1 else None

    def add_table(self, table: Table) -> bool:
        """Read Moodle's grading worksheet, and return whether the table is such a worksheet.

        The first column of the worksheet has the numbers of the participants.
        """
        self._add(table.name, self._moodle(table))
        return bool(MODIFIED.keys() & {*table.columns})

    def add_list(self, name: str, data: bytes) -> None:
        """Read the list of an assignment's submissions, as JSON from Canvas's API.

        Raises:
            UserError: when the file has another format.
        """
        self._add(name, list(self._canvas(name, data)))  # add no times if an error is raised

    def _add(self, name: str, given: Iterable[tuple[Key, datetime]]) -> None:
        for key, came in given:
            known = self._found.setdefault(key, set())
            known.add(came)
            if len(known) == 2:
                self.said.append(f"{name}: {key[1]} has two different times; neither is used")

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
                        raise ValueError("the row has no participant number")
                    came = read_words(said, MODIFIED[column], self._zone, full_day=full_day)
                except ValueError as error:
                    shown = f"{printable(who)}, {printable(said)!r}"
                    self.said.append(f"{table.name}: {shown} is not used: {error}")
                    continue
                read += 1
                yield (False, number[0]), came
            if read:
                many = "1 hand-in time was" if read == 1 else f"{read} hand-in times were"
                self.said.append(
                    f"{table.name}: {many} read. Moodle gives no seconds. The class's time zone, "
                    f"{self._zone.key}, was assumed: check that your Moodle profile has this zone"
                )

    def _canvas(self, name: str, data: bytes) -> Iterator[tuple[Key, datetime]]:
        wrong = UserError(
            f"{name}: expected the list of submissions from Canvas's API, each with a "
            "`user_id` and a `submitted_at`"
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
            raise UserError(f"{name}: expected one assignment, got several: {those}")
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
    """Read a time that Moodle wrote as text, and return it in UTC, without a zone.

    Args:
        said: Moodle's text, such as ``Dienstag, 2. Dezember 2025, 10:37``.
        full_day: whether other times in the same column show that this is a 24-hour clock.

    Raises:
        ValueError: when the time can't be read, or can be read in two ways. The message is a clause
            for the middle of a sentence.
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
        raise ValueError("expected one day and one year in the text")
    hour, minute, half = int(clock[0][1]), int(clock[0][2]), clock[0][3]
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("its hour is not between 1 and 12")
        hour = hour % 12 + 12 * (half == "p")
    elif _has_12_hours(language) and not full_day and 1 <= hour <= 12:
        raise ValueError("the hour may be in the morning or in the afternoon")
    moment = datetime(int(years[0]), month.pop(), int(days[0]), hour, minute)
    day = [number for name, number in weekdays.items() if name in text]
    if day and moment.weekday() not in day:
        raise ValueError("that date is a different day of the week")
    return _in_utc(moment, zone)


def deadline_of(file: ClassRules | None, lab: str, student: str) -> Deadline:
    """Return a learner's deadline in a lab. Raises UserError if no rule gives a deadline."""
    deadline = file.deadline(lab, student) if file else None
    if deadline is None:
        raise UserError(f"late_as needs the due date of {lab}: set `due` in {FILE}")
    return deadline


def supposed(late_as: str, deadline: Deadline) -> datetime:
    """Return the time to assume for a late hand-in whose time is not known.

    Args:
        late_as: how long after the due date, such as ``2 days``, or a date in the class's time
            zone.
        deadline: the learner's own deadline.

    Returns:
        the time in UTC, without a zone.

    Raises:
        UserError: when ``late_as`` is neither a duration nor a date.
    """
    for kind in (Duration, End):
        with suppress(ValidationError):
            read: datetime | Period = TypeAdapter[Any](kind).validate_python(late_as)
            if isinstance(read, Period):
                return deadline.after(read).replace(tzinfo=None)
            return end(read, deadline.zone).replace(tzinfo=None)
    raise UserError(
        f"late_as is {late_as!r}: expected how long after the due date, such as 2 days or "
        "3 h. Or give a date, such as 2026-09-27 or 2026-09-27 18:00"
    )


def _in_utc(moment: datetime, zone: ZoneInfo) -> datetime:
    own = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    if is_twice(own):
        raise ValueError("the clocks changed in that hour, so it exists twice or not at all")
    return own.astimezone(UTC).replace(tzinfo=None)


def _shows_24_hours(column: Iterable[str]) -> bool:
    """Return whether some time in a column has an hour that only a 24-hour clock shows."""
    found = [clock for said in column for clock in CLOCK.finditer(said)]
    return any(not clock[3] and not 1 <= int(clock[1]) <= 12 for clock in found)


@lru_cache
def _has_12_hours(language: str) -> bool:
    """Return whether a language uses a 12-hour clock."""
    return "h" in Locale.parse(language).time_formats["short"].pattern


@lru_cache
def _names(language: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of months and of days of the week, keyed by their names in a language."""
    locale = Locale.parse(language)
    months: dict[str, int] = {}
    for form in locale.months.values():
        for width in ("wide", "abbreviated"):
            for number, name in form[width].items():
                last = re.findall(r"[^\W\d_]+", name.casefold())[-1]  # without Catalan's `de`
                months[last] = number
    weekdays = {name.casefold(): number for number, name in locale.days["format"]["wide"].items()}
    return months, weekdays
