"""Failing examples: true when they are pasted, short, and none of the run's cases."""

import random

import pytest
import torch

from grader.judging import example as examples
from grader.judging.answer_key import AnswerKey, answer_key
from grader.judging.catalogue import load_checks
from grader.judging.example import CALLS, find_examples
from grader.judging.judge import exemplify, judge
from grader.judging.report import VerdictReport
from grader.judging.rpc_client import InProcess
from grader.phase_paths import ROOT, choose
from grader.proof.selftest import LabCode
from grader.verdict import Status
from utils.checks import Case, Check, case
from utils.compare import Tolerance, agree
from utils.draw import SmallDraw

ROUNDED = Tolerance(2e-3, 1e-3)


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """A busy machine may not get far in a second."""
    monkeypatch.setattr(examples, "SECONDS", 3600)


def made(thing, cases, wrong=None, **settings):
    """A check of one part."""
    check = Check("f", parts={"p": 1}, reads="r", **settings)
    check.reference(thing)
    check.cases(cases)
    return check


def looked_at(x, look):
    """A case that looks at something of what came."""
    if isinstance(x, torch.Tensor):
        x.requires_grad_()
    return Case("p", lambda subject: look(subject(x)))


def found(check, thing, seed="run", public="public"):
    """The example of the part, as a learner sees it."""
    verdict = exemplify(judge(check, thing, seed), check, thing, public)
    example = verdict.parts[0].example
    return example.lines() if example else []


def pasted(call, thing, name="f"):
    """What a call comes to where the thing has its name: a value, or the exception's type."""
    try:
        return eval(call, {"torch": torch, name: thing})
    except Exception as error:
        return type(error).__name__


def twice():
    return made(lambda x: 2 * x, lambda draw: [case("p", draw.tensor(draw.shape(2))) for _ in "ab"])


def test_an_example_is_a_call_to_paste_and_what_is_wrong_with_it():
    call, *comment = found(twice(), lambda x: x * x)
    said = " ".join(line.removeprefix("# ") for line in comment).replace("] got", "], got")
    expected, got = said.removeprefix("expected ").replace(") got ", "), got ").split(", got ")
    assert torch.equal(pasted(call, lambda x: 2 * x), pasted(expected, None))
    assert torch.equal(pasted(call, lambda x: x * x), pasted(got, None))
    assert len(call) < 60
    assert all(line.startswith("# ") for line in comment)


def test_an_exception_is_told_in_full_and_in_one_line():
    def raising(x):
        raise ValueError(f"a\n\tsum of {123456}\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}b")

    assert found(twice(), raising)[1].endswith("got ValueError: a")
    named = type("Sum\nimport os", (ValueError,), {})

    def raising_by_name(x):
        raise named("a")

    call, *comment = found(twice(), raising_by_name)
    assert len(call.splitlines()) == 1
    assert all(line.startswith("# ") and len(line.splitlines()) == 1 for line in comment)
    assert comment[-1].endswith("Sum import os: a")
    refusing = made(abs, lambda draw: [case("p", draw.integer(-9, 9), raises="KeyError")])

    @refusing.reference
    def _(x):
        raise KeyError(x)

    assert found(refusing, lambda x: x + 1)[1].startswith("# expected KeyError, got ")


@pytest.mark.parametrize("error", [ValueError, LookupError])
def test_a_generator_that_finds_no_small_case_costs_the_example_alone(error):
    def cases(draw):
        if isinstance(draw, SmallDraw):
            raise error("no such model")
        return [case("p", draw.tensor((2,)))]

    check = made(lambda x: 2 * x, cases)
    verdict = exemplify(judge(check, lambda x: x * x, "run"), check, lambda x: x * x, "public")
    assert verdict.status is Status.WRONG
    assert verdict.parts[0].example is None


def test_what_two_values_do_not_show_is_said():
    views = made(
        lambda x: x.t(), lambda draw: [case("p", draw.tensor((2, 3)))], sharing=True, strides=True
    )
    assert "a copy, where a view is asked for" in found(views, lambda x: x.clone().t())[1]
    call, comment = found(views, lambda x: x.t().contiguous())
    assert (call[-9:], comment) == (".stride()", "# expected (1, 3), got (2, 1)")
    assert "changed one of its inputs" in found(twice(), lambda x: x.mul_(2))[1]
    graph = made(
        lambda x: 2 * x,
        lambda draw: [looked_at(draw.tensor((2,)), lambda y: (y, y.requires_grad))],
    )
    assert "a gradient can flow back; here none can" in found(graph, lambda x: 2 * x.detach())[1]


def test_the_smallest_failing_case_is_shown():
    check = made(lambda n: n, lambda draw: [case("p", draw.integer(0, 10**6)) for _ in range(9)])
    assert found(check, lambda n: n + 1)[0] == "f(0)"
    assert found(check, lambda n: n + (n > 1))[0] in ("f(2)", "f(3)", "f(4)")
    assert found(check, lambda n: n + (n > 100)) == []


def test_only_the_part_of_a_result_that_a_case_looks_at():
    check = made(
        lambda x: {"a": x, "b": -x},
        lambda draw: [looked_at(draw.integer(1, 99), lambda y: y["b"])],
    )
    assert found(check, lambda x: {"a": 0, "b": 7}) == ["f(1)['b']", "# expected -1, got 7"]


def test_where_several_answers_are_right_one_of_them_is_called_so():
    check = made(
        lambda x: [x, x + 1],
        lambda draw: [looked_at(draw.integer(1, 99), sum)],
    )
    call, comment = found(check, lambda x: [x])
    assert (call, comment) == ("f(1)", "# one right answer is [1, 2], got [1]")


def test_code_that_does_not_repeat_itself_gets_no_example():
    assert found(twice(), lambda x: x * random.random()) == []


def test_tries_and_the_time_are_bounded(monkeypatch):
    check = made(lambda n: n, lambda draw: [case("p", draw.integer(0, 10**6)) for _ in range(99)])
    calls = []
    key = AnswerKey(check, "run")
    assert find_examples(key, InProcess(lambda n: calls.append(n) or n), ["p"], "public") == {}
    assert 0 < len(calls) <= CALLS
    monkeypatch.setattr(examples, "SECONDS", -1)
    calls.clear()
    find_examples(key, InProcess(lambda n: calls.append(n) or n), ["p"], "public")
    assert calls == []


def test_large_inputs_and_classes_get_none():
    large = made(lambda x: 2 * x, lambda draw: [case("p", torch.randn(30, 30))])
    assert found(large, lambda x: x) == []
    kind = made(dict, lambda draw: [Case("p", lambda subject: subject().call("__len__"))])
    assert found(kind, type("Other", (), {"__len__": lambda self: 3})) == []


def test_what_a_driver_does_is_no_call_to_paste():
    def driven(draw):
        x, y = draw.tensor((3,)), draw.tensor((3,))
        yield Case("p", lambda subject: subject.drive("functions:gradient", x, y))

    check = made(lambda x, y: (x - y).square().mean(), driven)
    thing = lambda x, y: (x - y).square().mean().detach()  # noqa: E731
    assert judge(check, thing, "run").status == "wrong"
    assert found(check, thing) == []


def test_the_runs_own_cases_are_passed_over():
    """Each of a hundred runs draws one of three numbers; an example is another one."""
    check = made(lambda n: n, lambda draw: [case("p", draw.integer(1, 3))])
    for run in map(str, range(40)):
        [hidden] = examples._hidden(answer_key(check, run))
        shown = found(check, lambda n: -n, run, public=f"public {run}")
        assert shown
        assert shown[0] != hidden


def test_a_corner_that_every_run_asks_is_shown_where_nothing_else_fails():
    check = made(
        lambda n: n, lambda draw: [case("p", 0), *(case("p", draw.integer(5, 99)) for _ in "ab")]
    )
    assert found(check, lambda n: n + 1)[0] != "f(0)"
    assert found(check, lambda n: n or 7) == ["f(0)", "# expected 0, got 7"]


def test_a_small_draw_stays_within_what_the_generator_asks():
    draw = SmallDraw("s", "n", reach=2)
    assert {draw.integer(-9, 9) for _ in range(60)} == {-2, -1, 0, 1, 2}
    assert {draw.integer(600, 900) for _ in range(30)} == {600, 601, 602}
    assert {draw.choice([1024, 6, 7, 16]) for _ in range(30)} == {6, 7}
    assert draw.sample("ab", 2) in (["a", "b"], ["b", "a"])
    assert all(len(set(draw.shape(3, low=3))) == 3 and max(draw.shape(3)) <= 5 for _ in range(9))
    for dtype in (torch.bool, torch.uint8, torch.float16, torch.complex64):
        assert draw.tensor((2, 3), dtype).dtype is dtype


def test_the_report_holds_the_lines_unbroken():
    check = made(sorted, lambda draw: [case("p", [draw.integer(1, 99) for _ in range(9)])])
    thing = lambda x: list(x) * 3  # noqa: E731
    verdict = exemplify(judge(check, thing, "run"), check, thing, "public")
    said = str(VerdictReport(verdict, "07"))
    example = verdict.parts[0].example
    for line in example.lines():
        assert f"\n               {line}\n" in said
    assert (
        VerdictReport(verdict, "07").verdict.to_json()["parts"][0]["example"]["call"]
        == example.call
    )


LABS = [phase for phase in choose(ROOT, []) if phase.name[:2] in ("00", "01", "02")]


@pytest.mark.slow(8)
@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_pasted_into_the_lab_the_lines_are_true(phase, seeds, full):
    """Each misconception: the call comes to what is said, and the lab's own solution is right."""
    lab, told, tried = LabCode.read(phase.lab), 0, 0
    given = lab.names_after("")
    for check in load_checks(phase.folder).values():
        right = dict(given)
        exec(lab.solutions[check.name], right)
        key, dear = answer_key(check, seeds[-1]), phase.name > "02" and not full
        for m in check.misconceptions[:: 5 if dear else 1]:
            several = isinstance(check.right, dict)
            wrong = right | (m.thing if several else {check.name: m.thing})
            verdict = exemplify(judge(check, m.thing, seeds[-1]), check, m.thing, seeds[-1] + "p")
            shown = [part.example for part in verdict.parts if part.example]
            tried, told = tried + bool(verdict.unexampled()), told + bool(shown)
            for one in shown:
                hidden = {call for call in examples._hidden(key) if one.call.startswith(call)}
                assert hidden <= examples._asked_always(check)
                assert "\n" not in "".join(one.lines())
                assert all(_is_true(one, wrong, right)), (check.name, m.name, one)
    assert told > {"00": 0.9, "01": 0.8, "02": 0.5}[phase.name[:2]] * tried


def _is_true(one, wrong, right):
    """Whether the learner's names and the lab's do what an example says."""
    for names, said in ((wrong, one.got), (right, one.expected)):
        try:
            value = eval(one.call, dict(names))
        except Exception as error:
            value = type(error).__name__
            yield (said or one.said).removeprefix("got ").startswith(value) or one.said != ""
            continue
        if one.said or said.startswith(("a ", "an ")):  # in words: too long for a line
            yield True
        elif said.split(":")[0].isidentifier() and said not in ("None", "True", "False"):
            yield False  # an exception was promised
        else:
            yield one.others or agree(value, eval(said, dict(names)), tolerance=ROUNDED)
