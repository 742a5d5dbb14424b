"""What counts of one submission, rule by rule."""

import itertools
import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from hood.classroom.rules.counting import Lateness, RawMark, contested, count, lateness_of
from hood.classroom.rules.deadline import Period
from hood.classroom.rules.schema import ClassRules, LabRules
from hood.classroom.rules.sentences import counted_sentences

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
def test_points_are_counted(rules, marks, counts, most):
    found = count(LabRules.model_validate(rules), marks, Lateness())
    assert (found.counts, found.most) == (pytest.approx(counts), pytest.approx(most))
    assert found.is_final


def test_a_missing_mark_is_no_0_unless_its_exercise_does_not_count():
    waits, lost = RawMark("words", 4.0, None, waits=True), RawMark("lost", 3.0, None)
    found = count(LabRules(points={"words": 2.0}), (SIX, waits, lost), Lateness(1, kept=0.5))
    assert (found.waiting, found.lost, found.counts, found.most) == (2, 3, 1.5, 11)
    assert not found.is_final
    assert list(counted_sentences(found))[:3] == [
        "1.5 of 11 points count so far.",
        "Not marked yet: 2 points.",
        "Without a mark: 3 points.",
    ]
    assert count(LabRules(drop=("words", "lost")), (SIX, waits, lost), Lateness()).is_final


def late(seconds, free_days=0, grace="0 min", **policy):
    file = ClassRules.model_validate(
        {
            "late": {"free_days": free_days, **policy},
            "labs": {"lab": {"due": "2026-10-02 12:00", "grace": grace}},
        }
    )
    return lateness_of(file, "ana", {"lab": DUE + timedelta(seconds=seconds)}, {})["lab"]


@pytest.mark.parametrize(
    ("seconds", "days"),
    [(-1, 0), (0, 0), (1, 1), (86400, 1), (86401, 2), (5 * 86400, 5)],
)
def test_a_started_day_counts_as_a_day(seconds, days):
    assert late(seconds, per_day=0.1).days == days
    assert late(seconds, per_day=0.1).kept == pytest.approx(1 - 0.1 * days)
    assert late(seconds).kept == 1


def test_lateness_starts_after_the_grace_and_then_includes_it():
    assert late(1800, grace="30 min", per_day=0.1).days == 0
    assert late(1801, grace="30 min", per_day=0.1).days == 1
    assert late(86401, grace="30 min", per_day=0.1).days == 2


def test_a_share_of_late_work_counts_until_the_last_day():
    policy = {"per_day": 0.3, "floor": 0.25, "last_day": 4}
    kept = [late(86400 * day, **policy).kept for day in range(6)]
    assert kept == pytest.approx([1, 0.7, 0.4, 0.25, 0.25, 0])


TERM = {
    "late": {"per_day": "10%", "floor": "50%", "last_day": 9, "free_days": 2},
    "labs": {
        "a": {"due": "2026-10-02 12:00"},
        "b": {"due": "2026-10-16 12:00"},
        "c": {"due": "2026-10-30 12:00"},
        "never": {},
    },
}


def spent(days, earned, **changes):
    """Lab -> the free days that it gets; and lab -> the share of its points that is kept."""
    file = ClassRules.model_validate(TERM | changes)
    times = {
        lab: file.deadline(lab, "ana").after(Period(late)) if lab != "never" else DUE
        for lab, late in days.items()
    }
    found = lateness_of(file, "ana", times, earned)
    return {lab: (one.free, pytest.approx(one.kept)) for lab, one in found.items()}


def test_free_days_are_not_spent_where_the_floor_makes_them_useless():
    assert spent({"a": 8, "b": 2}, {"a": 10.0, "b": 10.0}) == {"a": (0, 0.5), "b": (2, 1)}


def test_free_days_are_spent_where_they_save_most_points():
    assert spent({"a": 2, "b": 2}, {"a": 5.0, "b": 10.0}) == {"a": (0, 0.8), "b": (2, 1)}
    dear = {"labs": TERM["labs"] | {"b": {"due": "2026-10-16 12:00", "late": {"per_day": 0.25}}}}
    assert spent({"a": 2, "b": 2}, {"a": 10.0, "b": 5.0}, **dear) == {"a": (0, 0.8), "b": (2, 1)}


def test_enough_free_days_cover_all_lateness_whatever_was_earned():
    assert spent({"a": 1, "b": 1}, {}) == {"a": (1, 1), "b": (1, 1)}
    file = ClassRules.model_validate(TERM)
    times = {lab: file.deadline(lab, "ana").after(Period(1)) for lab in "ab"}
    assert contested(file, "ana", times) == ()
    times["a"] += timedelta(1)
    assert contested(file, "ana", times) == ("a", "b")


def test_among_equals_the_lab_due_first_gets_the_free_days():
    assert spent({"b": 1, "a": 1, "c": 1}, {"a": 0.3, "b": 0.1 + 0.2, "c": 0.3}) == {
        "a": (1, 1),
        "b": (1, 1),
        "c": (0, 0.9),
    }


def test_a_lab_without_a_mark_gets_the_remaining_free_days():
    assert spent({"a": 2, "b": 1}, {"b": 6.0}) == {"a": (1, 0.9), "b": (1, 1)}
    assert spent({"a": 2, "b": 1}, {"a": 9.0, "b": 6.0}) == {"a": (2, 1), "b": (0, 0.9)}


def test_no_free_day_is_spent_on_lateness_without_cost_or_lost_work():
    free = {"labs": TERM["labs"] | {"b": {"due": "2026-10-16 12:00", "late": {}}}}
    found = spent({"a": 10, "b": 3, "c": 1, "never": 0}, dict.fromkeys("abc", 10.0), **free)
    assert found == {"a": (0, 0), "b": (0, 1), "c": (1, 1), "never": (0, 1)}


def test_an_extension_moves_the_due_date():
    file = ClassRules.model_validate(
        TERM | {"extensions": [{"who": "ana", "lab": "a", "due": "2026-10-03 12:00"}]}
    )
    times = {"a": DUE + timedelta(2)}
    days = [lateness_of(file, who, times, {})["a"].days for who in ("ana", "ben")]
    assert days == [1, 2]


def test_no_way_to_spend_the_free_days_saves_more(seeds):
    """For many classes, compared with all other ways. Also tests the rule for equal ways."""
    chance, better = random.Random(seeds[0]), 0
    for _ in range(400):
        labs = "abcd"[: chance.randint(1, 4)]
        rules = {lab: _drawn_lab(chance, 7 * week) for week, lab in enumerate(labs)}
        budget = chance.randint(0, 6)
        file = ClassRules.model_validate({"late": {"free_days": budget}, "labs": rules})
        late = {lab: chance.choice([0, 1, 1, 2, 3, 4, 6]) for lab in labs}
        earned = {lab: chance.choice([0, 1.5, 4, 4, 10]) for lab in labs if chance.random() < 0.9}
        times = {lab: file.deadline(lab, "ana").after(Period(late[lab])) for lab in labs}
        found = lateness_of(file, "ana", times, earned)

        def worth(way, rules=rules, late=late, earned=earned):
            kept = [
                _kept(rules[lab]["late"], late[lab], k) for lab, k in zip(rules, way, strict=True)
            ]
            points = [Fraction(str(earned.get(lab, 0))) for lab in rules]
            return (
                sum(p * k for p, k in zip(points, kept, strict=True)),
                sum(kept),
                -sum(way),
                way,
                kept,
            )

        ways = itertools.product(*(range(late[lab] + 1) for lab in labs))
        best = max(worth(way) for way in ways if sum(way) <= budget)
        assert tuple(one.free for one in found.values()) == best[3], (file, late, earned)
        assert [one.kept for one in found.values()] == pytest.approx([float(k) for k in best[4]])
        better += best[0] > worth(_first_come(late, budget))[0]
    assert better > 50  # than to spend them in the order of the due dates


def _drawn_lab(chance, days):
    late = {
        "per_day": chance.choice(["0%", "5%", "10%", "25%", "50%", "100%"]),
        "floor": chance.choice(["0%", "0%", "40%", "75%"]),
        "last_day": chance.choice([None, 2, 5]),
    }
    return {"due": f"{DUE + timedelta(days):%Y-%m-%d %H:%M}", "late": late}


def _kept(policy, days, free):
    if policy["last_day"] is not None and days > policy["last_day"]:
        return Fraction(0)
    per_day, floor = (Fraction(int(policy[key][:-1]), 100) for key in ("per_day", "floor"))
    return max(1 - per_day * (days - free), floor) if days > free else Fraction(1)


def _first_come(late, left):
    way = []
    for days in late.values():
        way.append(min(days, left))
        left -= way[-1]
    return tuple(way)


def test_an_unknown_time_counts_as_in_time_and_says_so():
    file = ClassRules.model_validate(
        {"late": {"per_day": 1}, "labs": {"lab": {"due": "2026-10-02"}}}
    )
    assert lateness_of(file, "ana", {"lab": None}, {}) == {"lab": Lateness(known=False)}


@pytest.mark.parametrize(
    ("lateness", "said"),
    [
        (Lateness(), None),
        (Lateness(1, kept=0.9), "Handed in 1 day late: 90 % of 6 points stay."),
        (Lateness(3, 1, 0.8), "Handed in 3 days late, 1 of them free: 80 % of 6 points stay."),
        (Lateness(2, 2), "Handed in 2 days late; your free days cover it."),
        (Lateness(1, 1), "Handed in 1 day late; a free day covers it."),
        (Lateness(2), "Handed in 2 days late, at no cost."),
        (Lateness(9, kept=0), "Handed in 9 days late, so nothing counts."),
        (Lateness(known=False), "The time of the hand-in is not known."),
    ],
)
def test_lateness_is_stated_in_words(lateness, said):
    sentences = list(counted_sentences(count(LabRules(), (FOUR, SIX), lateness)))
    assert sentences[1:] == ([said] if said else [])
