"""Every sentence of a question is a rule that a check asks, or is said to be none."""

import pytest

from tests.phases.bank import BANKS
from tests.phases.rules import introduction, no_rules, questions, quoted, sentences, unquoted

EXERCISES = [
    pytest.param(bank.phase, exercise, id=f"{number} {exercise}")
    for number, bank in BANKS.items()
    for exercise in questions(bank.phase)
]
# By lab, rules in its introduction, which hold for all of its exercises.
FOR_ALL = {
    "01": (
        "Parts of an exercise earn their points separately",
        "code that hides it",
    ),
    "02": (
        "your answers use neither `torch.autograd` nor `torch.func`",
        "nor the functions that torch itself calls on the way back",
        "sizes of 1",
        "batches of nothing",
        "transposed, sliced and expanded tensors",
        "all floating-point tensors of a call are float32, or all are float64",
        "None of your functions may change a tensor that it was given",
        "is right only at the very top of a graph",
        "code that hides it",
    ),
    "03": (
        "*names and shapes are part of the answer*",
        "lets no gradient through",
        "transposed, sliced or expanded",
        "of size 1",
        "or empty",
        "nothing of yours may change it",
    ),
    "05": (
        "whoever reads beside a row",
        "whoever writes there",
        "your kernel also *compiles* for one",
    ),
    "08": ("No function changes what it is given",),
}


@pytest.mark.parametrize(("phase", "exercise"), EXERCISES)
def test_every_sentence_is_quoted(phase, exercise):
    """That the wrong answers lose points, and the right ones none, is what test_banks.py tests.

    That what the files beside the checks quote is there, the build sees.
    """
    question = questions(phase)[exercise]
    quotations = [*no_rules(phase, exercise), *quoted(phase, exercise)]
    assert unquoted(question, quotations) == []


@pytest.mark.parametrize("number", FOR_ALL)
def test_rules_of_all_exercises_stand_in_the_introduction_and_are_broken(number):
    phase = BANKS[number].phase
    said = introduction(phase)
    broken = set().union(*(quoted(phase, exercise) for exercise in questions(phase)))
    assert [rule for rule in FOR_ALL[number] if rule not in said or rule not in broken] == []


def test_a_sentence_that_nobody_quotes_is_found():
    question = "Write `f(x)`: the double. It may be negative; an int stays an int.\nNo loop."
    quotations = ("the double", "an int stays")
    assert len(sentences(question)) == 3
    assert unquoted(question, quotations) == ["No loop."]
    assert unquoted(question, ("No loop", "Write")) == [sentences(question)[1]]
