"""Answers as learners write them: what the checks and the visible cells make of each.

Each answer is judged on one seed that is drawn anew: what decides may not depend on it.
"""

import warnings

import pytest

from hood.authoring.proof.selftest import drawn, stops, unseen
from tests.phases import dear, redundant, shown_words
from tests.phases.bank import BANKS, points_at_it

# The share of a lab's wrong answers whose report names the mistake or points at it, at least.
POINTED_AT = 0.75
# The share of an exercise's misconceptions that pass all that a learner sees, at most.
UNSEEN = 0.4


def of_lab(number, *others, marks=()):
    """The parameters of a test that one worker runs together with all others of its lab."""
    words = " ".join([number, *others])
    return pytest.param(number, *others, id=f"{BANKS[number].phase.name}: {words}", marks=marks)


def of_exercises(dear_ones=()):
    """The parameters of a test of every exercise that has a bank, with marks for dear ones."""
    return [
        of_lab(number, exercise, marks=dear_ones if exercise in dear.EXERCISES else ())
        for number, bank in BANKS.items()
        for exercise in bank.exercises
    ]


@pytest.fixture(autouse=True)
def _quiet():
    """A wrong answer may well be warned of."""
    with warnings.catch_warnings(action="ignore"):
        yield


def a_few_of_each(answers, seed, full):
    """Of dear exercises a few right answers and a few wrong ones; of the others all."""
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
def test_the_right_ones_earn_all_points_and_the_wrong_ones_do_not(number, exercise, seeds, full):
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
def test_every_answer_shows_something_alone(number, exercise):
    """It is asked on one seed, always: what an answer shows in some draws would come and go."""
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
