"""Answers as learners write them: what the checks and the visible cells make of each.

Each answer is judged on one seed that is drawn anew: what decides may not depend on it.
"""

import warnings

import pytest

from hood.authoring.proof.selftest import drawn, stops, unseen
from tests.phases import dear, shown_words
from tests.phases.bank import BANKS, points_at_it

# The share of a lab's wrong answers whose report names the mistake or points at it, at least.
POINTED_AT = 0.75
# The share that passes all that a learner sees, at most; of an exercise's misconceptions, too.
UNSEEN = 0.4
# The share that is told a misconception by its name, at least: a little less than was measured.
NAMED = {
    "00": 0.65,
    "01": 0.55,
    "02": 0.27,
    "03": 0.15,
    "04": 0.7,
    "05": 0.55,
    "06": 0.5,
    "07": 0.2,
    "08": 0.35,
    "09": 0.4,
    "10": 0.65,
}


def of_lab(number, *others):
    """The parameters of a test that one worker runs together with all others of its lab."""
    words = " ".join([number, *others])
    return pytest.param(number, *others, id=f"{BANKS[number].phase.name}: {words}")


EXERCISES = [
    of_lab(number, exercise) for number, bank in BANKS.items() for exercise in bank.exercises
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
@pytest.mark.parametrize(("number", "exercise"), EXERCISES)
def test_the_right_ones_earn_all_points_and_the_wrong_ones_do_not(number, exercise, seeds, full):
    bank = BANKS[number]
    for answer in a_few_of_each(bank.of(exercise), seeds[-1], full):
        complaint = f"{answer.name}, seed {seeds[-1]}"
        assert bank.earns_everything(answer, seeds[-1]) == answer.right, complaint


@pytest.mark.full
@pytest.mark.parametrize("number", [of_lab(number) for number in BANKS])
def test_reports_name_the_mistakes_of_wrong_answers_or_point_at_them(number, seeds):
    bank = BANKS[number]
    wrong = [answer for answer in bank.answers if not answer.right]
    told = [bank.report(answer, seeds[-1], examples=True) for answer in wrong]
    for answer, verdict in zip(wrong, told, strict=True):
        check = bank.checks[answer.exercise]
        assert shown_words.faults(check, bank.thing(answer), verdict) == [], answer.name
    assert sum(bool(verdict.misconceptions) for verdict in told) >= NAMED[number] * len(told)
    assert sum(map(points_at_it, told)) >= POINTED_AT * len(told)


# Wrong answers of banks, and the misconception that each is told.
TOLD = {
    ("02", "linear_vjp"): {
        "linear_vjp, turned round by .T": "matrices only, by `.T`",
        "linear_vjp, turned round by t()": "matrices only, by `t()`",
        "linear_vjp, bias before weight": "weight and bias swapped",
        "linear_vjp, means over rows": "weight and bias averaged",
        "linear_vjp, the mean over rows for the bias": "bias averaged",
        "linear_vjp, the bias summed over the first dimension": (
            "bias summed over the first dimension alone"
        ),
    },
    ("02", "layer_norm_vjp"): {
        "layer_norm_vjp, bias before weight": "weight and bias swapped",
        "layer_norm_vjp, means over rows": "means for sums",
    },
    ("02", "lm_head"): {
        "lm_head_gradients, the mean for the bias": "bias averaged, in the head",
    },
    ("02", "unbroadcast"): {"unbroadcast, means": "a mean where it was stretched"},
    ("07", "accumulate"): {
        "the mean of the means": "the mean of the means",
        "the mean of those means that are there": "the mean of the means, NaN left out",
    },
    ("07", "fit"): {
        "AdamW": "AdamW for SGD",
        "losses times the scale, in float32 too": "the scaled loss noted, whatever the dtype",
        "the scale is never divided out": "gradients still times the scale",
    },
}


@pytest.mark.slow(30)
@pytest.mark.parametrize(("number", "exercise"), [of_lab(*exercise) for exercise in TOLD])
def test_likely_mistakes_have_their_names(number, exercise, seeds):
    bank = BANKS[number]
    answers = {answer.name: answer for answer in bank.of(exercise)}
    for name, told in TOLD[number, exercise].items():
        assert told in bank.report(answers[name], seeds[-1]).misconceptions, name


@pytest.mark.of_labs
@pytest.mark.slow(6)
@pytest.mark.parametrize("number", [of_lab(number) for number in BANKS])
def test_visible_cells_let_right_answers_pass_and_few_of_the_wrong_ones(number, seeds, full):
    bank = BANKS[number]
    answers = a_few_of_each(bank.answers, seeds[-1], full)
    said = {a: stops(bank.lab, a.exercise, a.cell) for a in answers}
    assert {(a.exercise, a.name): why for a, why in said.items() if a.right and why} == {}
    counted = [a for a in said if not a.right and (full or a.exercise not in dear.EXERCISES)]
    assert sum(not said[a] for a in counted) <= UNSEEN * len(counted)


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
