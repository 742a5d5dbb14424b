"""Redundant answers, in banks of a few answers with given results."""

from types import SimpleNamespace

import pytest

from tests.phases import redundant
from tests.phases.bank import BANKS, Answer
from tests.phases.redundant import Exercise, Result, form

TWICE = "def twice(x):\n    return 2 * x\n"


def exercise(answers, results=None, beside=(), mistakes=()):
    """The answers to an exercise of lab 01, with others in place of its own."""
    bank = SimpleNamespace(
        phase=BANKS["01"].phase,
        lab=SimpleNamespace(solutions={"broadcast": TWICE}),
        checks={"broadcast": SimpleNamespace(alternates=[], misconceptions=mistakes)},
        of=lambda name: answers,
    )
    given = {name: [Result(frozenset(cases), frozenset(names))] for name, (cases, names) in
             (results or {}).items()}  # fmt: skip
    others = [Result(frozenset(cases), frozenset(names)) for cases, names in beside]
    return Exercise(bank, "broadcast", given, [others])


def wrong(name, **more):
    return Answer("broadcast", name, False, "", **more)


def right(name, cell, **more):
    return Answer("broadcast", name, True, cell, length=len(cell), **more)


@pytest.mark.parametrize(
    ("results", "beside", "gone"),
    [
        ({"one": ("a", ""), "both": ("ab", "")}, (), set()),  # only `both` fails b
        ({"one": ("a", ""), "both": ("ab", "")}, [("bc", "m")], {"both"}),
        ({"one": ("a", ""), "same": ("a", "")}, (), {"one"}),  # the first by name of two equal ones
        ({"one": ("ab", ""), "two": ("bc", "")}, [("abc", "m")], set()),
        ({"one": ("abc", "")}, [("a", "m"), ("bc", "n")], {"one"}),
        ({"one": ("abc", "k")}, [("a", "m"), ("bc", "n")], set()),  # a separate name
        ({"nothing": ("", "")}, (), {"nothing"}),
    ],
)
def test_a_wrong_answer_is_redundant_if_others_fail_the_same_cases(results, beside, gone):
    given = {name: (cases, names and {names}) for name, (cases, names) in results.items()}
    others = [(cases, {name}) for cases, name in beside]
    answers = exercise([wrong(name) for name in results], given, others)
    assert {answer.name for answer in answers.redundant()} == gone


def test_differences_between_draws_count():
    some = [wrong("one"), wrong("two")]
    answers = exercise(some, {"one": ("a", ()), "two": ("a", ())})
    answers._results["two"].append(Result(frozenset("b"), frozenset()))
    answers._results["one"].append(Result(frozenset("a"), frozenset()))
    answers._beside.append([])
    assert answers.redundant() == []


def test_an_answer_stays_if_it_slipped_must_be_named_or_has_a_unique_quote():
    sentence = "It returns three tuples"
    stay = [wrong("a", slipped=True), wrong("b", named="m"), wrong("c", quotes=(sentence,))]
    answers = exercise(stay, {answer.name: ("xyz", ()) for answer in stay}, [("x", {"m"})])
    answers._quoted_beside = frozenset()
    assert answers.redundant() == []
    why = [answers.shows(answer, stay)[0] for answer in stay]
    assert why[:2] == ["it slipped through", "it must be named “m”"]
    assert sentence in why[2]


def test_the_code_of_a_misconception_is_redundant_even_if_it_slipped():
    mistake = SimpleNamespace(cell=lambda name, solution: "def twice(x):\n    return x * x")
    same = 'def twice(x: Tensor) -> Tensor:\n    """Twice."""\n    return x * x'
    answers = [Answer("broadcast", "same", False, same, slipped=True)]
    assert exercise(answers, {"same": ("a", ())}, mistakes=[mistake]).redundant() == answers


def test_a_right_answer_is_redundant_if_its_form_exists_and_nothing_edits_it():
    loop = right("loop", "def twice(x):\n    while True:\n        return sum([x, x])\n")
    longer = right("longer", loop.cell.replace("twice", "two_times").replace("sum", "sum"))
    renamed = right("renamed", TWICE.replace("x", "value"))
    some = [loop, longer, renamed]
    assert exercise(some).redundant() == [longer, renamed]
    edits = wrong("edits", of="renamed", slipped=True)
    answers = exercise([*some, edits], {"edits": ("a", ())})
    assert answers.redundant() == [longer]


def test_a_cells_own_names_are_no_form():
    assert form(TWICE) == form(TWICE.replace("twice", "double").replace("x", "tensor"))
    assert "recursion" in form("def f(n):\n    return n and f(n - 1)")
    assert ".stack" in form("torch.stack([x])")
    assert ".kept" not in form(
        "class A:\n    def f(self):\n        self.kept = 1\n        self.kept"
    )


@pytest.mark.slow(2)
def test_the_command_prints_what_each_answer_shows(capsys):
    assert redundant.main(["01", "--exercise", "bytes_of"]) == 0
    said = capsys.readouterr().out
    assert "right “NumPy ints” shows: it slipped through" in said
    assert "fails: " in said
    assert said.endswith("0 show nothing alone\n")
