"""Answers as learners write them: what the checks and the visible cells make of each.

Each answer is judged on one seed that is drawn anew: what decides may not depend on it.
"""

import warnings
from random import Random

import pytest

from grader.judging.catalogue import load_checks
from grader.phase_paths import phases
from grader.proof.selftest import LabCode, stops, unseen
from tests.phases import bank_00, bank_01, bank_02, bank_03, bank_03b, bank_04, bank_05, bank_07

# By the number of the lab, with a letter behind it for a second bank.
BANKS = {
    "00": bank_00.BANK,
    "01": bank_01.BANK,
    "02": bank_02.BANK,
    "03": bank_03.BANK,
    "03b": bank_03b.BANK,
    "04": bank_04.BANK,
    "05": bank_05.BANK,
    "07": bank_07.BANK,
}
PHASES = {phase.name[:2]: phase for phase in phases() if phase.lab.exists()}
EXERCISES = [
    pytest.param(number, exercise, id=f"{PHASES[number[:2]].name}: {number} {exercise}")
    for number, bank in BANKS.items()
    for exercise in dict.fromkeys(answer.exercise for answer in bank.answers)
]


@pytest.fixture(autouse=True)
def _quiet():
    """A wrong answer may well be warned of."""
    with warnings.catch_warnings(action="ignore"):
        yield


# Answers of lab 05 launch kernels, and one exercise of lab 07 trains: of each exercise so many are
# judged, drawn by the run's seed.
SAMPLES = {"05": 10, "train_minigpt": 2}


def of(number, exercise):
    return [answer for answer in BANKS[number].answers if answer.exercise == exercise]


@pytest.mark.slow(12)
@pytest.mark.parametrize(("number", "exercise"), EXERCISES)
def test_the_right_ones_earn_all_points_and_the_wrong_ones_do_not(number, exercise, seeds, full):
    bank, answers = BANKS[number], of(number, exercise)
    most = SAMPLES.get(exercise, SAMPLES.get(number, len(answers)))
    if most < len(answers) and not full:
        answers = Random(f"{seeds[-1]} {exercise}").sample(answers, most)
    for answer in answers:
        complaint = f"{answer.name}, seed {seeds[-1]}"
        assert bank.earns_everything(answer, seeds[-1]) == answer.right, complaint


@pytest.mark.slow(6)
@pytest.mark.parametrize("number", BANKS)
def test_visible_cells_let_right_answers_pass_and_few_of_the_wrong_ones(number):
    bank = BANKS[number]
    said = {a: stops(bank.lab, a.exercise, a.cell) for a in bank.answers}
    assert {(a.exercise, a.name): why for a, why in said.items() if a.right and why} == {}
    wrong = [why for a, why in said.items() if not a.right]
    assert sum(not why for why in wrong) <= 0.4 * len(wrong)


@pytest.mark.slow(6)
@pytest.mark.parametrize("number", sorted({number[:2] for number in BANKS}))
def test_at_most_two_misconceptions_in_five_pass_all_visible_cells(number):
    phase = PHASES[number]
    lab = LabCode.read(phase.lab)
    for check in load_checks(phase.folder).values():
        assert stops(lab, check.name, lab.solutions[check.name]) == ""
        for right in check.alternates:
            cell = right.cell(check.name, lab.solutions[check.name])
            assert stops(lab, check.name, cell) == "", right.name
        assert len(unseen(check, lab)) <= 0.4 * len(check.misconceptions), check.name
