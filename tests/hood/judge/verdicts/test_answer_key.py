import gc
import warnings
import weakref

import pytest
import torch

from hood.judge.checks.exercise import Case, Check, case
from hood.judge.connection.drivers import NoDriver
from hood.judge.verdicts.answer_key import AnswerKey, answer_key
from hood.judge.verdicts.difference import difference
from hood.judge.verdicts.judge import judge
from hood.judge.verdicts.outcome import CaseOutcome
from hood.judge.verdicts.subject import SubjectRaised
from tests.hood.judge.candidates import alternate, misconception
from tests.hood.one_part import one_part
from utils.instruments.world import connect


def doubling(played: list) -> Check:
    """A check whose reference and misconception record their calls."""
    check = Check("doubling", parts={"p": 1}, reads="r")

    @check.reference
    def _(x):
        played.append("reference")
        return 2 * x

    @check.cases
    def _(draw):
        for _ in range(2):
            yield case("p", draw.tensor((3,)))

    @misconception(check, "squared", "You multiplied it by itself.", earns=0)
    def _(x):
        played.append("squared")
        return x * x

    @alternate(check, "a sum")
    def _(x):
        return x + x

    return check


def test_right_and_mistaken_results_are_computed_once():
    played = []
    check = doubling(played)
    for answer in (lambda x: x + x, lambda x: x * x, lambda x: x**2, lambda x: x + 1):
        judge(check, answer, "s")
    assert sorted(played) == ["reference"] * 2 + ["squared"] * 2
    judge(check, lambda x: x + x, "another seed")
    assert len(played) == 6


def test_a_key_belongs_to_a_check_and_a_seed():
    one, other = doubling([]), doubling([])
    assert answer_key(one, "s") is answer_key(one, "s")
    assert answer_key(one, "s") is not answer_key(other, "s")
    first, second = answer_key(one, "s"), answer_key(one, "t")
    assert difference(one, first.right(first.cases[0]), second.right(second.cases[0]))


def test_no_answer_changes_the_key_for_the_next():
    check = doubling([])

    def spoils(x):
        x.zero_()
        return x

    before = [judge(check, answer, "s") for answer in (lambda x: x + x, lambda x: x * x)]
    judge(check, spoils, "s")
    assert [judge(check, answer, "s") for answer in (lambda x: x + x, lambda x: x * x)] == before
    kept, fresh = answer_key(check, "s"), AnswerKey(check, "s")
    for c, again in zip(kept.cases, fresh.cases, strict=True):
        assert torch.equal(kept.right(c).value, fresh.right(again).value)


def test_an_exception_is_kept_without_its_frames():
    seen = []

    def refuses(x):
        local = torch.zeros(3)
        seen.append(weakref.ref(local))
        raise ValueError("no")

    check = one_part("refuses", refuses, lambda draw: [case("p", 1, raises="ValueError")])
    key = AnswerKey(check, "s")
    assert key.right(key.cases[0]).raised.kinds[0] == "ValueError"
    gc.collect()
    assert seen[0]() is None


def test_a_reference_with_an_unsupported_result_is_the_graders_fault():
    check = one_part("opaque", lambda x: object(), lambda draw: [case("p", 1)])
    with pytest.raises(
        ValueError, match="'opaque'.*cannot be sent by value: a value of type object"
    ):
        judge(check, lambda x: x, "s")


@pytest.mark.parametrize("how", ["x.repeat(2**44)", "bytes(2**62)"])
def test_a_machine_out_of_memory_costs_no_points(how):
    enough = []
    check = one_part(
        "large",
        lambda x: 2 * x if enough else eval(how),
        lambda draw: [case("p", draw.tensor((3,)))],
    )
    with pytest.raises(MemoryError, match="'large'"):
        judge(check, lambda x: 2 * x, "s")
    enough.append(True)
    assert judge(check, lambda x: 2 * x, "s").status == "right"


def test_a_case_too_large_for_the_graders_memory_costs_no_points():
    """The case's outcome is not kept for the next submission."""
    enough = []

    def plays(subject):
        came = subject(3)
        if not enough:
            raise MemoryError
        return came

    check = one_part("large", lambda x: 2 * x, lambda draw: [Case("p", plays)])
    with pytest.raises(MemoryError):
        judge(check, lambda x: 2 * x, "s")
    enough.append(True)
    assert judge(check, lambda x: 2 * x, "s").status == "right"


def test_warnings_of_the_answer_are_shown_and_of_a_misconception_are_not():
    check = doubling([])

    @misconception(check, "noisy", "It was halved.", earns=0)
    def _(x):
        warnings.warn("of the misconception", stacklevel=1)
        return x / 2

    def answer(x):
        warnings.warn("of the answer", stacklevel=1)
        return x / 2

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert judge(check, answer, "s").misconceptions == ["noisy"]
    assert {str(one.message) for one in shown} == {"of the answer"}


def test_a_misconception_without_enough_memory_is_not_named():
    check = one_part("modest", lambda x: 2 * x, lambda draw: [case("p", draw.tensor((3,)))])
    misconception(check, "greedy", "It was repeated.", earns=0)(lambda x: x.repeat(2**44))
    verdict = judge(check, lambda x: x + 1, "s")
    assert (verdict.status, verdict.misconceptions) == ("wrong", [])


@pytest.mark.parametrize(
    ("announced", "wrong"),
    [
        ("ValueError", ""),
        ("", "raised ValueError.*the case expects no exception"),
        ("IndexError", "raised ValueError.*the case expects IndexError"),
    ],
)
def test_a_reference_raises_only_what_its_case_announces(announced, wrong):
    """Otherwise a bug in a reference would demand the same exception from every learner."""
    check = Check("refuses", parts={"p": 1}, reads="r")
    check.cases(lambda draw: [case("p", 0, raises=announced)])

    @check.reference
    def _(x):
        raise ValueError(f"no root of {x}")

    key = AnswerKey(check, "s")
    if wrong:
        with pytest.raises(ValueError, match=wrong):
            key.right(key.cases[0])
    else:
        assert key.right(key.cases[0]).raised.kinds[0] == "ValueError"


def test_a_reference_that_returns_where_its_case_announces_an_exception_is_an_error():
    check = Check("calm", parts={"p": 1}, reads="r")
    check.cases(lambda draw: [case("p", 0, raises="ValueError")])
    check.reference(lambda x: x)
    key = AnswerKey(check, "s")
    with pytest.raises(ValueError, match="raised nothing; the case expects ValueError"):
        key.right(key.cases[0])


def test_a_fault_of_ranks_is_reported_like_an_exception():
    check = Check("meet", parts={"p": 1}, reads="r")

    @check.reference
    def _(rank, world):
        yield ("barrier",)

    @check.cases
    def _(draw):
        yield Case(
            "p", lambda subject: connect([subject.generator(r, 2) for r in range(2)]).results
        )

    def waits(rank, world):
        yield "recv", 1 - rank

    assert judge(check, check.right, "s").earned == 1
    (part,) = judge(check, waits, "s").parts
    assert part.problem == "raised Deadlock: rank 0 waits to receive from rank 1; " + (
        "rank 1 waits to receive from rank 0"
    )


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (("_ArrayMemoryError", "MemoryError", "Exception"), "Unable to allocate 8. EiB"),
        (("RuntimeError", "Exception"), "DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
    ids=["NumPy's", "torch's"],
)
def test_too_little_memory_is_known_by_its_type_or_torchs_words(kinds, message):
    assert CaseOutcome(raised=SubjectRaised(kinds, message)).ran_short()
    assert not CaseOutcome(raised=SubjectRaised(("ValueError",), "MemoryError")).ran_short()


@pytest.mark.parametrize("name", ["functions:nobody", "functions:torch"])
def test_a_case_that_asks_for_no_driver_is_an_error_of_the_check(name):
    """The check fails before any answer is judged. Later, it would cost points or hide a claim."""
    check = one_part(
        "asks", lambda x: x, lambda draw: [Case("p", lambda subject: subject.drive(name, 1))]
    )
    (c,) = (key := AnswerKey(check, "s")).cases
    with pytest.raises(NoDriver):
        key.right(c)


def test_the_references_claims_are_known_even_if_it_raises():
    check = Check("raises", parts={"p": 1}, reads="r")
    check.reference(lambda widths: widths["nothing"])

    def play(subject):
        subject.claim("how warm it was")
        return subject.drive("functions:keeping", {})

    check.cases(lambda draw: [Case("p", play, raises="KeyError")])
    (c,) = (key := AnswerKey(check, "s")).cases
    assert key.right(c).claims == ("how warm it was",)
