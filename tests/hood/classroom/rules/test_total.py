"""The total of a term: dropped labs, included labs, missing marks, and its sentences."""

import itertools
import random
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from hood import UserError
from hood.classroom.rules.counting import Counted, Lateness
from hood.classroom.rules.reading import FILE, read_course_file, worths
from hood.classroom.rules.schema import ClassRules, TotalPolicy
from hood.classroom.rules.total import LabWork, Standing, lowest, total_of, weights_of, worth_of
from hood.classroom.rules.total_words import term_sentences, total_sentences
from tests.hood.classroom.rules.book import make_book

DUE = datetime(2026, 10, 2, 12, tzinfo=UTC)
AFTER = DUE + timedelta(days=1)
HALF = Counted((), Lateness(), 5.0, 10.0)
ALL = Counted((), Lateness(), 10.0, 10.0)


def test_dropping_gives_the_highest_mean_by_brute_force(seeds):
    chance = random.Random(seeds[0])
    for _ in range(400):
        size = chance.randint(1, 7)
        parts = [
            (Fraction(chance.choice([1, 1, 2, 3, 5, 8, 40])), Fraction(chance.randint(0, 12), 10))
            for _ in range(size)
        ]
        number = chance.randint(0, size + 1)
        dropped = lowest(parts, number)
        assert len(dropped) == min(number, size - 1)

        def mean(kept):
            return sum(w * s for w, s in kept) / sum(w for w, _ in kept)

        best = max(
            mean(kept) for kept in itertools.combinations(parts, size - min(number, size - 1))
        )
        assert mean([part for place, part in enumerate(parts) if place not in dropped]) == best


def test_with_weights_it_may_not_be_the_lab_with_the_lowest_share():
    light, heavy, full = (Fraction(1), Fraction(0)), (Fraction(10), Fraction(1, 10)), (10, 1)
    assert lowest([light, heavy, full], 1) == {1}  # 10 of 11 are more than 11 of 20


def total(work, now=AFTER, **policy):
    rules = TotalPolicy.model_validate(policy)
    return total_of(rules, dict.fromkeys(work, Fraction(1, len(work))), work, now)


@pytest.mark.parametrize(
    ("work", "now", "standing", "points", "is_final"),
    [
        (LabWork(HALF, True, DUE), AFTER, Standing.COUNTED, 75, True),
        (LabWork(None, False, DUE), DUE, Standing.NOT_DUE, 100, False),
        (LabWork(None, False, DUE), AFTER, Standing.MISSING, 50, True),
        (LabWork(None, False, DUE, AFTER), AFTER, Standing.MISSING_YET, 50, False),
        (LabWork(None, False, DUE, DUE), AFTER, Standing.MISSING, 50, True),
        (LabWork(None, False, DUE, None, False), AFTER, Standing.NOT_COLLECTED, 100, False),
        (LabWork(None, False, DUE, None, False), DUE, Standing.NOT_DUE, 100, False),
        (LabWork(None, False, None), AFTER, Standing.NO_DUE_DATE, 100, False),
        (LabWork(None, True, DUE), AFTER, Standing.NOT_GRADED, 100, False),
        (
            LabWork(Counted((), Lateness(), 5, 10, waiting=2), True, DUE),
            *(AFTER, Standing.NOT_MARKED, 100, False),
        ),
        (LabWork(Counted((), Lateness(), 0, 0), True, DUE), AFTER, Standing.NOT_ASKED, 100, True),
        (LabWork(Counted((), Lateness(9, kept=0), 5, 10), True), AFTER, Standing.COUNTED, 50, True),
        (LabWork(Counted((), Lateness(), 14, 10), True), AFTER, Standing.COUNTED, 100, True),
    ],
)
def test_a_lab_has_a_state(work, now, standing, points, is_final):
    """Together with a lab with full points and the same weight."""
    found = total({"full": LabWork(ALL, True), "other": work}, now)
    assert (found.labs[1].standing, found.rounded) == (standing, points)
    assert found.is_final is is_final


def test_a_bonus_makes_up_for_another_lab_and_no_total_is_above_its_maximum():
    more = LabWork(Counted((), Lateness(), 12.0, 10.0), True)
    assert total({"a": more, "b": LabWork(HALF, True)}).rounded == 85
    assert total({"a": more, "b": LabWork(ALL, True)}, out_of=20).rounded == 20


@pytest.mark.parametrize(
    ("reached", "decimals", "shown"),
    [(1 / 3, 0, 33), (1 / 3, 2, 33.33), (0.8145, 1, 81.5), (0.125, 0, 13), (0.0005, 1, 0.1)],
)
def test_the_total_is_rounded_once_and_a_half_is_rounded_up(reached, decimals, shown):
    work = LabWork(Counted((), Lateness(), reached, 1.0), True)
    assert total({"a": work}, decimals=decimals).rounded == shown


def test_before_the_first_lab_the_total_is_empty():
    found = total({"a": LabWork(None, False, DUE)}, DUE)
    assert (found.rounded, found.is_final) == (None, False)
    assert list(term_sentences(found)) == [
        "Total of the term so far: nothing yet.",
        "Not in the total yet: `a` (not due yet).",
    ]
    assert list(term_sentences(total({"a": LabWork(HALF, True)}))) == [
        "Total of the term: 50 of 100."
    ]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_book(tmp_path_factory.mktemp("total") / "course")


def read(course, text):
    (course.root / FILE).write_text(text)
    return read_course_file(course.root)


def said(course, text):
    file = read(course, text)
    return list(total_sentences(file, weights_of(file, worths(course.root, file))))


def test_the_rules_are_described_in_sentences(course):
    assert said(course, "labs: {one: {}}") == []
    assert said(
        course, "labs: {one: {drop: [third]}, two: {}, three: {points: {words: 7}}}\ntotal: {}"
    ) == [
        "The total is out of 100. Only the total itself is rounded, to 1 decimal (a half is "
        "rounded up).",
        "Each lab has its points as its weight: 01_one 28.85 %, 02_two 38.46 %, 03_three 32.69 %. "
        "A lab's part of the total is its weight times the share of its points that count.",
        "A lab that is not handed in counts 0 after its due date.",
        "A bonus can raise a lab above its maximum and make up for points lost in another lab; "
        "the total is at most 100.",
    ]
    weighed = said(
        course,
        "labs: {one: {}, two: {}, three: {}}\n"
        "total: {weights: {01: 20%, two: 30%, 03_three: 0}, out_of: 30, decimals: 0, "
        "drop_lowest: 1}",
    )
    assert weighed[:3] == [
        "The total is out of 30. Only the total itself is rounded, to a whole number (a half is "
        "rounded up).",
        "Each lab has a weight: 01_one 40 %, 02_two 60 %. A lab's part of the total is its "
        "weight times the share of its points that count.",
        "One lab is dropped for each learner, so that the total is highest.",
    ]


@pytest.mark.parametrize(
    ("rules", "wrong"),
    [
        ("{weights: {one: 2}}", "course.yml:2: total.weights: 02_two has no weight: add one"),
        ("{weights: {one: 2, two: x}}", "weights.02_two: expected a weight such as 20% or 2"),
        ("{weights: {one: -1, two: 1}}", "expected a weight such as 20% or 2, got '-1'"),
        ("{weights: {one: nan, two: 1}}", "expected a weight such as 20% or 2, got 'nan'"),
        ("{weights: {one: 0, two: 0}}", "total: no lab has a weight above 0"),
        ("{weights: {one: 1, two: 1, three: 1}}", "no lab '03_three' under `labs`"),
        ("{drop_lowest: 2}", "total.drop_lowest: 2 of 2 labs would be dropped"),
        ("{decimals: 3}", "total.decimals: input should be less than or equal to 2, got '3'"),
        ("{out_of: 0}", "total.out_of: input should be greater than 0, got '0'"),
        ("{weight: {}}", "total.weight: no such key; expected one of weights, drop_lowest"),
    ],
)
def test_an_error_in_the_rules_is_reported(course, rules, wrong):
    with pytest.raises(UserError, match=re.escape(wrong)):
        read(course, f"labs: {{one: {{}}, two: {{}}}}\ntotal: {rules}")


def test_a_lab_worth_nothing_cannot_have_a_weight(course):
    nothing = "labs: {one: {}, two: {drop: [fourth, fifth, because]}}\n"
    with pytest.raises(UserError, match="02_two counts 0 points, so its weight must be 0"):
        read(course, nothing + "total: {weights: {one: 1, two: 1}}")
    assert read(course, nothing + "total: {weights: {one: 1, two: 0}}").total.weights
    assert (
        "Each lab has its points as its weight: 01_one 100 %."
        in said(course, nothing + "total: {}")[1]
    )


def test_a_labs_points_in_the_total_are_its_counted_points():
    rules = ClassRules.model_validate(
        {"labs": {"a": {"drop": "x", "bonus": "y", "points": {"z": 3, "none": 5}}}}
    ).labs["a"]
    assert worth_of(rules, {"x": 1.0, "y": 2.0, "z": 4.0, "none": 0.0, "other": 6.0}) == 9
