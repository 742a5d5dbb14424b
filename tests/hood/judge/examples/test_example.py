"""Failing examples: they are true when pasted, short, and not from the run's cases."""

import random
import re
from dataclasses import replace
from functools import partial

import pytest
import torch

from hood.authoring.proof.selftest import LabCode, drawn
from hood.judge.catalogue import load_checks
from hood.judge.checks.compare import Tolerance, agree
from hood.judge.checks.draw import SmallDraw
from hood.judge.checks.exercise import Case, case
from hood.judge.connection.rpc_client import InProcess
from hood.judge.examples import example as examples
from hood.judge.examples.call_text import laid_out
from hood.judge.examples.example import CALLS, exemplify, find_examples
from hood.judge.report import VerdictReport
from hood.judge.verdicts.answer_key import AnswerKey, answer_key
from hood.judge.verdicts.judge import judge
from hood.phase_paths import ROOT, choose
from hood.verdict import Status
from tests.hood.judge.candidates import misconception
from tests.hood.one_part import one_part
from tests.phases import dear, shown_words

ROUNDED = Tolerance(2e-3, 1e-3)


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """On a busy machine, the search may not get far in a second."""
    monkeypatch.setattr(examples, "SECONDS", 3600)


def made(thing, cases, **settings):
    return one_part("f", thing, cases, **settings)


def looked_at(x, look):
    """A case that reads a part of the result."""
    if isinstance(x, torch.Tensor):
        x.requires_grad_()
    return Case("p", lambda subject: look(subject(x)))


def found(check, thing, seed="run", public="public"):
    """The example of the part, as a learner sees it."""
    verdict = exemplify(judge(check, thing, seed), check, thing, public)
    example = verdict.parts[0].example
    return example.lines() if example else []


def pasted(call, thing, name="f"):
    """The result of a call, with the answer under its name: a value, or the exception's type."""
    try:
        return eval(call, {"torch": torch, name: thing})
    except Exception as error:
        return type(error).__name__


def twice():
    return made(lambda x: 2 * x, lambda draw: [case("p", draw.tensor(draw.shape(2))) for _ in "ab"])


def test_an_example_is_a_call_to_paste_and_its_mistake():
    call, *comment = found(twice(), lambda x: x * x)
    said = " ".join(line.removeprefix("# ") for line in comment).replace("] got", "], got")
    expected, got = said.removeprefix("expected ").replace(") got ", "), got ").split(", got ")
    assert torch.equal(pasted(call, lambda x: 2 * x), pasted(expected, None))
    assert torch.equal(pasted(call, lambda x: x * x), pasted(got, None))
    assert len(call) < 60
    assert all(line.startswith("# ") for line in comment)


def test_no_example_is_sought_if_it_would_show_the_answer():
    drawn = []

    def cases(draw):
        drawn.append(draw)
        return [Case("p", lambda subject: subject(torch.ones(2)), example=False)]

    check = made(lambda x: 2 * x, cases)
    assert found(check, lambda x: x) == []
    assert len(drawn) == 1  # for the verdict alone


def test_an_exception_is_described_in_full_and_in_one_line():
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
def test_without_a_small_case_only_the_example_is_missing(error):
    def cases(draw):
        if isinstance(draw, SmallDraw):
            raise error("no such model")
        return [case("p", draw.tensor((2,)))]

    check = made(lambda x: 2 * x, cases)
    verdict = exemplify(judge(check, lambda x: x * x, "run"), check, lambda x: x * x, "public")
    assert verdict.status is Status.WRONG
    assert verdict.parts[0].example is None


def test_differences_invisible_in_the_values_are_stated():
    views = made(
        lambda x: x.t(), lambda draw: [case("p", draw.tensor((2, 3)))], sharing=True, strides=True
    )
    assert "expected a view of the input" in found(views, lambda x: x.clone().t())[1]
    call, comment = found(views, lambda x: x.t().contiguous())
    assert (call[-9:], comment) == (".stride()", "# expected (1, 3), got (2, 1)")
    assert "changed its input `x`" in found(twice(), lambda x: x.mul_(2))[1]
    graph = made(
        lambda x: 2 * x,
        lambda draw: [looked_at(draw.tensor((2,)), lambda y: (y, y.requires_grad))],
    )
    assert (
        "right values, but no gradient can flow back; expected that a gradient can"
        in found(graph, lambda x: 2 * x.detach())[1]
    )


def test_strides_are_mentioned_only_if_all_else_agrees():
    square = lambda x: (x @ x.t()).expand(9, -1, -1)  # noqa: E731
    check = made(square, lambda draw: [case("p", draw.tensor((6, 2)))])
    call, comment = found(check, lambda x: square(x)[:, :5].mT)
    assert (call[-6:], comment) == (".shape", "# expected (9, 6, 6), got (9, 6, 5)")
    call, comment = found(check, lambda x: square(x).double())
    assert (call[-6:], comment) == (".dtype", "# expected torch.float32, got torch.float64")
    assert ".stride()" not in found(check, lambda x: square(x).mT + 1)[0]


def test_a_failing_call_shows_no_unread_result():
    class Named:
        def load(self, names):
            assert "a" in names
            return "a receipt"

        def get(self):
            return 1

    class Renamed(Named):
        def load(self, names):
            raise KeyError("b")

    def play(subject):
        one = subject()
        one.call("load", ["a"])
        return one.call("get")

    *_, comment = found(made(Named, lambda draw: [Case("p", play)]), Renamed)
    assert comment == "# got KeyError: 'b'"


def test_a_play_may_take_items_out_of_the_result():
    def play(subject, x):
        came = subject(x)
        del came["time"]
        return came

    check = made(
        lambda x: {"a": [str(x), None], "time": 7},
        lambda draw: [Case("p", partial(play, x=draw.integer(1, 99)))],
    )
    assert found(check, lambda x: {"a": ["?", None], "time": 3}) == [
        "f(1)['a']",
        "# expected ['1', None], got ['?', None]",
    ]


def in_words(check, thing):
    """What the report says about the part, next to a call to paste."""
    verdict = exemplify(judge(check, thing, "run"), check, thing, "public")
    (part,) = VerdictReport(verdict, "07").parts()
    assert part.example == ""
    return part.reasons[-1]


def large(draw, k=1):
    """A case that cannot be written as a call."""
    x = draw.tensor((30, 30)) + k

    def play(subject):
        return {"losses": subject(x)}

    places = {"['losses']": "the losses"}
    return Case("p", play, shown=f"{k} step of 30 rows", places=places)


def test_a_case_that_cannot_be_pasted_is_described_in_words():
    trained = lambda x: [0.5, round(x.sum().item(), 2)]  # noqa: E731
    check = made(trained, lambda draw: [large(draw)])
    said = in_words(check, lambda x: [0.5, round(x.mean().item(), 2)])
    assert re.fullmatch(
        r"For example, 1 step of 30 rows: the losses, at \[1\]: expected [\d.-]+, got [\d.-]+\.",
        said,
    )
    assert "expected [0.5, " in in_words(check, lambda x: [0.5])

    def raising(x):
        raise ValueError(f"not {12345}")

    said = in_words(check, raising)
    assert said == "For example, 1 step of 30 rows: got ValueError: not 12345."


def test_an_answer_independent_of_the_draw_is_not_shown():
    check = made(lambda x: [128], lambda draw: [large(draw)])
    assert "128" not in in_words(check, lambda x: [64])


def test_a_fact_is_not_repeated():
    holds = lambda draw: [  # noqa: E731
        replace(large(draw), places={"['losses']": "A loss is negative."})
    ]
    assert (
        in_words(made(lambda x: x.mean().item(), holds), lambda x: 0.0)
        == "1 step of 30 rows: A loss is negative."
    )


def test_the_smallest_failing_case_is_shown():
    check = made(lambda n: n, lambda draw: [case("p", draw.integer(0, 10**6)) for _ in range(9)])
    assert found(check, lambda n: n + 1)[0] == "f(0)"
    assert found(check, lambda n: n + (n > 1))[0] in ("f(2)", "f(3)", "f(4)")
    assert found(check, lambda n: n + (n > 100)) == []


def test_only_the_part_of_a_result_that_a_case_reads_is_shown():
    check = made(
        lambda x: {"a": x, "b": -x},
        lambda draw: [looked_at(draw.integer(1, 99), lambda y: y["b"])],
    )
    assert found(check, lambda x: {"a": 0, "b": 7}) == ["f(1)['b']", "# expected -1, got 7"]


def test_if_several_answers_are_right_the_shown_one_is_called_one_of_them():
    check = made(
        lambda x: [x, x + 1],
        lambda draw: [looked_at(draw.integer(1, 99), sum)],
    )
    call, comment = found(check, lambda x: [x])
    assert (call, comment) == ("f(1)", "# one right answer is [1, 2], got [1]")


def test_code_without_repeatable_results_gets_no_example():
    assert found(twice(), lambda x: x * random.random()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x * 1j,
        lambda x: {"a": x},
        lambda x: [x[0], {1: (x,)}],
        lambda x: x.to_sparse(),
        lambda x: "é" * 10_000,
        lambda x: float("nan"),
        lambda x: 10**50,
        lambda x: lambda: x,
    ],
)
def test_any_odd_result_only_costs_the_example(wrong):
    check = made(
        lambda x: [2 * x, x],
        lambda draw: [Case("p", lambda subject, x=draw.tensor((2,)): subject(x)[0])],  # noqa: B008
    )
    assert judge(check, wrong, "run").status is Status.WRONG
    found(check, wrong)


def test_tries_and_the_time_are_bounded(monkeypatch):
    check = made(lambda n: n, lambda draw: [case("p", draw.integer(0, 10**6)) for _ in range(99)])
    calls = []
    key = AnswerKey(check, "run")
    assert find_examples(key, InProcess(lambda n: calls.append(n) or n), {"p": ""}, "public") == {}
    assert 0 < len(calls) <= CALLS
    monkeypatch.setattr(examples, "SECONDS", -1)
    calls.clear()
    find_examples(key, InProcess(lambda n: calls.append(n) or n), {"p": ""}, "public")
    assert calls == []


def test_large_inputs_get_no_example():
    large = made(lambda x: 2 * x, lambda draw: [case("p", torch.randn(30, 30))])
    assert found(large, lambda x: x) == []


class Counter:
    def __init__(self, start):
        if start < 0:
            raise ValueError("below 0")
        self.count = start

    def add(self, n):
        self.count += n
        return self.count


def counted(draw):
    start, n = draw.integer(0, 99), draw.integer(1, 99)

    def play(subject):
        counter, other = subject(start), subject(start)
        return counter.call("add", n), other.get("count"), counter.get("count")

    yield Case("p", play)


def test_calls_of_an_instance_follow_the_lines_that_made_it():
    class Forgetful(Counter):
        def add(self, n):
            return self.count + n

    assert found(made(Counter, counted), Forgetful) == [
        "example = f(0)",
        "example.add(1)",
        "example.count",
        "# expected 1, got 0",
    ]


def test_an_instance_that_should_be_refused_is_shown():
    class Trusting(Counter):
        def __init__(self, start):
            self.count = start

    def cases(draw):
        start = draw.integer(-9, -1)
        yield Case("p", lambda subject: subject(start).get("count"), raises="ValueError")

    call, comment = found(made(Counter, cases), Trusting)
    assert call in ("f(-1)", "f(-2)", "f(-3)")
    assert comment == "# expected ValueError, got an instance"


def test_a_call_through_a_driver_is_a_call_of_the_driver():
    def driven(draw):
        x, y = draw.tensor((2,)), draw.tensor((2,))
        yield Case("p", lambda subject: subject.drive("functions:gradient", x, y))

    check = made(lambda x, y: (x - y).square().sum(), driven)
    lines = found(check, lambda x, y: (x - y).abs().sum())
    assert lines[0] == "from utils.drivers import functions as example_driver"
    assert lines[1].startswith("example_driver.gradient(f, torch.tensor([")
    assert lines[2].startswith("# expected torch.tensor([")
    names = {"torch": torch, "f": check.right}
    exec(lines[0], names)
    right = lines[2].removeprefix("# expected ").partition(", got")[0]
    assert torch.equal(eval(lines[1], names), eval(right, names))


def test_the_deciding_item_is_found_by_trying_and_others_may_be_wrong_too():
    """Parts of a reply that a case does not read may differ, and are not shown."""

    def training(x):
        return {"loss": -x, "steps": [x, x + 1, x + 2], "time": 7}

    def asked(look):
        return made(training, lambda draw: [looked_at(draw.integer(1, 99), look)])

    thing = lambda x: {"loss": 0, "steps": [x, x, 0], "time": "late"}  # noqa: E731
    assert found(asked(lambda came: came["steps"][1]), thing) == [
        "f(1)['steps'][1]",
        "# expected 2, got 1",
    ]
    assert found(asked(lambda came: came["steps"][1] + 0.5), thing) == [
        "f(1)",
        "# one right answer is {'loss': -1, 'steps': [1, 2, 3], 'time': 7}",
        "# got {'loss': 0, 'steps': [1, 1, 0], 'time': 'late'}",
    ]


def test_a_long_call_is_laid_out_in_lines():
    def cases(draw):
        weights = {f"w{k}": draw.tensor((4, 4)) * 0.5 for k in range(3)}
        yield case("p", weights, draw.integer(1, 9), name="día")

    check = made(lambda weights, k, name: sum(w.sum() for w in weights.values()) * k, cases)
    lines = found(check, lambda weights, k, name: torch.tensor(0.0))
    assert ")" in lines
    assert lines[0] == "f("
    assert lines[2].startswith("        'w0': (torch.arange(")
    names = {"torch": torch, "f": check.right}
    code, comment = "\n".join(lines[:-1]), lines[-1]
    right = comment.removeprefix("# expected ").partition(", got")[0]
    assert torch.equal(eval(code, names), eval(right, names))


def test_the_runs_own_cases_are_skipped():
    """Each of a hundred runs draws one of three numbers. An example has another number."""
    check = made(lambda n: n, lambda draw: [case("p", draw.integer(1, 3))])
    for run in map(str, range(40)):
        [hidden] = examples._hidden(answer_key(check, run))
        shown = found(check, lambda n: -n, run, public=f"public {run}")
        assert shown
        assert shown[0] != hidden


def test_a_fixed_corner_case_is_shown_if_nothing_else_fails():
    check = made(
        lambda n: n, lambda draw: [case("p", 0), *(case("p", draw.integer(5, 99)) for _ in "ab")]
    )
    assert found(check, lambda n: n + 1)[0] != "f(0)"
    assert found(check, lambda n: n or 7) == ["f(0)", "# expected 0, got 7"]


def test_a_small_draw_stays_within_the_generators_bounds():
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


LABS = [phase for phase in choose(ROOT, []) if phase.checks]


@pytest.mark.of_labs
@pytest.mark.slow(8)
@pytest.mark.parametrize("phase", LABS, ids=lambda phase: phase.name)
def test_pasted_into_the_lab_the_lines_are_true(phase, seeds, full):
    """For each misconception: the call gives the stated result, and the lab's solution is right."""
    lab, told, tried = LabCode.read(phase.lab), 0, 0
    for check in load_checks(phase.folder).values():
        right = lab.names_after(lab.solutions[check.name])
        key = answer_key(check, seeds[-1])
        for m in some_of(check, phase, seeds[-1], full):
            several = isinstance(check.right, dict)
            wrong = right | (m.thing if several else {check.name: m.thing})
            verdict = exemplify(judge(check, m.thing, seeds[-1]), check, m.thing, seeds[-1] + "p")
            assert shown_words.faults(check, m.thing, verdict) == []
            found = [part.example for part in verdict.parts if part.example]
            shown = [one for one in found if one.call]
            tried, told = tried + bool(verdict.unexampled()), told + bool(shown)
            for one in shown:
                hidden = {call for call in examples._hidden(key) if _code(one).startswith(call)}
                assert hidden <= examples._asked_always(check)
                assert "\n" not in "".join(one.lines())
                assert all(_is_true(one, wrong, right)), (check.name, m.name, one)
    assert told > TOLD.get(phase.name[:2], 0.3) * tried, f"{told} of {tried}"


def some_of(check, phase, seed, full):
    """The tested misconceptions: all of the first labs, and a few or none of the later labs."""
    if check.name in dear.DEAREST and not full:
        return []
    if check.name in dear.EXERCISES:
        return drawn(check.misconceptions, dear.few(check.name, full), f"{seed} {check.name}")
    return check.misconceptions[:: 1 if full or phase.name < "02" else 5]


TOLD = {"00": 0.9, "01": 0.8, "02": 0.5}


def _code(one):
    return "\n".join((*one.before, one.call))


def _is_true(one, wrong, right):
    """Whether an example's claims are true for the learner's code and the lab's."""
    for names, said in ((wrong, one.got), (right, one.expected)):
        try:
            room = dict(names)
            exec("\n".join(one.before), room)
            yield all(room[name] is known for name, known in names.items())  # nothing is replaced
            value = eval(one.call, room)
        except Exception as error:
            value = type(error).__name__
            yield (said or one.said).removeprefix("got ").startswith(value) or one.said != ""
            continue
        if one.said or said.startswith(("a ", "an ")):  # in words: too long for a line
            yield True
        elif said.split(":")[0].isidentifier() and said not in ("None", "True", "False"):
            yield False  # the example states an exception
        else:
            half = getattr(value, "dtype", None) in (torch.bfloat16, torch.float16)
            digits = Tolerance(1e-2, 1e-3) if half else ROUNDED
            shown = eval(said, {"torch": torch} | dict(names))  # lab 00 does not import it
            yield one.others or agree(value, shown, tolerance=digits)


def test_the_message_is_about_the_shown_case():
    """The run's first failing case has float64 and another shape. The example is smaller."""
    dtypes = torch.float64, torch.float32
    check = made(
        lambda x: x.sum(0),
        lambda draw: [
            case("p", draw.tensor(draw.shape(2), dtype), shown=str(dtype)[6:]) for dtype in dtypes
        ],
    )
    for run in "abc":
        verdict = exemplify(judge(check, lambda x: x, run), check, lambda x: x, f"public {run}")
        (part,) = verdict.parts
        shape = tuple(pasted(part.example.call.replace("f(", "(", 1), None).shape)
        dtype = "float64" if "float64" in part.example.call else "float32"
        wrong = f"{dtype}: wrong shape: expected {shape[1:]}, got {shape}".replace(",)", ",)")
        assert part.said == f"{wrong} (perhaps not summed: " + (
            "summing your result over dim 0 gives the expected result)"
        )
        assert part.said in " ".join(str(VerdictReport(verdict, "07")).split())


def test_an_empty_case_is_not_shown_if_another_fails_too():
    cases = lambda draw: [case("p", torch.zeros(0)), case("p", draw.tensor((3, 2)))]  # noqa: E731
    check = made(lambda x: x.sum(), cases)
    assert "zeros" not in found(check, lambda x: x.sum() + 1)[0]
    assert found(check, lambda x: x.sum() + (not x.numel()))[0] == "f(torch.tensor([]))"


def test_a_named_mistake_is_shown_with_a_case_of_it():
    """In small cases, the code differs from the misconception."""
    check = made(lambda n: n, lambda draw: [case("p", draw.integer(0, 10**6)) for _ in "abc"])
    misconception(check, "one more", "it is one too large.", earns=0)(lambda n: n + 1)
    both = lambda n: n + 1 if n > 99 else n + 2  # noqa: E731
    verdict = exemplify(judge(check, both, "run"), check, both, "public")
    assert verdict.misconceptions == ["one more"]
    assert verdict.parts[0].example is None


def test_of_nested_calls_the_outer_one_is_broken_into_lines():
    call = f"f(torch.arange(24.).reshape(2, 3, 4), torch.tensor([{'1., ' * 20}]))['x'][0]"
    assert laid_out(call).splitlines()[:2] == ["f(", "    torch.arange(24.).reshape(2, 3, 4),"]
