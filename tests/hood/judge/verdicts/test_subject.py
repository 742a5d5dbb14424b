import itertools

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hood.judge.connection.codec import NotByValue
from hood.judge.connection.drivers import INPUTS_KEPT, NoDriver, driver
from hood.judge.connection.rpc_client import InProcess
from hood.judge.verdicts.subject import Subject, SubjectRaised, read_whole
from utils.drivers import functions
from utils.minigpt import MiniGPTConfig


def test_a_call_reports_damage_and_sharing():
    def damage(a, b):
        b += 1
        return a.t(), b.clone(), b

    subject = Subject(InProcess(damage))
    a, b = torch.ones(2, 3), torch.zeros(2)
    subject(a, b)
    assert subject.calls[0].changed == (1,)
    assert subject.calls[0].shares == (0, None, 1)
    assert b.sum() == 0, "the trusted tensors are never handed over"


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor([float("nan"), 1.0]),
        torch.full((2, 4), float("nan"))[:, 1:2],
        torch.full((1, 4), float("nan"))[:, ::3],
        torch.tensor([float("nan"), 1j]).conj(),
        torch.tensor([float("nan"), 2.0], dtype=torch.float8_e5m2),
        torch.full((2,), float("nan"), dtype=torch.bfloat16).requires_grad_(),
        np.array([[np.nan, 1.0], [2.0, np.nan]]).T[:1],
    ],
)
def test_nan_inputs_are_not_damage(x):
    subject = Subject(InProcess(lambda x: 1))
    subject(x)
    assert subject.calls[0].changed == ()


def test_numpy_inputs_are_watched_too():
    def damage(a):
        a[0] = 7
        return a

    subject = Subject(InProcess(damage))
    subject(np.zeros((2, 2)))
    assert subject.calls[0].changed == (0,)


def test_operators_are_traced_on_request():
    subject = Subject(InProcess(lambda x: x.t() @ x), trace=True)
    subject(torch.ones(2, 2))
    assert subject.calls[0].ops == ("aten.t", "aten.mm")


def test_calls_are_recorded_on_request_even_if_it_raises():
    def code(x):
        x.t().softmax(-1)
        raise ValueError(torch.exp(x))

    subject = Subject(InProcess(code), listen=True)
    with pytest.raises(SubjectRaised):
        subject(torch.ones(2, 2))
    line = code.__code__.co_firstlineno
    assert list(subject.called) == ["torch.Tensor.t", "torch.Tensor.softmax", "torch.exp"]
    assert [at - line for at in subject.called.values()] == [1, 1, 2]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), NotImplementedError()])
def test_exceptions_are_described_by_value(error):
    def raises():
        raise error

    with pytest.raises(SubjectRaised) as raised:
        Subject(InProcess(raises))()
    assert raised.value.kinds[0] == type(error).__name__


def test_a_class_is_called_through_a_handle():
    class Counter:
        def __init__(self, start):
            self.count = start

        def add(self, x):
            self.count = self.count + x
            return self.count

    counter = Subject(InProcess(Counter))(torch.zeros(2))
    assert torch.equal(counter.call("add", torch.ones(2)), torch.ones(2))
    assert torch.equal(counter.get("count"), torch.ones(2))
    with pytest.raises(SubjectRaised) as raised:
        counter.call("subtract", 1)
    assert raised.value.kinds[0] == "AttributeError"


def test_a_method_that_returns_its_instance_gives_a_handle_to_it():
    drop = Subject(InProcess(torch.nn.Dropout))(0.5)
    assert drop.call("eval").get("training") is False
    assert drop.get("training") is False


class _Half(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(3))
        self.still = torch.nn.Parameter(torch.ones(3), requires_grad=False)
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, index):
        return (x.data[index] * self.gain + x[index]) * self.still


def test_gradients_of_a_module_by_name():
    x, upstream = torch.randn(4, 3), torch.randn(2, 3)
    index = torch.tensor([1, 1])
    found = Subject(InProcess(_Half))().gradients(upstream, x, index)
    assert torch.equal(found["output"].detach(), 2 * x[index])
    of_x, of_index = found["arguments"]
    assert of_index is None
    torch.testing.assert_close(of_x, torch.zeros(4, 3).index_add(0, index, upstream))
    torch.testing.assert_close(found["parameters"]["gain"], (upstream * x[index]).sum(0))
    assert found["parameters"]["still"] is found["parameters"]["unused"] is None


def test_no_gradients_of_an_output_without_a_graph_or_of_another_shape():
    norm = Subject(InProcess(torch.nn.LayerNorm))(3)
    none = {"arguments": [None], "parameters": {"weight": None, "bias": None}}
    found = norm.gradients(torch.ones(3), torch.ones(2, 3))
    assert {key: found[key] for key in none} == none

    class Cut(torch.nn.Module):
        def forward(self, x):
            return x.detach()

    assert Subject(InProcess(Cut))().gradients(torch.ones(2), torch.ones(2))["arguments"] == [None]


def test_a_forward_that_writes_to_its_input_has_gradients():
    relu = Subject(InProcess(torch.nn.ReLU))(True)
    x = torch.tensor([-1.0, 2.0])
    found = relu.gradients(torch.ones(2), x)
    assert torch.equal(found["arguments"][0], torch.tensor([0.0, 1.0]))
    assert torch.equal(x, torch.tensor([-1.0, 2.0]))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("one\ntwo", "one"),
        ("what is wrong:\n\t two\n three", "what is wrong: two"),
        ("\n  late", "late"),
        ("a colon at the end:", "a colon at the end:"),
    ],
)
def test_the_relevant_line_of_a_message_is_found(said, shown):
    def raises():
        raise RuntimeError(said)

    with pytest.raises(SubjectRaised) as raised:
        Subject(InProcess(raises))()
    assert raised.value.message == shown


def test_several_functions_and_plain_values_are_allowed():
    subject = Subject(InProcess({"f": lambda x: x + 1}))
    assert subject["f"](1) == 2
    assert Subject(InProcess({"answer": 42})).value() == {"answer": 42}


class _Doubling(TorchDispatchMode):
    """A counter without side effects."""

    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append((str(func), []))
        return func(*args, **(kwargs or {}))


def test_a_driver_uses_the_thing_beside_it_and_returns_values():
    subject = Subject(InProcess(_Doubling))
    x = torch.ones(2, 2)
    came = subject.drive("dispatch:log_ops", "in place", x, times=2)
    assert [name for name, _ in came["ops"]].count("aten.clone.default") == 2
    assert torch.equal(came["result"], 5 * x)
    assert subject.calls[-1].changed == ()


def test_a_driver_may_use_one_of_several_functions():
    subject = Subject(InProcess({"account": lambda *given: {"views": 3}, "other": None}))
    tokens = torch.zeros(1, 2, dtype=torch.int64)
    came = subject.drive("dispatch:account", MiniGPTConfig(), tokens, False, of="account")
    assert came == {"views": 3}


@pytest.mark.parametrize("name", ["dispatch:nobody", "nowhere:log_ops", "os:system"])
def test_only_functions_of_drivers_are_drivers(name):
    with pytest.raises(NoDriver, match="there is no driver"):
        Subject(InProcess(_Doubling)).drive(name)


def test_a_drivers_observation_is_a_claim():
    subject = Subject(InProcess(lambda words: words.append("more")))
    assert subject.drive("functions:keeping", ["some"])["arguments"] == [["some", "more"]]
    assert list(subject.claims) == [INPUTS_KEPT]
    assert list(Subject(InProcess(_Doubling)).claims) == []


@pytest.mark.parametrize(
    ("reads", "claimed"),
    [
        (lambda came: came["result"], False),
        (lambda came: came.get("result"), False),
        (lambda came: came["arguments"], True),
        (lambda came: came.get("arguments"), True),
        (lambda came: {**came}, True),
        (lambda came: {} | came, True),
        (lambda came: came | {}, True),
        (lambda came: list(came.values()), True),
        (lambda came: list(came.items()), True),
        (lambda came: came == {}, True),
        (lambda came: read_whole([{"all": (came,)}]), True),
    ],
)
def test_only_values_that_a_case_reads_are_claims(reads, claimed):
    subject = Subject(InProcess(lambda words: len(words)))
    reads(subject.drive("functions:keeping", ["some"]))
    assert list(subject.claims) == [INPUTS_KEPT] * claimed


def test_a_generator_of_a_driver_claims_what_the_driver_observes(monkeypatch):
    @driver("found", observed={"asked": "how often it was asked"})
    def asked(function):
        yield 1
        return {"found": function(), "asked": 1}

    monkeypatch.setattr(functions, "keeping", asked)
    subject = Subject(InProcess(lambda: 7))
    running = subject.drive_generator("functions:keeping")
    assert running.resume() == ("yield", 1)
    way, came = running.resume()
    assert (way, came["found"], list(subject.claims)) == ("return", 7, [])
    assert (came["asked"], list(subject.claims)) == (1, ["how often it was asked"])


def test_a_driver_that_declares_nothing_is_not_asked(monkeypatch):
    monkeypatch.setattr(functions, "keeping", lambda thing: {"graphs": 1})
    with pytest.raises(NoDriver, match="does not declare what it returns"):
        Subject(InProcess(_Doubling)).drive("functions:keeping")


@pytest.mark.parametrize("came", [{"result": 1, "graphs": 1}, 1, None])
def test_undeclared_values_of_a_driver_are_refused(came, monkeypatch):
    monkeypatch.setattr(functions, "keeping", driver("result")(lambda thing: came))
    subject = Subject(InProcess(_Doubling))
    with pytest.raises(NotByValue, match="expected the form that the driver declares"):
        subject.drive("functions:keeping")

    def ends(thing):
        return came
        yield

    monkeypatch.setattr(functions, "keeping", driver("result")(ends))
    with pytest.raises(NotByValue, match="expected the form that the driver declares"):
        subject.drive_generator("functions:keeping").resume()


def test_a_value_that_a_driver_cannot_use_is_the_learners_error():
    with pytest.raises(SubjectRaised):
        Subject(InProcess(3)).drive("dispatch:log_ops", "in place", torch.ones(2))


def echo(count):
    heard = []
    for number in range(count):
        heard.append((yield torch.full((2,), number)))
    return heard


def refused(thing, *args):
    with pytest.raises(NotByValue) as caught:
        thing(*args)
    return str(caught.value)


def test_each_generator_has_a_gradient_mode_of_its_own():
    def quiet():
        weight = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            weight += yield
            weight *= 2
        return (weight * 3).requires_grad

    subject = Subject(InProcess(quiet))
    one, other = subject.generator(), subject.generator()
    for generator in (one, other):
        generator.resume()
    assert torch.is_grad_enabled()
    assert one.resume(1) == ("return", True)
    assert other.resume(1) == ("return", True)
    assert torch.is_grad_enabled()


def test_a_generator_runs_from_yield_to_yield_with_what_it_is_sent():
    generator = Subject(InProcess(echo)).generator(2)
    how, first = generator.resume()
    assert how == "yield"
    assert torch.equal(first, torch.tensor([0, 0]))
    assert generator.resume("one")[1].tolist() == [1, 1]
    assert generator.resume({"two": 2}) == ("return", ["one", {"two": 2}])
    assert generator.resume() == ("return", None)


def test_two_generators_of_one_function_take_turns():
    subject = Subject(InProcess({"count": itertools.count}))
    one, other = (subject.generator(start, of="count") for start in (1, 10))
    assert [g.resume()[1] for g in (one, other, one, other)] == [1, 10, 2, 11]
    assert one.take(3) == [3, 4, 5]


def test_a_value_is_refused_as_a_generator_and_a_generator_as_a_value():
    rows = Subject(InProcess(lambda n: [n]))
    assert refused(rows.generator, 2) == "a list: expected a generator"
    assert "a value of type generator" in refused(Subject(InProcess(echo)), 2)


def test_the_number_of_resumptions_of_a_generator_is_limited(monkeypatch):
    monkeypatch.setattr("hood.judge.verdicts.subject.MAX_RESUMES", 3)
    generator = Subject(InProcess(itertools.count)).generator()
    assert refused(generator.take, 4) == "a generator of more than 3 values"
    assert Subject(InProcess(lambda: iter("ab"))).generator().take(9) == ["a", "b"]


def test_exceptions_and_unsupported_values_of_a_generator_are_reported():
    def broken():
        yield object()
        raise KeyError("here")

    generator = Subject(InProcess(broken)).generator()
    assert "a value of type object" in refused(generator.resume)
    with pytest.raises(SubjectRaised, match="KeyError: 'here'"):
        generator.resume()


@pytest.mark.parametrize("lie", [("stop", 1), ["yield", 1], ("yield",), 7, None])
def test_a_forged_message_from_a_generator_is_no_answer(lie):
    class Lying(InProcess):
        def ask(self, request):
            reply = super().ask(request)
            return reply if request["do"] == "call" else {"value": lie}

    generator = Subject(Lying(itertools.count)).generator()
    assert refused(generator.resume) == "no answer"
