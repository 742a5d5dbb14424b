"""What counts of one submission, rule by rule."""

from datetime import UTC, datetime, timedelta

import pytest

from grader.results.coursefile.counting import Lateness, RawMark, count, lateness_of
from grader.results.coursefile.schema import CourseFile, LabRules
from grader.results.coursefile.sentences import counted_sentences

FOUR, SIX = RawMark("four", 4.0, 3.0), RawMark("six", 6.0, 3.0)
GPU = RawMark("gpu", 5.0, 2.0, withheld=2.0)
DUE = datetime(2026, 10, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rules", "marks", "counts", "most"),
    [
        ({}, (FOUR, SIX), 6, 10),
        ({"drop": ("four",)}, (FOUR, SIX), 3, 6),
        ({"drop": ("four", "six")}, (FOUR, SIX), 0, 0),
        ({"points": {"four": 8}}, (FOUR, SIX), 9, 14),
        ({"points": {"four": 0}}, (FOUR, SIX), 3, 6),
        ({"bonus": ("four",)}, (FOUR, SIX), 6, 6),
        ({"bonus": ("four",), "points": {"four": 2}}, (FOUR, SIX), 4.5, 6),
        ({}, (GPU,), 2, 3),
        ({"withheld": "count"}, (GPU,), 2, 5),
        ({"withheld": "credit"}, (GPU,), 4, 5),
        ({"points": {"gpu": 10}}, (GPU,), 4, 6),
        ({"points": {"gpu": 10}, "withheld": "credit"}, (GPU,), 8, 10),
        ({"bonus": ("gpu",), "withheld": "credit"}, (GPU,), 4, 0),
        ({"points": {"nothing": 3}}, (RawMark("nothing", 0.0, 0.0),), 0, 0),
    ],
)
def test_points(rules, marks, counts, most):
    found = count(LabRules.model_validate(rules), marks, Lateness())
    assert (found.counts, found.most) == (pytest.approx(counts), pytest.approx(most))
    assert found.is_final


def test_a_missing_mark_is_no_0_unless_it_does_not_count():
    waits, lost = RawMark("words", 4.0, None, waits=True), RawMark("lost", 3.0, None)
    found = count(LabRules(points={"words": 2.0}), (SIX, waits, lost), Lateness(1, kept=0.5))
    assert (found.waiting, found.lost, found.counts, found.most) == (2, 3, 1.5, 11)
    assert not found.is_final
    assert list(counted_sentences(found))[:3] == [
        "1.5 of 11 points count so far.",
        "Not marked yet: 2 points that count.",
        "Without a mark: 3 points that count.",
    ]
    assert count(LabRules(drop=("words", "lost")), (SIX, waits, lost), Lateness()).is_final


def late(seconds, free_days=0, grace="0 min", **policy):
    file = CourseFile.model_validate(
        {
            "late": {"free_days": free_days, **policy},
            "labs": {"lab": {"due": "2026-10-02 12:00", "grace": grace}},
        }
    )
    return lateness_of(file, "ana", {"lab": DUE + timedelta(seconds=seconds)})["lab"]


@pytest.mark.parametrize(
    ("seconds", "days"),
    [(-1, 0), (0, 0), (1, 1), (86400, 1), (86401, 2), (5 * 86400, 5)],
)
def test_a_day_that_has_begun_is_a_day(seconds, days):
    assert late(seconds, per_day=0.1).days == days
    assert late(seconds, per_day=0.1).kept == pytest.approx(1 - 0.1 * days)
    assert late(seconds).kept == 1


def test_within_the_grace_it_is_not_late_and_after_it_all_of_it_is():
    assert late(1800, grace="30 min", per_day=0.1).days == 0
    assert late(1801, grace="30 min", per_day=0.1).days == 1
    assert late(86401, grace="30 min", per_day=0.1).days == 2


def test_a_share_stays_and_after_the_last_day_nothing():
    policy = {"per_day": 0.3, "floor": 0.25, "last_day": 4}
    kept = [late(86400 * day, **policy).kept for day in range(6)]
    assert kept == pytest.approx([1, 0.7, 0.4, 0.25, 0.25, 0])


def test_free_days_pay_where_they_save_points_in_the_order_of_due_dates():
    file = CourseFile.model_validate(
        {
            "late": {"per_day": "10%", "last_day": 5, "free_days": 3},
            "labs": {
                "c": {"due": "2026-10-30 12:00"},
                "a": {"due": "2026-10-02 12:00"},
                "b": {"due": "2026-10-16 12:00", "late": {}},
                "d": {"due": "2026-11-13 12:00"},
                "never": {},
            },
            "extensions": [{"who": "ana", "lab": "d", "due": "2026-11-14 12:00"}],
        }
    )
    days = {"a": 2, "b": 2, "c": 2, "d": 2}
    times = {lab: DUE + timedelta(14 * n + days[lab]) for n, lab in enumerate("abcd")}
    found = lateness_of(file, "ben", times | {"never": DUE})
    assert {lab: (one.days, one.free) for lab, one in found.items()} == {
        "a": (2, 2),
        "b": (2, 0),  # where lateness costs nothing
        "c": (2, 1),
        "d": (2, 0),
        "never": (0, 0),
    }
    assert [found[lab].kept for lab in "abcd"] == pytest.approx([1, 1, 0.9, 0.8])
    assert lateness_of(file, "ana", times)["d"].days == 1
    too_late = lateness_of(file, "ben", times | {"a": DUE + timedelta(6)})
    assert (too_late["a"].free, too_late["a"].kept, too_late["c"].free) == (0, 0, 2)


def test_a_time_that_is_unknown_counts_as_in_time_and_says_that_it_is_unknown():
    file = CourseFile.model_validate(
        {"late": {"per_day": 1}, "labs": {"lab": {"due": "2026-10-02"}}}
    )
    assert lateness_of(file, "ana", {"lab": None}) == {"lab": Lateness(known=False)}


@pytest.mark.parametrize(
    ("lateness", "said"),
    [
        (Lateness(), None),
        (Lateness(1, kept=0.9), "Handed in 1 day late: 90 % of 6 points stay."),
        (Lateness(3, 1, 0.8), "Handed in 3 days late, 1 of them free: 80 % of 6 points stay."),
        (Lateness(2, 2), "Handed in 2 days late, which your free days cover."),
        (Lateness(1, 1), "Handed in 1 day late, which a free day covers."),
        (Lateness(2), "Handed in 2 days late, at no cost."),
        (Lateness(9, kept=0), "Handed in 9 days late: nothing counts any more."),
        (Lateness(known=False), "When it was handed in is not known."),
    ],
)
def test_how_lateness_is_told(lateness, said):
    sentences = list(counted_sentences(count(LabRules(), (FOUR, SIX), lateness)))
    assert sentences[1:] == ([said] if said else [])
