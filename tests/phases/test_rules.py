"""Every sentence of a question is a rule that a check tests, or is listed as no rule."""

import pytest

from tests.phases.bank import BANKS
from tests.phases.rules import introduction, no_rules, questions, quoted, sentences, unquoted

EXERCISES = [
    pytest.param(bank.phase, exercise, id=f"{number} {exercise}")
    for number, bank in BANKS.items()
    for exercise in questions(bank.phase)
]
# Lab -> rules in its introduction, which apply to all exercises of the lab.
FOR_ALL = {
    "01": (
        "Parts of an exercise earn their points separately",
        "code that hides it",
    ),
    "02": (
        "Your answers may not use `torch.autograd` or `torch.func`",
        "or the functions that torch itself calls on the way back",
        "sizes of 1",
        "empty batches",
        "transposed, sliced and expanded tensors",
        "the floating-point tensors of a call are all float32 or all float64",
        "Your functions may not change the tensors that they get",
        "it is right only at the very top of a graph",
        "code that hides what it uses",
    ),
    "03": (
        "*names and shapes are part of the answer*",
        "lets no gradient through",
        "transposed, sliced or expanded",
        "of size 1",
        "or empty",
        "your code may not change them",
    ),
    "05": (
        "reading or writing beside a row",
        "your kernel must also *compile* for a GPU",
    ),
    "08": ("No function may change its arguments",),
}


@pytest.mark.parametrize(("phase", "exercise"), EXERCISES)
def test_every_sentence_is_quoted(phase, exercise):
    """test_banks.py tests that wrong answers lose points, and right ones none.

    The build checks the quotes of the files beside the checks.
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
