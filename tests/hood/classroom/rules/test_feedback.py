"""A learner's page says what counts, and shows only what the class's rules allow."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from nbgrader.api import Gradebook

from hood.classroom.rules.deadline import Deadline
from hood.classroom.rules.reading import FILE
from hood.classroom.rules.sentences import dates_sentence
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.rules.book import LABS, hand_in, make_book
from tests.hood.classroom.test_same_numbers import formgrader

LAB = "01_one"
NAMED, EXAMPLE = "a sentence about it", "first(1)"
DUE = datetime(2026, 10, 2, 23, 59, 59)


def page(tmp_path, rules):
    course = make_book(tmp_path / "course")
    scores = {"first": 2.0, "second": 6.0, "third": 0.0, "why": None}
    hand_in(course, "ana", LAB, scores, DUE + timedelta(days=1.5), {"third": 1.0})
    if rules:
        (course.root / FILE).write_text(rules)
    assert formgrader(course).generate_feedback(LAB)["success"]
    return words((course.root / "feedback" / "ana" / LAB / f"{LAB}.html").read_text())


MADRID = "course: {time_zone: Europe/Madrid}\n"  # where this was 13:59:59 of 4 October


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            MADRID + "labs: {one: {due: 2026-10-02}}",
            "Due on 2 October 2026, 23:59:59; handed in on 4 October 2026, 13:59:59 "
            "(times of Europe/Madrid). Handed in 2 days late, at no cost.",
        ),
        (
            MADRID + "labs: {one: {due: 2026-10-02, grace: 30 min}}\n"
            "extensions: [{who: ana, lab: one, due: 2026-10-06, why: ill}]",
            "Due on 6 October 2026, 23:59:59 (your extension), with 30 min of grace; handed in on "
            "4 October 2026, 13:59:59 (times of Europe/Madrid).",
        ),
        (
            "labs: {one: {}}",
            "Handed in on 4 October 2026, 11:59:59 (times of UTC).",
        ),
        ("", "Handed in on 4 October 2026, 11:59:59 (times of UTC)."),
    ],
)
def test_the_page_has_due_date_and_time_of_submission(tmp_path, rules, said):
    told = page(tmp_path, rules)
    assert said in told
    assert ("late" in told) is ("days late" in said)
    assert not re.search(r"\bill\b", told)


def test_without_rules_the_page_has_the_gradebooks_dates(tmp_path):
    course = make_book(tmp_path / "course")
    hand_in(course, "ana", LAB, dict.fromkeys(LABS[LAB], 1.0), DUE)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate=DUE - timedelta(days=2))
        gradebook.find_submission(LAB, "ana").extension = timedelta(days=1)
        gradebook.db.commit()
    assert formgrader(course).generate_feedback(LAB)["success"]
    told = words((course.root / "feedback" / "ana" / LAB / f"{LAB}.html").read_text())
    assert (
        "Due on 1 October 2026, 23:59:59 (your extension); handed in on 2 October 2026, 23:59:59 "
        "(times of UTC). Handed in 24 h 0 min late, at no cost."
    ) in told


def test_a_repeated_time_names_its_zone():
    deadline = Deadline(datetime(2026, 10, 24, 23, 59, 59), ZoneInfo("Europe/Madrid"))
    for hour, said in ((0, "02:10:00 CEST"), (1, "02:10:00 CET"), (2, "03:10:00")):
        came = datetime(2026, 10, 25, hour, 10, tzinfo=UTC)
        assert dates_sentence(deadline, came, deadline.zone) == (
            f"Due on 24 October 2026, 23:59:59; handed in on 25 October 2026, {said} "
            "(times of Europe/Madrid)."
        )
    assert dates_sentence(deadline, None, deadline.zone).startswith("Due on 24 October 2026, 23:5")
    assert dates_sentence(None, None, deadline.zone) == ""


CHANGES = "Your free days are spent where they save you most points, so the points that count here"
TWO_LATE = """
late: {per_day: 10%, floor: 50%, last_day: 9, free_days: 2}
labs: {one: {due: 2026-10-02}, two: {due: 2026-10-16}}
"""


def test_the_page_says_that_a_later_lab_can_take_free_days_away(tmp_path):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text(TWO_LATE)

    def told():
        assert formgrader(course).generate_feedback(LAB)["success"]
        return words((course.root / "feedback" / "ana" / LAB / f"{LAB}.html").read_text())

    hand_in(course, "ana", LAB, dict.fromkeys(LABS[LAB], 2.0), DUE + timedelta(days=1.5))
    assert "8 of 20 points count" in (first := told())
    assert "Handed in 2 days late; your free days cover it. Late:" in first
    assert CHANGES in first
    scores = {"fourth": 6.0, "fifth": 2.0, "because": 8.0}
    hand_in(course, "ana", "02_two", scores, DUE + timedelta(days=14 + 0.5))
    assert "7.2 of 20 points count" in (second := told())
    assert "Handed in 2 days late, 1 of them free: 90 % of 8 points stay." in second
    assert CHANGES in second
    (course.root / FILE).write_text(TWO_LATE.replace("last_day: 9", "last_day: 1"))
    assert "so nothing counts" in (third := told())
    assert CHANGES not in third


def test_the_page_explains_what_counts(tmp_path):
    told = page(
        tmp_path,
        "late: {per_day: 10%}\n"
        "labs: {one: {due: 2026-10-02, drop: [first], points: {second: 3}, bonus: [why]}}\n",
    )
    for sentence in (
        "2.4 of 7 points count so far",
        "Not marked yet: 5 points.",
        "does not count first does not count. You earned 2 of 4 points.",
        "3 of 3 points second counts 3 points in place of 6. You earned 6 of 6 points.",
        "third has a maximum that is 1 point lower, because the grading machine could not run some "
        "checks.",
        "not marked yet why is a bonus.",
        "Handed in 2 days late: 80 % of 3 points stay. "
        "Late: each begun day costs 10 % of the points earned.",
    ):
        assert sentence in told
    assert NAMED in told
    assert EXAMPLE in told


@pytest.mark.parametrize(
    ("rules", "is_named", "has_example"),
    [
        ("misconceptions: never", False, True),
        ("examples: never", True, False),
        ("misconceptions: after due, examples: after due", True, True),  # that is long ago
        ("misconceptions: never, examples: never", False, False),
    ],
)
def test_the_rules_decide_what_is_shown(tmp_path, rules, is_named, has_example):
    told = page(tmp_path, f"labs: {{one: {{due: 2026-10-02, feedback: {{{rules}}}}}}}")
    assert (NAMED in told, EXAMPLE in told) == (is_named, has_example)


def test_nothing_is_shown_before_the_due_date(tmp_path):
    told = page(tmp_path, "labs: {one: {due: 2999-10-02, feedback: {misconceptions: after due}}}")
    assert NAMED not in told


@pytest.mark.parametrize("rules", ["", "labs: {two: {}}"])
def test_without_rules_for_the_lab_the_page_is_unchanged(tmp_path, rules):
    told = page(tmp_path, rules)
    assert "points count" not in told
    assert "Not marked yet, so not final: 5 points." in told
    assert NAMED in told


def test_an_error_in_the_file_stops_the_command_before_any_page(tmp_path):
    course = make_book(tmp_path / "course")
    hand_in(course, "ana", LAB, dict.fromkeys(LABS[LAB], 1.0), DUE)
    (course.root / FILE).write_text("labs: {one: {dorp: []}}")
    told = formgrader(course).generate_feedback(LAB)
    assert not told["success"]
    assert "course.yml:1: labs.01_one.dorp: no such key" in told["error"]
    assert not (course.root / "feedback").exists()
    [listed] = formgrader(course).get_submissions(LAB)  # formgrader goes on, with its own dates
    assert listed["student"] == "ana"
