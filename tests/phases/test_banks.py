"""The checks and the visible cells on answers as learners write them.

Each answer is judged on one new seed, so verdicts must not depend on the seed.
"""

import pytest

from hood.authoring.proof.quiet import quiet
from hood.authoring.proof.selftest import drawn, stops, unseen
from tests.phases import dear, redundant, shown_words
from tests.phases.bank import BANKS, points_at_it

# In a lab, the reports on at least this share of wrong answers name the mistake or point at it.
POINTED_AT = 0.75
# At most this share of an exercise's misconceptions passes everything that a learner sees.
UNSEEN = 0.4


def of_lab(number, *others, marks=()):
    """The parameters of a test. One worker runs all tests of a lab."""
    words = " ".join([number, *others])
    return pytest.param(number, *others, id=f"{BANKS[number].phase.name}: {words}", marks=marks)


def of_exercises(dear_ones=()):
    """The parameters of a test of every exercise with a bank; slow exercises get marks."""
    return [
        of_lab(number, exercise, marks=dear_ones if exercise in dear.EXERCISES else ())
        for number, bank in BANKS.items()
        for exercise in bank.exercises
    ]


@pytest.fixture(autouse=True)
def _quiet():
    """Wrong answers may cause warnings."""
    with quiet():
        yield


def a_few_of_each(answers, seed, full):
    """A few right and wrong answers of exercises that take long; all answers of the others."""
    kinds = {}
    for answer in answers:
        kinds.setdefault((answer.exercise, answer.right), []).append(answer)
    return [
        answer
        for (exercise, right), alike in kinds.items()
        for answer in drawn(alike, dear.few(exercise, full), f"{seed} {exercise} {right}")
    ]


@pytest.mark.slow(12)
@pytest.mark.parametrize(("number", "exercise"), of_exercises())
def test_right_answers_earn_all_points_and_wrong_ones_do_not(number, exercise, seeds, full):
    bank = BANKS[number]
    for answer in a_few_of_each(bank.of(exercise), seeds[-1], full):
        complaint = f"{answer.name}, seed {seeds[-1]}"
        assert bank.earns_everything(answer, seeds[-1]) == answer.right, complaint
        if answer.named:
            assert answer.named in bank.report(answer, seeds[-1]).misconceptions, complaint


@pytest.mark.full
@pytest.mark.parametrize("number", [of_lab(number) for number in BANKS])
def test_reports_name_the_mistakes_of_wrong_answers_or_point_at_them(number, seeds):
    bank = BANKS[number]
    wrong = [answer for answer in bank.answers if not answer.right]
    told = [bank.report(answer, seeds[-1], examples=True) for answer in wrong]
    for answer, verdict in zip(wrong, told, strict=True):
        check = bank.checks[answer.exercise]
        assert shown_words.faults(check, bank.thing(answer), verdict) == [], answer.name
    assert sum(map(points_at_it, told)) >= POINTED_AT * len(told)


@pytest.mark.of_labs
@pytest.mark.slow(6)
@pytest.mark.parametrize(("number", "exercise"), of_exercises([pytest.mark.full]))
def test_no_answer_is_redundant(number, exercise):
    """The seed is fixed, because what an answer shows may depend on the draw."""
    answers = redundant.exercise(BANKS[number], exercise, [redundant.SEED])
    assert [answer.name for answer in answers.redundant()] == []


@pytest.mark.of_labs
@pytest.mark.slow(6)
@pytest.mark.parametrize("number", [of_lab(number) for number in BANKS])
def test_visible_cells_let_right_answers_pass(number, seeds, full):
    bank = BANKS[number]
    right = [answer for answer in bank.answers if answer.right]
    answers = a_few_of_each(right, seeds[-1], full)
    refusals = {(a.exercise, a.name): stops(bank.lab, a.exercise, a.cell) for a in answers}
    assert {answer: why for answer, why in refusals.items() if why} == {}


@pytest.mark.of_labs
@pytest.mark.slow(6)
@pytest.mark.parametrize("number", [of_lab(number) for number in BANKS])
def test_at_most_two_misconceptions_in_five_pass_all_visible_cells(number, seeds, full):
    bank = BANKS[number]
    lab = bank.lab
    for check in bank.checks.values():
        some = check.name in dear.EXERCISES and not full
        assert stops(lab, check.name, lab.solutions[check.name]) == ""
        for right in drawn(check.alternates, some, f"{seeds[-1]} {check.name}"):
            cell = right.cell(check.name, lab.solutions[check.name])
            assert stops(lab, check.name, cell) == "", right.name
        if not some:
            assert len(unseen(check, lab)) <= UNSEEN * len(check.misconceptions), check.name
