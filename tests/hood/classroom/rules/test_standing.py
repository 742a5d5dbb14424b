"""Which of several hand-ins may count, and the messages about them."""

from datetime import UTC, datetime, timedelta

import pytest

from hood.classroom.rules.counting import Lateness
from hood.classroom.rules.schema import ClassRules, HandInRule
from hood.classroom.rules.standing import (
    HandInTime,
    KnownHandIn,
    by_weight,
    hand_ins_sentence,
    may_count,
    so_far,
    would_be,
)

DUE = datetime(2026, 9, 25, 18, tzinfo=UTC)
FIRST, LATER = datetime(2026, 9, 25, 18, 2), datetime(2026, 10, 17, 9, 30)


def rules(rule="best", due="2026-09-25 18:00", **late):
    late = late or {"per_day": "10%", "last_day": 7}
    lab = {"due": due, "grace": "1 h"} if due else {}
    return ClassRules.model_validate({"late": late, "hand_ins": rule, "labs": {"lab": lab}})


def came(*days):
    """Hand-ins so many days after the due date; None for an unknown time."""
    return [
        HandInTime(f"{number:03}", None if day is None else DUE + timedelta(days=day))
        for number, day in enumerate(days)
    ]


def chosen(file, *days):
    return [int(one.name) for one in may_count(file, "lab", "ana", came(*days), {})]


@pytest.mark.parametrize(
    ("file", "days", "expected"),
    [
        (None, (-1, 3), [1]),
        (rules(due=""), (-1, 3), [1]),
        (rules("last"), (-1, 3), [1]),
        (rules("last in time"), (-2, -1, 3), [1]),
        (rules("last in time"), (0.04, 3), [0]),  # within the grace
        (rules("last in time"), (0.05, 3), [1]),
        (rules("last in time"), (2, 3), [1]),
        (rules(), (-1, 22), [0]),
        (rules(), (-2, -1, 22), [1]),
        (rules(), (-1, 1, 2, 22), [2, 1, 0]),
        (rules(), (-1, 1.2, 1.9), [2, 0]),
        (rules(), (9, 22), [1]),
        (rules(), (-1, None), [1]),  # an unknown time counts as in time
        (rules(), (2, None, 3), [2, 1, 0]),
        (rules(per_day="0%"), (-1, 3), [1]),  # lateness costs nothing
        (rules(per_day="10%", floor="80%"), (-1, 1, 2, 3, 4), [4, 1, 0]),
        (rules(per_day="10%", free_days=2), (-1, 1, 2), [2, 1, 0]),
        (rules(per_day="1%"), (-2, -1, *range(1, 31)), [*range(31, 22, -1), 1]),
    ],
)
def test_these_hand_ins_may_count(file, days, expected):
    assert chosen(file, *days) == expected


def test_hand_ins_that_may_count_are_kept_longest():
    found = by_weight(rules(), "lab", "ana", came(-3, -2, -1, 1, 2, 22, 23, 23.5))
    assert [int(one.name) for one in found] == [7, 2, 3, 4, 6, 5, 1, 0]
    assert [int(one.name) for one in by_weight(None, "lab", "ana", came(1, 2))] == [1, 0]


def known(at, days=0, kept=1.0, *, stands=False, counts=None, free=0, seen=True):
    return KnownHandIn(at, Lateness(days, free, kept), stands, counts, seen)


IN_TIME = "the hand-in of 25 September 2026, 18:02"
LATE = "the hand-in of 17 October 2026, 09:30"


@pytest.mark.parametrize(
    ("found", "rule", "sentence"),
    [
        ([known(FIRST, stands=True)], "best", ""),
        (
            [known(FIRST, stands=True), known(LATER, 22, 0.0)],
            "best",
            f"You handed in twice: {IN_TIME}, counts; {LATE} came 22 days late and would have "
            "counted 0.",
        ),
        (
            [known(FIRST, counts=12.5), known(LATER, 2, 0.8, stands=True)],
            "best",
            f"You handed in twice: {LATE}, counts; {IN_TIME} would have counted 12.5.",
        ),
        (
            [known(FIRST), known(LATER, stands=True)],
            "best",
            f"You handed in twice: {LATE}, counts; {IN_TIME} was replaced by it.",
        ),
        (
            [known(FIRST, stands=True), known(LATER, 2, 0.8)],
            "last in time",
            f"You handed in twice: {IN_TIME}, counts; {LATE} came 2 days late and does not count: "
            "the last one that is in time counts.",
        ),
        (
            [known(FIRST), known(LATER, 22, 0.0, stands=True)],
            "last",
            f"You handed in twice: {LATE}, counts; in this class the last one counts.",
        ),
        (
            [known(FIRST, stands=True), known(LATER, 2, 0.8, seen=False)],
            "best",
            f"You handed in twice: {IN_TIME}, counts; {LATE} is not graded yet.",
        ),
        (
            [known(None), known(LATER, 2, 0.8, stands=True, free=0)],
            "best",
            f"You handed in twice: {LATE}, counts; the hand-in without a known time was replaced "
            "by a later one.",
        ),
    ],
)
def test_the_message_after_grading(found, rule, sentence):
    assert hand_ins_sentence(found, HandInRule(rule)) == sentence
    assert hand_ins_sentence(found, HandInRule(rule), you=False) == sentence.replace(
        "You handed", "Handed"
    )


def test_only_the_last_of_many_are_named():
    found = [known(FIRST + timedelta(hours=k)) for k in range(8)]
    said = hand_ins_sentence([*found, known(LATER, stands=True)], HandInRule.BEST)
    assert said.startswith(f"You handed in 9 times: {LATE}, counts; the hand-in of 25 September")
    assert said.count("was replaced by it") == 4
    assert said.endswith("; 4 others do not count.")


@pytest.mark.parametrize(
    ("file", "days", "sentence"),
    [
        (None, (-1, 3), ""),
        (
            rules("last"),
            (-1, 3),
            "You handed in twice: the hand-in of 28 September 2026, 18:00, counts.",
        ),
        (
            rules(),
            (-1, 22),
            "You handed in twice: the hand-in of 24 September 2026, 18:00, counts.",
        ),
        (
            rules(),
            (-1, 1),
            "You handed in twice: the hand-in of 24 September 2026, 18:00 or the hand-in of 26 "
            "September 2026, 18:00 counts; grading will show which has more points.",
        ),
    ],
)
def test_the_message_before_grading(file, days, sentence):
    assert so_far(file, "lab", "ana", came(*days)) == sentence


@pytest.mark.parametrize(
    ("file", "before", "now", "sentence"),
    [
        (None, -1, 3, "A new hand-in replaces it."),
        (rules(), -2, -1, "A new hand-in is in time, and replaces the earlier one."),
        (rules(), -1, 22, "A new hand-in is 22 days late, so it counts 0: the earlier "
         "one stays."),
        (rules(), -1, 2, "A new hand-in is 2 days late, so 80 % of its points count: the "
         "hand-in with more points will count."),
        (rules(), 1.5, 2, "A new hand-in is 2 days late, and replaces the earlier one."),
        (rules("last in time"), -1, 2, "A new hand-in is 2 days late: the last one that is "
         "in time counts."),
        (rules("last in time"), 1, 2, "A new hand-in is 2 days late: the last one counts."),
        (rules("last"), -1, 22, "A new hand-in is 22 days late, so it counts 0, and "
         "replaces the earlier one: in this class the last one counts."),
        (rules("last"), -1, 2, "A new hand-in is 2 days late, so 80 % of its points count, and "
         "replaces the earlier one: in this class the last one counts."),
    ],
)  # fmt: skip
def test_the_message_says_what_another_hand_in_would_mean(file, before, now, sentence):
    times = [DUE + timedelta(days=day) for day in (before, now)]
    assert would_be(file, "lab", "ana", *times) == sentence
