"""Read the time in a ``timestamp.txt``, and refuse a time that can be read in two ways.

nbgrader uses dateutil, which guesses. dateutil reads an unknown zone as UTC, ``05/04`` as a day in
May, and a date without a year as a day in the current year. And nbgrader reads the zone `` +0200``
as 200 seconds.
"""

from __future__ import annotations

import codecs
import re
from datetime import MAXYEAR, MINYEAR, UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from dateutil.parser import ParserError, parse

NO_TIME = "it has no date and time"
WRITE = "write the time as 2026-04-05 10:00:00 UTC"
YEAR_FIRST = re.compile(r"(19|20)\d\d")
REGION = re.compile(r"(.*\S)\s+([A-Za-z_]+/[\w/+-]+)")  # a zone named by a place: Europe/Berlin
# Some programs read GMT+2 as the zone that other programs call GMT-2.
SHIFTED = re.compile(r"[A-Za-z]{3,}[+-]0*[1-9]")
# Missing parts of a date come from these days; if the two results differ, the date is incomplete.
DAYS = (datetime(2000, 1, 1), datetime(2001, 2, 2))


def read_time(data: bytes) -> datetime | None:
    """Return the time in a file, in UTC and without a zone; None for an empty file.

    A time without a zone is in UTC, as in nbgrader. If the time can't be read in exactly one way,
    raises ValueError; the message is a part of a sentence.
    """
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # PowerShell writes this
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig").strip()
        if not text and data.strip():
            raise ValueError(NO_TIME)
        time = _in_utc(text) if text else None
        if time and not is_on_clocks(time):
            raise ValueError(NO_TIME)
        return time
    except (ParserError, UnicodeDecodeError):
        raise ValueError(NO_TIME) from None
    except ValueError:
        raise
    except Exception:  # dateutil and the zones raise many kinds of errors
        raise ValueError(NO_TIME) from None


def _in_utc(text: str) -> datetime:
    place = REGION.fullmatch(text)
    if SHIFTED.search(text):
        raise ValueError(f"its zone can be read in two ways; {WRITE}")
    time = local(place[1] if place else text)
    if place and time.tzinfo is None:
        time = time.replace(tzinfo=_zone(place[2]))
    if time.tzinfo is None:
        return time
    # An hour of an autumn night exists twice, and CET is not used on a summer day.
    zone = time.tzinfo.key if isinstance(time.tzinfo, ZoneInfo) else ""
    if is_twice(time) or (zone and "/" not in zone and time.tzname() != zone):
        raise ValueError(f"its zone can be read in two ways; {WRITE}")
    return time.astimezone(UTC).replace(tzinfo=None)


def is_on_clocks(time: datetime) -> bool:
    """Return whether every zone can show a time: in the years 1 and 9999, some zones can't."""
    return MINYEAR < time.year < MAXYEAR


def local(text: str) -> datetime:
    """Return the only reading of a date and time; if the text has no zone, the zone is None.

    Raises ValueError if there is no reading, or if there are several readings.
    """
    ways: list[dict[str, bool]] = [{}]
    if not YEAR_FIRST.match(text):
        ways += [{"dayfirst": True}, {"yearfirst": True}]
    found = {parse(text, default=day, tzinfos=_named, **way) for day in DAYS for way in ways}
    if len(found) > 1:
        raise ValueError(f"its date is incomplete or can be read in two ways; {WRITE}")
    return found.pop()


def is_twice(time: datetime) -> bool:
    """Return whether a time exists twice or never, because clocks changed in that hour."""
    return time.utcoffset() != time.replace(fold=1).utcoffset()


def _named(name: str | None, offset: int | None) -> tzinfo | int | None:
    """Return the zone that dateutil found: an offset in seconds, or a zone by its name."""
    return offset if offset is not None or name is None else _zone(name)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except Exception:  # several kinds of errors for an unknown name
        raise ValueError(f"its zone is unknown here; {WRITE}") from None
