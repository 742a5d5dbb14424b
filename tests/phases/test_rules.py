"""Every sentence of a question is a rule that a check asks, or is said to be none."""

import pytest

from tests.phases import (
    rules_00,
    rules_01,
    rules_02,
    rules_03,
    rules_04,
    rules_05,
    rules_06,
    rules_07,
    rules_08,
    rules_09,
    rules_10,
)
from tests.phases.rules import Rules, introduction, named, questions, sentences, unquoted
from tests.phases.test_banks import BANKS, PHASES, of

LABS = {
    "00": rules_00,
    "01": rules_01,
    "02": rules_02,
    "03": rules_03,
    "04": rules_04,
    "05": rules_05,
    "06": rules_06,
    "07": rules_07,
    "08": rules_08,
    "09": rules_09,
    "10": rules_10,
}
EXERCISES = [
    pytest.param(number, exercise, rules, id=f"{number} {exercise}")
    for number, lab in LABS.items()
    for exercise, rules in lab.RULES.items()
]


def answers(number, exercise):
    return [answer for key in BANKS if key[:2] == number for answer in of(key, exercise)]


def wrong_answers(number, exercise):
    wrong = {a.name for a in answers(number, exercise) if not a.right}
    return wrong | {m.name for m in BANKS[number].checks[exercise].misconceptions}


@pytest.mark.parametrize("number", LABS)
def test_every_exercise_has_its_rules(number):
    assert list(questions(PHASES[number])) == list(LABS[number].RULES)


@pytest.mark.parametrize(("number", "exercise", "rules"), EXERCISES)
def test_every_sentence_is_quoted_as_it_stands(number, exercise, rules):
    question = questions(PHASES[number])[exercise]
    assert [q for q in rules.quotations() if q not in question] == []
    assert unquoted(question, rules) == []


@pytest.mark.parametrize(("number", "exercise", "rules"), EXERCISES)
def test_every_rule_has_answers_that_the_check_is_proven_on(number, exercise, rules):
    """That the wrong ones lose points, and the right ones none, is what test_banks.py tests."""
    right = {a.name for a in answers(number, exercise) if a.right}
    right |= {a.name for a in BANKS[number].checks[exercise].alternates}
    wrong = wrong_answers(number, exercise)
    assert [name for name in named(rules.asked) if name not in wrong] == []
    assert [name for name in named(rules.free) if name not in right] == []
    assert all((*rules.asked.values(), *rules.free.values()))


@pytest.mark.parametrize("number", ["01", "02", "03", "05", "08"])
def test_rules_of_all_exercises_stand_in_the_introduction(number):
    said = introduction(PHASES[number])
    assert [rule for rule in LABS[number].FOR_ALL if rule not in said] == []
    for broken in LABS[number].FOR_ALL.values():
        for exercise, name in broken.items():
            assert name in wrong_answers(number, exercise), exercise


def test_a_sentence_that_nobody_quotes_is_found():
    question = "Write `f(x)`: the double. It may be negative; an int stays an int.\nNo loop."
    rules = Rules({"the double": "squared"}, told=("an int stays",))
    assert len(sentences(question)) == 3
    assert unquoted(question, rules) == ["No loop."]
    assert unquoted(question, Rules({}, told=("No loop", "Write"))) == [sentences(question)[1]]
