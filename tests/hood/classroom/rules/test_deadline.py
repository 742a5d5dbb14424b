"""Lateness across changes of the clocks; all parts of the project agree."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hood.classroom.rules.counting import lateness_of
from hood.classroom.rules.deadline import Deadline, Period, begin, end
from hood.classroom.rules.schema import ClassRules

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
ZONES = [  # zones whose clocks change at night, at midnight, by half an hour, and never
    *("Europe/Madrid", "Europe/Dublin", "America/Santiago", "America/Havana", "America/Nuuk"),
    *("Australia/Lord_Howe", "Pacific/Auckland", "Africa/Casablanca", "Africa/Cairo"),
    *("Asia/Kolkata", "UTC"),
]


def at(clock, zone="Europe/Madrid", fold=0):
    """The moment at which clocks show a time, in UTC."""
    return datetime.fromisoformat(clock).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


def file_of(due, zone="Europe/Madrid", grace="0 min"):
    rules = {"due": due, "grace": grace, "feedback": {"examples": "after due"}}
    policy = {"per_day": "10%", "last_day": 7}
    return ClassRules.model_validate(
        {"course": {"time_zone": zone}, "late": policy, "labs": {"lab": rules}}
    )


def days(file, came):
    """Days late. Asserts that all other functions agree on whether a hand-in is late."""
    found = lateness_of(file, "ana", {"lab": came}, {})["lab"].days
    deadline = file.deadline("lab", "ana")
    local = came.astimezone(file.zone)
    for moment in (came, local):
        assert deadline.days_late(moment) == found
        assert (deadline.seconds_late(moment) > 0) is bool(found)
        assert file.shows("examples", "lab", "ana", moment) is bool(found)
    return found


@pytest.mark.parametrize(
    ("due", "came", "late"),
    [
        ("2026-10-24", "2026-10-24 23:59:59", 0),  # before the night of 25 hours
        ("2026-10-24", "2026-10-25 00:00:00", 1),
        ("2026-10-24", "2026-10-25 23:30:00", 1),
        ("2026-10-24", "2026-10-25 23:59:59", 1),
        ("2026-10-24", "2026-10-26 00:00:00", 2),
        ("2026-10-24", "2026-10-31 23:30:00", 7),
        ("2026-10-24", "2026-11-01 00:00:00", 8),
        ("2026-03-28", "2026-03-29 23:59:59", 1),  # before the night of 23 hours
        ("2026-03-28", "2026-03-30 00:00:00", 2),
        ("2026-03-28", "2026-04-04 23:59:59", 7),
        ("2026-03-28", "2026-04-05 00:30:00", 8),
    ],
)
def test_a_day_late_ends_at_the_same_time_of_the_next_day(due, came, late):
    file = file_of(due)
    assert days(file, at(came)) == late
    kept = lateness_of(file, "ana", {"lab": at(came)}, {})["lab"].kept
    assert kept == pytest.approx(0 if late > 7 else 1 - late / 10)


@pytest.mark.parametrize(
    ("zone", "due", "came", "fold", "late"),
    [
        ("America/Santiago", "2026-04-03", "2026-04-04 23:59:59", 0, 1),
        ("America/Santiago", "2026-04-03", "2026-04-04 23:59:59", 1, 1),  # this hour comes twice
        ("America/Santiago", "2026-04-04", "2026-04-04 23:59:59", 1, 0),  # the day's last second
        ("America/Santiago", "2026-04-04", "2026-04-05 00:00:00", 0, 1),
        ("Pacific/Auckland", "2026-04-04", "2026-04-05 23:30:00", 0, 1),
        ("Pacific/Auckland", "2026-09-26", "2026-09-28 00:10:00", 0, 2),
        (
            "Australia/Lord_Howe",
            "2026-04-04",
            "2026-04-05 23:45:00",
            0,
            1,
        ),  # a change of half an hour
        ("Pacific/Apia", "2011-12-29", "2011-12-31 00:10:00", 0, 1),  # a year without 30 December
    ],
)
def test_the_same_holds_on_the_southern_hemisphere(zone, due, came, fold, late):
    assert days(file_of(due, zone), at(came, zone, fold)) == late


def test_a_repeated_hour_is_the_second_for_a_due_time_and_the_first_for_a_release():
    file = file_of("2026-10-25 02:30")
    late = [days(file, at(f"2026-10-25 02:{m}", fold=fold)) for fold in (0, 1) for m in (30, 31)]
    assert late == [0, 0, 0, 1]
    opened = ClassRules.model_validate(
        {
            "course": {"time_zone": "Europe/Madrid"},
            "labs": {"lab": {"release": "2026-10-25 02:30"}},
        }
    )
    for zone in (UTC, opened.zone):
        moments = [at("2026-10-25 02:29"), at("2026-10-25 02:30"), at("2026-10-25 02:10", fold=1)]
        assert [opened.is_too_early("lab", m.astimezone(zone)) for m in moments] == [True, 0, 0]


def test_a_skipped_time_is_read_by_the_old_clock():
    lost = datetime(2026, 3, 29, 2, 30)
    for moment in (begin(lost, ZoneInfo("Europe/Madrid")), end(lost, ZoneInfo("Europe/Madrid"))):
        assert moment == at("2026-03-29 03:30")
    file = file_of("2026-03-28 02:30")
    assert [days(file, at(f"2026-03-29 03:{m}")) for m in (30, 31)] == [1, 2]


def test_grace_in_hours_is_elapsed_time_and_grace_in_days_is_by_the_calendar():
    half = file_of("2026-10-25 01:45", grace="2 h")  # from 01:45 by summer time
    assert [days(half, at(f"2026-10-25 02:{m}", fold=1)) for m in (45, 46)] == [0, 1]
    day = file_of("2026-10-24", grace="1 day")
    assert [days(day, at(t)) for t in ("2026-10-25 23:59:59", "2026-10-26 00:00")] == [0, 2]
    hours = file_of("2026-10-24", grace="24 h")
    assert [days(hours, at(t)) for t in ("2026-10-25 22:59:59", "2026-10-25 23:00")] == [0, 1]
    mixed = file_of("2026-10-24", grace="1.5 days").deadline("lab", "ana")
    assert mixed.grace == Period(1, timedelta(hours=12))
    assert mixed.after(mixed.grace) == at("2026-10-26 11:59:59")


def test_the_due_second_is_in_time_to_its_end():
    file = file_of("2026-10-02")
    assert [days(file, at(f"2026-10-02 23:59:59.{part}")) for part in ("000001", "999999")] == [
        0
    ] * 2
    late = file.deadline("lab", "ana").seconds_late(at("2026-10-03 00:00:00.700000"))
    assert late == 1


def test_seconds_are_the_elapsed_ones_since_the_due_date():
    deadline = file_of("2026-10-24", grace="30 min").deadline("lab", "ana")
    assert deadline.seconds_late(at("2026-10-25 00:29:59")) == 0
    assert deadline.seconds_late(at("2026-10-25 00:30:00")) == 1801
    assert deadline.seconds_late(at("2026-10-25 23:59:59")) == 25 * 3600


def _nights(zone):
    """The days of a year in which a zone's clocks change."""
    noon = [datetime(2026, 1, 2, 12, tzinfo=zone) + DAY * k for k in range(360)]
    return [d.replace(tzinfo=None) for d in noon if d.utcoffset() != (d - DAY).utcoffset()]


def _last_moment(clock, zone):
    """The last moment at which clocks show a time, found minute by minute."""
    guess = (clock - (clock + DAY).replace(tzinfo=zone).utcoffset()).replace(tzinfo=UTC)
    shown = {}
    for k in range(-180, 181):
        moment = guess + k * MINUTE
        shown[moment] = moment.astimezone(zone).replace(tzinfo=None)
    found = [moment for moment, said in shown.items() if said == clock]
    if found:
        return max(found)
    before = max(moment for moment, said in shown.items() if said < clock)  # this time is skipped
    return before + (clock - shown[before])


@st.composite
def hand_ins(draw):
    zone = ZoneInfo(draw(st.sampled_from(ZONES)))
    night = draw(st.sampled_from(_nights(zone) or [datetime(2026, 6, 1)]))
    due = night + draw(st.integers(-9 * 1440, 1440)) * MINUTE
    grace = draw(
        st.builds(
            Period,
            st.integers(0, 2),
            st.builds(timedelta, minutes=st.sampled_from([0, 0, 30, 90, 1440])),
        )
    )
    return Deadline(due, zone, grace), draw(st.integers(-1500, 10 * 1440)) * MINUTE


@settings(max_examples=150, deadline=None, database=None)
@given(hand_ins())
def test_a_slow_count_minute_by_minute_gives_the_same(drawn):
    deadline, later = drawn
    came = _last_moment(deadline.clock, deadline.zone) + later
    end_of_grace = _last_moment(deadline.clock + deadline.grace.days * DAY, deadline.zone)
    late = 0
    if came > end_of_grace + deadline.grace.elapsed:
        while came > _last_moment(deadline.clock + late * DAY, deadline.zone):
            late += 1
    assert deadline.days_late(came) == late
    assert deadline.seconds_late(came) == (later.total_seconds() if late else 0)
    assert deadline.is_late(came) is (late > 0)
