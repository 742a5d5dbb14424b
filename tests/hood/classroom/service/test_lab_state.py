"""The list of labs shows what counts, and times by the clocks of the class."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from hood.classroom.rules.reading import FILE, read_course_file
from hood.classroom.service.lab_state import Inbox, Receipt, lab_states
from tests.hood.classroom.rules.book import LABS, hand_in, make_book
from tests.hood.tiny import write

RULES = """
course: {time_zone: Europe/Madrid}
late: {per_day: 10%, free_days: 2}
labs: {one: {due: 2026-10-10}, two: {due: 2026-10-24}}
"""
CAME = datetime(2026, 10, 12, 12)


def test_points_are_counted_points_and_times_use_the_classs_clocks(tmp_path):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text(RULES)
    for number, (lab, exercises) in enumerate(list(LABS.items())[:2]):
        hand_in(course, "ana", lab, exercises, CAME + timedelta(14 * number))
        write(b"", course.folder("feedback", "ana", lab) / f"{lab}.html")
    came = (CAME + timedelta(14)).replace(tzinfo=UTC)
    receipt = Receipt(lab="02_two", received=came, bytes=1, sha256="", late=True)
    inbox = SimpleNamespace(newest=lambda *_: receipt, so_far=lambda *_: "")
    one, two = lab_states(course, read_course_file(course.root), inbox, "ana", list(LABS)[:2])
    assert (one.points, one.most, one.final) == (
        20,
        20,
        True,
    )  # among equals, the first gets the free days
    assert (two.points, two.most, two.final) == (16, 20, True)
    assert [str(state.due) for state in (one, two)] == [
        "2026-10-10 23:59:59+02:00",
        "2026-10-24 23:59:59+02:00",
    ]
    assert (str(two.received.received), two.zone) == ("2026-10-26 13:00:00+01:00", "Europe/Madrid")
    [bare] = lab_states(course, None, inbox, "ana", ["02_two"])
    assert (bare.points, bare.due, bare.zone) == (20, None, "UTC")
    assert str(bare.received.received) == "2026-10-26 12:00:00+00:00"


@pytest.mark.parametrize(
    ("came", "late"),
    [
        ("2026-10-25 00:44:59 UTC", False),  # 02:44:59 by summer time
        ("2026-10-25 01:44:59 UTC", False),  # 02:44:59 by winter time, two hours after 01:45
        ("2026-10-25 01:45:01 UTC", True),
    ],
)
def test_a_receipt_is_late_after_a_grace_that_includes_the_change_of_clocks(tmp_path, came, late):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text(
        "course: {time_zone: Europe/Madrid}\nlabs: {one: {due: 2026-10-25 01:45, grace: 2 h}}"
    )
    folder = course.folder("submitted", "ana", "01_one")
    write(b"{}", folder / "01_one.ipynb")
    write(came.encode(), folder / "timestamp.txt")
    rules = read_course_file(course.root)
    [one] = lab_states(course, rules, Inbox(course), "ana", ["01_one"])
    assert one.received.late is late
