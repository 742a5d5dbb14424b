import contextlib
import math
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

from hood.authoring.proof.selftest import LabCode, prove
from hood.judge.card import VerdictCard
from hood.judge.checks.exercise import ByHand, Case, Check, Place, case, not_run
from hood.judge.report import VerdictReport
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.judge import judge
from hood.judge.verdicts.subject import SubjectRaised
from hood.verdict import VERDICT_MIME, Cause, PartResult, Status, Verdict
from tests.hood.judge.candidates import alternate, misconception
from tests.hood.one_part import one_part
from utils.minigpt import MiniGPTConfig

scaled = Check(
    "scaled",
    parts={"matrices": 2, "refusals": 1},
    reads="Somewhere",
    by_hand=ByHand(
        "use no matmul",
        forbid_ops=frozenset({"aten.mm", "aten.clone"}),
        forbid_names=frozenset({"einsum"}),
    ),
)


@scaled.reference
def _(x, k):
    if k < 0:
        raise ValueError("negative")
    return x * k


@scaled.cases
def _(draw):
    for _ in range(2):
        yield case("matrices", draw.tensor(draw.shape(2)), draw.integer(2, 5))
    yield case("refusals", draw.tensor((2, 2)), -1, raises="ValueError")


@misconception(scaled, "added", "the factor was added.", earns=0)
def _(x, k):
    return x + k


@misconception(scaled, "never refuses", "negative factors were let through.", earns=2)
def _(x, k):
    return x * k


@alternate(scaled, "the other way round")
def _(x, k):
    assert_positive = k >= 0
    if not assert_positive:
        raise ValueError(k)
    return k * x


def test_answers_are_right_wrong_or_partly_right():
    assert judge(scaled, scaled.right, "s").status == "right"
    partly = judge(scaled, lambda x, k: x * k, "s")
    assert (partly.status, partly.earned) == ("partly", 2)
    assert partly.misconceptions == ["never refuses"]
    wrong = judge(scaled, lambda x, k: x + k, "s")
    assert (wrong.status, wrong.earned, wrong.misconceptions[0]) == ("wrong", 0, "added")


def test_an_unknown_mistake_is_described_and_not_named():
    verdict = judge(scaled, lambda x, k: (x * k).t(), "s")
    assert verdict.misconceptions == []
    assert "wrong shape" in verdict.parts[0].problem


def test_a_stub_is_not_attempted():
    def stub(x, k):
        raise NotImplementedError("write your answer here")

    verdict = judge(scaled, stub, "s")
    assert (verdict.status, verdict.earned) == ("not attempted", 0)
    assert "not attempted yet" in str(VerdictReport(verdict, "01"))


def test_in_place_damage_is_a_mistake():
    verdict = judge(scaled, lambda x, k: x.mul_(k), "s")
    assert verdict.earned == 0
    assert "the function changed its input `x`; change a copy" in verdict.parts[0].problem


@pytest.mark.parametrize(
    ("thing", "source", "words"),
    [
        (
            lambda x, k: torch.mm(x, torch.eye(x.shape[1])) * k,
            "",
            "torch's own `mm` ran in ",
        ),
        (lambda x, k: x.t().contiguous().t() * k, "", "`clone` (`contiguous` and"),
        (scaled.right, "def scaled(x, k):\n    return torch.einsum('ij', x) * k", "uses `einsum`"),
        (scaled.right, "from torch import einsum as scaled\n", "einsum"),
        (
            lambda x, k: x.clone() * k,
            "def scaled(x, k):\n    return torch.einsum('ij', x) * k",
            "uses `einsum`",
        ),
    ],
)
def test_the_rule_by_hand_is_enforced_with_a_friendly_message(thing, source, words):
    verdict = judge(scaled, thing, "s", source=LearnerSource([source]) if source else None)
    assert verdict.earned == 0
    assert words in verdict.parts[0].problem
    assert verdict.parts[0].cause is Cause.RULE_BROKEN
    report = " ".join(str(VerdictReport(verdict, "01")).split())
    assert report.count("use no matmul") == 1


def test_a_broken_rule_costs_only_the_function_that_broke_it():
    check = Check(
        "pair",
        parts={"f": 1, "g": 1},
        reads="r",
        by_hand=ByHand("write it out", forbid_names=frozenset({"sum"})),
    )
    check.reference({"f": lambda x: x + 1, "g": lambda x: x.sum()})
    check.cases(lambda draw: [case(name, draw.tensor((3,)), of=name) for name in "fg"])
    written = LearnerSource(["def f(x): return x + 1", "def g(x): return x.sum()"])
    verdict = judge(check, check.right, "s", source=written)
    assert [part.earned for part in verdict.parts] == [1, 0]
    assert "`g` uses `sum`" in verdict.parts[1].problem


@pytest.mark.parametrize(("parts", "earned"), [((), [0, 0]), (("large",), [1, 0])])
def test_a_broken_rule_costs_its_parts(parts, earned):
    rule = ByHand("write it out", forbid_names=frozenset({"sum"}), parts=frozenset(parts))
    check = Check("total", parts={"small": 1, "large": 1}, reads="r", by_hand=rule)
    check.reference(lambda x: x.sum())
    check.cases(lambda draw: [case(part, draw.tensor((3,))) for part in check.parts])
    written = LearnerSource(["def total(x): return x.sum()"])
    verdict = judge(check, check.right, "s", source=written)
    assert [part.earned for part in verdict.parts] == earned
    assert verdict.parts[1].cause is Cause.RULE_BROKEN


def test_a_rule_about_an_unknown_part_is_refused():
    rule = ByHand("write it out", parts=frozenset({"lagre"}))
    check = Check("total", parts={"large": 1}, reads="r", by_hand=rule)
    check.cases(lambda draw: [case("large", 1)])
    with pytest.raises(LookupError, match="names the part 'lagre', which the check does not have"):
        check.draw_cases("s")


def many(*wrong, parts=2):
    """A check with several parts, for functions that double numbers, right or wrong."""
    check = Check("doubled", parts={f"part {k}": 1 for k in range(parts)}, reads="r")
    check.reference(lambda x: 2 * x)
    check.cases(lambda draw: [
        case(f"part {k}", 10 * k + n) for k in range(parts) for n in range(1, 6)
    ])  # fmt: skip
    for name, thing in wrong:
        misconception(check, name, f"it was {name}.", earns=0)(thing)
    return check


def told(check, thing):
    """Part -> the named misconceptions, and whether a guess is offered."""
    return [(p.misconception, bool(p.hint)) for p in judge(check, thing, "s").parts]


def test_a_misconception_is_not_named_if_another_case_contradicts_it():
    """Each of these misconceptions was once named, because it explains the first part."""
    check = many(("squared", lambda x: x * x))
    right_elsewhere = lambda x: x * x if x < 10 else 2 * x  # noqa: E731
    assert told(check, right_elsewhere) == [("", False), ("", False)]
    wrong_in_another_way = lambda x: x * x if x < 10 else 0  # noqa: E731
    assert told(check, wrong_in_another_way) == [("", False), ("", False)]
    assert told(check, lambda x: x * x) == [("squared", False)] * 2


def test_a_second_mistake_in_another_part_hides_no_first_one():
    check = many(("odd ones squared", lambda x: x * x if x < 10 and x % 2 else 2 * x))
    both = lambda x: x * x if x < 10 and x % 2 else x if x > 13 else 2 * x  # noqa: E731
    assert told(check, both) == [("odd ones squared", False), ("", False)]


def test_one_case_of_several_is_no_evidence():
    check = many(("wrong at 3", lambda x: 0 if x == 3 else 2 * x))
    assert told(check, lambda x: 0 if x == 3 else 2 * x)[0] == ("wrong at 3", False)
    assert told(check, lambda x: 0 if x == 3 else x if x > 10 else 2 * x)[0] == ("", True)


def test_an_explanation_of_most_cases_is_offered_and_not_named():
    check = many(("incremented", lambda x: x + 3 if x in (1, 4) else 2 * x), parts=1)
    verdict = judge(check, lambda x: x + 3 if x in (1, 4) else 7 if x == 5 else 2 * x, "s")
    assert (verdict.misconceptions, verdict.explanations) == ([], {})
    report = str(VerdictReport(verdict, "01"))
    assert "behaves like “incremented”: it was incremented." in report
    assert "the number is not the expected one" in report
    assert told(check, lambda x: x + 3 if x in (1, 4) else 7 if x > 2 else 2 * x) == [("", False)]


def test_a_reason_is_stated_once():
    report = str(
        VerdictReport(judge(many(("squared", lambda x: x * x)), lambda x: x * x, "s"), "01")
    )
    assert report.count("it was squared.") == 1
    assert report.count("as above") == 1
    report = str(VerdictReport(judge(many(), lambda x: "text", "s"), "01"))
    assert report.count("expected an int, got a str") == 1
    assert report.count("as above") == 1


def test_no_guess_is_made_at_a_single_number():
    """The verdict once said “perhaps off by one”, and “perhaps scaled: 2 times too small”."""
    for thing in (lambda x: 2 * x - 1, lambda x: x):
        assert judge(many(), thing, "s").parts[0].problem == "the number is not the expected one"


def coarse():
    """One part compares the answer's size. The other tests only whether the answer is right."""
    check = Check("coarse", parts={"value": 1, "yes or no": 1}, reads="r")
    check.reference(lambda x: 2 * x)

    def is_right(subject):
        return subject(3) == 6

    check.cases(lambda draw: [case("value", 5), Case("yes or no", is_right)])
    misconception(check, "squared", "it was squared.", earns=0)(lambda x: x * x)
    misconception(check, "halved", "it was halved.", earns=0)(lambda x: x / 2)
    return check


def test_an_answer_that_fits_two_mistakes_names_neither():
    check = coarse()
    assert judge(check, lambda x: x * x, "s").misconceptions == ["squared"]
    assert judge(check, lambda x: x / 2, "s").misconceptions == ["halved"]
    verdict = judge(check, lambda x: x + 7, "s")
    assert (verdict.earned, verdict.misconceptions) == (0, [])


def test_a_refusal_in_other_words_counts_as_agreement():
    check = Check("refusing", parts={"p": 1}, reads="r")
    check.cases(lambda draw: [case("p", k, raises="IndexError") for k in (-1, -2)])

    def refusing(*numbers):
        def f(x):
            if x in numbers:
                raise IndexError(f"one of {len(numbers)}")
            return x

        return f

    check.reference(refusing(-1, -2))
    misconception(check, "none", "none is refused.", earns=0)(refusing())
    misconception(check, "only -1", "only -1 is refused.", earns=0)(refusing(-1))

    def learner(x):
        if x == -1:
            raise IndexError("words of my own")
        return x

    verdict = judge(check, learner, "s")
    assert verdict.misconceptions == ["only -1"]
    assert judge(check, lambda x: 0, "s").parts[0].problem.startswith("expected an IndexError, but")


def test_a_mistaken_refusal_in_other_words_is_the_same_mistake():
    def refusing(words):
        def thing(x):
            raise ValueError(f"{words} {x}")

        return thing

    check = Check("halves", parts={"all": 2}, reads="R")
    check.reference(lambda x: x / 2)
    check.cases(lambda draw: (case("all", x) for x in (1, 2, 3)))
    misconception(check, "refuses", "all is refused.", earns=0)(refusing("no halves of"))
    assert judge(check, refusing("not"), "s").misconceptions == ["refuses"]
    assert judge(check, lambda x: x / None, "s").misconceptions == []


def test_shared_storage_hides_no_mistake_in_cases_without_that_question():
    check = Check("halves", parts={"p": 2}, reads="r")
    check.reference(lambda x: {"left": x[:1], "right": x[1:]})
    check.cases(lambda draw: (case("p", torch.arange(n)) for n in (2.0, 5.0)))
    wrong = misconception(check, "exchanged", "left is right.", earns=0)
    wrong(lambda x: {"left": x[1:], "right": x[:1]})
    for thing in (
        lambda x: {"right": x[:1], "left": x[1:]},
        lambda x: {"left": x[1:].clone(), "right": x[:1]},
    ):
        assert judge(check, thing, "s").misconceptions == ["exchanged"]


def test_a_cases_visible_inputs_precede_its_problem():
    check = one_part("one", lambda x: x, lambda draw: [case("p", 1, shown="a small int")])
    assert (
        judge(check, lambda x: x + 1, "s")
        .parts[0]
        .problem.startswith("a small int: the number is not")
    )


def test_a_result_that_a_play_cannot_use_is_a_wrong_answer():
    check = one_part(
        "indexed", lambda: {"a": 1}, lambda draw: [Case("p", lambda subject: subject()["a"])]
    )
    said = {
        "expected a dict, got a tuple": lambda: (1,),
        "wrong keys: missing ['a'], not expected ['b']": lambda: {"b": 1},
        "expected a dict, got None (perhaps a missing `return`": lambda: None,
    }
    for words, thing in said.items():
        assert judge(check, thing, "s").parts[0].problem.startswith(words)


def test_a_case_puts_its_places_into_words():
    places = {"[0]": "the first number", "['late']": "something came late."}
    check = Check("placed", parts={"a": 1, "b": 1}, reads="r")
    check.reference(lambda: ([1.0, 2.0], {"late": []}))
    check.cases(lambda draw: [
        Case("a", lambda subject: subject()[0], places=places),
        Case("b", lambda subject: subject()[1], places=places),
    ])  # fmt: skip
    parts = judge(check, lambda: ([3.5, 2.0], {"late": ["x"]}), "s").parts
    assert parts[0].problem == "the first number: the number is not the expected one"
    assert parts[1].problem == "something came late."
    elsewhere = judge(check, lambda: ([1.0, 3.5], {"late": []}), "s").parts[0].problem
    assert elsewhere == "at [1]: the number is not the expected one"


GUESS = " (perhaps a missing `return`, if you did not mean to return None)"


@pytest.mark.parametrize(
    ("place", "wrong", "said"),
    [
        ("the pair", lambda: None, f"the pair: expected a tuple, got None{GUESS}"),
        (Place("the pair", returned=False), lambda: None, "the pair: expected a tuple, got None"),
        ("the pair", lambda: (1.0, None), "the pair, at [1]: expected a float, got None"),
        ("the pair", lambda: (None, 2), "the pair, at [0]: expected a float, got None"),
    ],
)
def test_only_a_call_that_returned_nothing_lacks_a_return(place, wrong, said):
    """The case returns the answer's result as a part of a larger result."""
    check = one_part(
        "paired",
        lambda: (1.0, 2.0),
        lambda draw: [Case("p", lambda subject: {"w": subject()}, places={"['w']": place})],
    )
    assert judge(check, wrong, "s").parts[0].problem == said


def test_a_place_in_words_keeps_the_path_below_it():
    check = one_part(
        "log",
        lambda: {"norms": [1.0, 2.0]},
        lambda draw: [Case("p", lambda subject: subject(), places={"['norms']": "the norms"})],
    )
    said = judge(check, lambda: {"norms": [1.0, 2.5]}, "s").parts[0].problem
    assert said == "the norms, at [1]: the number is not the expected one"


def test_a_variable_may_have_a_forbidden_name():
    source = "def scaled(x, k):\n    einsum = x * k\n    return einsum"
    verdict = judge(scaled, scaled.alternates[0].thing, "s", source=LearnerSource([source]))
    assert verdict.status == "right"


def test_one_seed_gives_one_verdict():
    def flaky(x, k):
        return x * k if x.sum() > 0 else x

    assert judge(scaled, flaky, "s1") == judge(scaled, flaky, "s1")


def test_an_interrupt_fails_the_remaining_parts():
    calls = []

    def endless(x, k):
        calls.append(k)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return x * k

    verdict = judge(scaled, endless, "s")
    assert verdict.earned == 0
    assert len(calls) == 2
    assert "no answer in time" in verdict.parts[1].problem


@pytest.mark.parametrize("returned", [object(), None, "text", float("nan"), lambda: 1])
def test_every_returned_value_is_judged(returned):
    assert judge(scaled, lambda x, k: returned, "s").earned == 0


def test_sharing_and_strides_are_judged():
    transposed = one_part(
        "transposed",
        lambda x: x.t(),
        lambda draw: [case("p", draw.tensor((3, 4)))],
        sharing=True,
        strides=True,
    )
    assert judge(transposed, lambda x: x.permute(1, 0), "s").earned == 1
    assert "strides" in judge(transposed, lambda x: x.t().contiguous(), "s").parts[0].problem
    copied = judge(transposed, lambda x: x.clone().t(), "s")
    assert "expected a view of the input" in copied.parts[0].problem


def test_a_class_is_judged_by_what_its_methods_do():
    def play(make):
        counter = make(2)
        counter.call("add", 3)
        return counter.call("add", 4), counter.get("total")

    class Right:
        def __init__(self, start):
            self.total = start

        def add(self, n):
            self.total += n
            return self.total

    class Forgetful(Right):
        def add(self, n):
            return self.total + n

    check = Check("counter", parts={"counts": 1}, reads="r")
    check.reference(Right)
    check.cases(lambda draw: [Case("counts", play)])
    misconception(check, "forgetful", "the sum was not kept.", earns=0)(Forgetful)
    assert judge(check, Right, "s").earned == 1
    assert judge(check, Forgetful, "s").misconceptions == ["forgetful"]


def test_cases_must_belong_to_parts():
    check = Check("typo", parts={"a": 1}, reads="r")
    check.reference(lambda: 1)
    check.cases(lambda draw: [case("b")])
    with pytest.raises(
        LookupError, match="a case has the part .b., which .* the part .a. has no case"
    ):
        judge(check, lambda: 1, "s")


def test_a_report_names_the_mistake_and_the_section_and_shows_no_value():
    report = str(VerdictReport(judge(scaled, lambda x, k: x + k, "s"), "07"))
    assert "scaled: 0 of 3 points" in report
    assert report.count("“added”: the factor was added.") == 1
    assert "lesson 07, “Somewhere”" in report
    assert "got " not in report.replace("got ValueError", "")


@pytest.mark.parametrize("status", Status)
def test_a_report_knows_every_status_of_a_part(status):
    """A file of answers may contain anything."""
    part = PartResult("p", 1, 0, status)
    for report in (VerdictReport, partial(VerdictCard, link=lambda reads: "")):
        said = report(Verdict("c", 1, Status.WRONG, (part,), reads="r"), "07")
        assert "p" in str(said)
    assert part.name in said.as_html()


def test_report_carries_the_verdict_for_programs():
    bundle = VerdictReport(judge(scaled, scaled.right, "s"), "01")._repr_mimebundle_()
    assert bundle[VERDICT_MIME]["earned"] == 3
    assert bundle[VERDICT_MIME]["seed"] == "s"


def test_proof_finds_a_check_that_cannot_fail():
    lax = one_part("lax", lambda x: None, lambda draw: [case("p", 1)])

    @misconception(lax, "wrong", "anything.", earns=0)
    def _(x):
        return None

    (fault,) = prove(lax, "s", LabCode()).faults
    assert str(fault) == (
        "lax: misconception “wrong” is right: it earns all 1 points, expected 0. Move it to "
        '[right."wrong"] if the question allows it, or add a case that this answer fails'
    )
    assert (fault.kind, fault.name) == ("misconception", "wrong")


def test_proof_finds_a_name_that_only_the_checks_file_has():
    """The sample class submits the candidates, so they must run as a learner's code does."""
    odd = one_part("odd", lambda x: x % 2, lambda draw: [case("p", 1)])

    @alternate(odd, "with a helper")
    def _(x):
        return math.fmod(x, 2)

    (fault,) = prove(odd, "s", LabCode(given=("import math",))).faults
    assert str(fault).startswith("odd: alternate “with a helper” earns 0, expected 1 (p: ")
    (fault,) = prove(odd, "s", LabCode()).faults
    assert str(fault) == "odd: alternate “with a helper” uses math, which the lab does not define"


def test_proof_finds_a_reference_that_remembers_and_a_solution_that_is_wrong():
    calls = []
    moody = one_part("moody", lambda x: calls.append(x) or len(calls), lambda draw: [case("p", 1)])
    lab = LabCode(solutions={"moody": "def moody(x):\n    return 0"})
    solution, reference = prove(moody, "s", lab).faults
    assert str(solution).startswith("moody: the lab's solution earns 0, expected 1 (p: ")
    assert str(reference).startswith("moody: a second run of the reference differs: ")


def test_proof_finds_a_reference_that_raises_and_a_part_that_is_not_declared():
    raises = one_part("raises", lambda x: 1 // x, lambda draw: [case("p", 0)])
    (fault,) = prove(raises, "s", LabCode()).faults
    assert str(fault) == (
        "raises: there is no answer key: check 'raises', part 'p': the reference raised "
        "ZeroDivisionError: integer division or modulo by zero; the case expects no exception"
    )
    other = one_part("other", lambda x: x, lambda draw: [case("q", 0)])
    (fault,) = prove(other, "s", LabCode()).faults
    assert "a case has the part 'q', which is not one of the check's parts ['p']" in str(fault)


def test_proof_finds_a_solution_cell_that_defines_something_else():
    plain = one_part("plain", lambda x: x, lambda draw: [case("p", 1)])
    lab = LabCode(solutions={"plain": "def plane(x):\n    return x"})
    (fault,) = prove(plain, "s", lab).faults
    assert str(fault) == "plain: the lab's solution does not define plain, which the check needs"


def test_proof_finds_a_stub_that_earns_and_a_cell_that_does_not_run():
    easy = Check("easy", parts={"p": 1}, reads="r")
    easy.reference(lambda x: x)

    def play(subject):
        with contextlib.suppress(SubjectRaised):
            subject(1)
        return "nothing was looked at"

    easy.cases(lambda draw: [Case("p", play)])
    faults = prove(easy, "s", LabCode(solutions={"easy": "1 / 0"})).faults
    assert tuple(map(str, faults)) == (
        "easy: the lab's solution does not run: ZeroDivisionError: division by zero",
        "easy: an untouched stub earns 1, expected 0",
    )


def test_proof_finds_two_misconceptions_that_look_alike():
    twins = one_part("twins", lambda x: x, lambda draw: [case("p", 1)])

    @misconception(twins, "first", "one.", earns=0)
    def _(x):
        return x + 1

    @misconception(twins, "second", "two.", earns=0)
    def _(x):
        return 1 + x

    assert "named as “first”" in str(prove(twins, "s", LabCode()).faults[0])


def test_an_exception_shows_no_hidden_number():
    def quotes(x, k):
        raise ValueError(f"k is {k + 40}, x is {x.flatten().tolist()}")

    problem = judge(scaled, quotes, "s").parts[0].problem
    assert problem.startswith("raised ValueError: k is #, x is [")
    assert not any(character.isdigit() for character in problem)
    assert len(problem) < 280


def test_an_exception_keeps_the_small_numbers_that_explain_it():
    problem = judge(scaled, lambda x, k: x.sum(7), "s").parts[0].problem
    assert "expected to be in range of [-2, 1], but got 7" in problem


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: x + torch.ones(11), "tensor a (12) must match the size of tensor b (11) at"),
        (lambda x: torch.mm(x, x), "cannot be multiplied (14x12 and 14x12)"),
        (lambda x: x.view(13, 13), "shape '[13, 13]' is invalid for input of size 168"),
        (lambda x: x[77], "index # is out of bounds for dimension 0 with size 14"),
        (lambda x: torch.cat([x, x.t()]), "in dimension 0. Expected size 12 but got size 14 for"),
        (lambda x: torch.einsum("ij,jk", x, x), "has size 14 for operand 1 which does not"),
        (lambda x: x.as_strided((99,), (11,)), "sizes [99], strides [11], storage offset 0, and"),
    ],
)
def test_torchs_messages_about_shapes_keep_their_numbers(wrong, words):
    check = one_part("wide", lambda x: x, lambda draw: [case("p", draw.tensor((14, 12)))])
    assert words in judge(check, wrong, "s").parts[0].problem


@pytest.mark.slow(2)
def test_tracing_does_not_import_the_compiler():
    code = (
        "import sys, torch; from hood.judge.connection.rpc_client import InProcess; "
        "from hood.judge.verdicts.subject import Subject; "
        "Subject(InProcess(lambda x: x + 1), trace=True, listen=True)(torch.ones(2)); "
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_own_function_may_have_a_forbidden_name():
    source = "def scaled(x, k):\n    def einsum(a):\n        return a * k\n    return einsum(x)"
    verdict = judge(scaled, scaled.alternates[0].thing, "s", source=LearnerSource([source]))
    assert verdict.status == "right"


def test_operators_on_own_tensors_break_no_rule():
    def right(x, k):
        if k < 0:
            raise ValueError(k)
        return x * int(torch.mm(torch.eye(1), torch.full((1, 1), float(k))))

    assert judge(scaled, right, "s").status == "right"


def test_huge_integers_are_only_a_wrong_answer():
    check = one_part("sizes", lambda: (1, 2, 3), lambda draw: [case("p")])
    assert judge(check, lambda: (10**25, 2, 3), "s").earned == 0


@pytest.fixture
def partly_run():
    check = Check("partly", parts={"here": 2, "on a GPU": 3}, reads="Somewhere")
    check.reference(lambda x: x + 1)
    check.cases(lambda draw: [case("here", 1), not_run("on a GPU", "needs a GPU")])

    @misconception(check, "doubled", "it was doubled.", earns={"on a GPU": 3})
    def _(x):
        return x * 3

    return check


def test_a_part_that_cannot_run_is_neither_right_nor_wrong(partly_run):
    verdict = judge(partly_run, lambda x: x + 1, "s")
    assert (verdict.status, verdict.earned) == ("right as far as run", 2)
    assert [part.status for part in verdict.parts] == ["right", "not run"]
    report = VerdictReport(verdict, "07")
    assert "not run  on a GPU  (3 withheld)" in str(report)
    assert "needs a GPU" in str(report)
    assert "read: lesson" not in str(report)
    assert report.verdict.to_json()["parts"][1]["status"] == "not run"


def test_the_parts_that_ran_are_judged_as_usual(partly_run):
    wrong = judge(partly_run, lambda x: x * 3, "s")
    assert (wrong.status, wrong.earned, wrong.misconceptions) == ("wrong", 0, ["doubled"])
    assert "read: lesson" in str(VerdictReport(wrong, "07"))

    def stub(x):
        raise NotImplementedError

    assert judge(partly_run, stub, "s").status == "not attempted"


def test_a_check_of_which_nothing_runs_says_so(partly_run):
    partly_run.cases(lambda draw: [not_run(part, "needs a GPU") for part in partly_run.parts])
    verdict = judge(partly_run, lambda x: x + 1, "s")
    assert (verdict.status, verdict.earned) == ("right as far as run", 0)
    assert "not attempted" not in str(VerdictReport(verdict, "07"))


def test_a_proof_skips_parts_that_cannot_run(partly_run):
    proof = prove(partly_run, "s", LabCode())
    assert (proof.faults, proof.rejected) == ((), 1)


def test_the_report_names_the_records_used_for_comparison():
    check = one_part(
        "held",
        lambda: 1,
        lambda draw: [Case("p", lambda subject: subject(), against="a recorded run")],
    )
    for thing in (lambda: 1, lambda: 2):
        assert "compared with a recorded run" in str(VerdictReport(judge(check, thing, "s"), "07"))


def test_a_value_that_cannot_be_compared_is_a_wrong_answer():
    check = one_part("configured", lambda x: MiniGPTConfig(d_model=x), lambda draw: [case("p", 4)])
    misconception(check, "other", "it is another.", earns=0)(lambda x: MiniGPTConfig(d_model=x + 1))
    verdict = judge(check, lambda x: MiniGPTConfig(d_model=torch.tensor([x, x])), "s")
    assert (verdict.status, verdict.earned) == ("wrong", 0)
    assert "a kind that the exercise does not allow" in verdict.parts[0].problem


def test_a_few_of_many_unexpected_keys_are_named():
    check = one_part("named", lambda x: {"a": x}, lambda draw: [case("p", 4)])
    verdict = judge(check, lambda x: {f"{k}" * 50: k for k in range(10_000)}, "s")
    assert len(verdict.parts[0].problem) < 2_000


def three_parts():
    """A check of three parts; each part except the last has its own section."""
    check = Check(
        "f", {"one": 1, "two": 1, "three": 1}, reads="All", reads_by_part={"one": "1", "two": "2"}
    )
    check.reference(lambda x: 2 * x)
    check.cases(lambda draw: [case(part, draw.integer(3, 9)) for part in check.parts])
    return check


def test_the_section_to_read_depends_on_the_mistake():
    check = three_parts()
    misconception(check, "one more", "it is one too large.", earns=0)(lambda x: 2 * x + 1)
    verdict = judge(check, lambda x: x, "s")
    assert [part.reads for part in verdict.parts] == ["1", "2", "All"]
    assert verdict.section == "1"
    assert "read: lesson 07, “1”" in str(VerdictReport(verdict, "07"))
    assert [part.reads for part in VerdictReport(verdict, "07").parts()] == ["", "2", "All"]
    assert judge(check, check.right, "s").section == "All"
    [named] = check.misconceptions
    check.misconceptions[0] = replace(named, reads="Plus one")
    verdict = judge(check, lambda x: 2 * x + 1, "s")
    assert verdict.section == "Plus one"
    assert verdict.shown(misconceptions=False, examples=True).section == "All"


def test_a_card_shows_the_first_mistake_in_full_and_the_others_in_a_line():
    verdict = judge(three_parts(), lambda x: x, "s")
    told = [part.later for part in VerdictReport(verdict, "07").parts()]
    assert told == [False, True, True]
    page = VerdictCard(verdict, "07", lambda reads: f"#{reads}", ["UserWarning: slow"]).as_html()
    first, *folded = page.split("<details>")
    assert "<b>one</b>" in first
    assert "The number is not the expected one" in first
    assert [part.partition("</summary>")[0].partition("<b>")[2] for part in folded[:2]] == [
        f"{part}</b> (0 of 1): the number is not the expected one" for part in ("two", "three")
    ]
    assert 'href="#2"' in folded[0]
    assert "a warning while your code was checked" in folded[2]
    assert "UserWarning: slow" in folded[2]
    assert 'To read: <a href="#1">' in page


def test_a_check_without_a_section_names_none():
    check = Check("f", {"one": 1}, reads="")
    check.reference(lambda x: 2 * x)
    check.cases(lambda draw: [case("one", draw.integer(3, 9))])
    verdict = judge(check, lambda x: x, "s")
    assert "read: lesson" not in str(VerdictReport(verdict, "07"))
    page = VerdictCard(verdict, "07", lambda reads: f"#{reads}").as_html()
    assert "The number is not the expected one" in page
    assert "To read" not in page


def test_a_line_about_a_mistake_has_its_end_and_not_the_case():
    check = Check("f", {"one": 1, "two": 1}, reads="All")
    check.reference(lambda x: 2 * x)
    words = ", ".join(f"a step of {k} rows" for k in range(2, 9))
    check.cases(lambda draw: [case(part, draw.integer(3, 9), shown=words) for part in check.parts])
    _, second = VerdictReport(judge(check, lambda x: x, "s"), "07").parts()
    assert second.brief == "the number is not the expected one"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x, y: x.mul_(2), "its input `x`; change a copy instead"),
        (lambda x, y: y.mul_(2), "its input `y`; change a copy instead"),
        (lambda x, y: (x.mul_(2), y.mul_(2)), "its inputs `x` and `y`; change copies instead"),
    ],
)
def test_the_changed_input_is_named(change, said):
    def right(x, y):
        return x + y

    def wrong(x, y):
        total = x + y
        change(x, y)
        return total

    for keywords in (False, True):
        check = Check("f", {"p": 1}, reads="All")
        check.reference(right)

        def cases(draw, keywords=keywords):
            x, y = draw.tensor((2,)), draw.tensor((2,))
            yield case("p", x, y=y) if keywords else case("p", x, y)

        check.cases(cases)
        assert judge(check, wrong, "s").parts[0].problem == f"the function changed {said}"


def test_for_an_instance_the_changed_input_of_its_method_is_named():
    class Right:
        def add(self, x):
            return x + 1

    class Wrong:
        def add(self, x):
            return x.add_(1)

    def cases(draw):
        x = draw.tensor((2,))
        yield Case("p", lambda subject: subject().call("add", x))

    check = Check("Right", {"p": 1}, reads="All")
    check.reference(Right)
    check.cases(cases)
    assert "changed its input `x`" in judge(check, Wrong, "s").parts[0].problem
