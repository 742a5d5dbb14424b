"""A compiled answer is judged like any other, also by the rules for work by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from hood.grader.sandbox.warm_process import shut_down
from hood.judge.checks.exercise import ByHand, Check, case
from hood.judge.verdicts.judge import judge
from hood.verdict import Cause
from tests.hood.grader.sandbox.inmate import Inmate

pytestmark = pytest.mark.slow(12)

# heard: the calls; traced: the operators that run
HEARD = ByHand("write the exponentials", forbid_names=frozenset({"softmax"}))
TRACED = ByHand("write the exponentials", forbid_ops=frozenset({"aten._softmax"}))


def made(rule: ByHand) -> Check:
    check = Check("shares", parts={"values": 2}, reads="Somewhere", by_hand=rule)

    @check.reference
    def _(x: torch.Tensor) -> torch.Tensor:
        return by_exponentials(x)

    @check.cases
    def _(draw: Any) -> Any:
        for _ in range(2):
            yield case("values", draw.tensor((3, 4)))

    return check


def by_exponentials(x: torch.Tensor) -> torch.Tensor:
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def by_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def in_its_call(function: Callable) -> Callable:
    return lambda x: torch.compile(function, backend="eager")(x)


COMPILED = {
    "as a decorator does": torch.compile,
    "whole": lambda function: torch.compile(function, fullgraph=True),
    "for any size": lambda function: torch.compile(function, backend="eager", dynamic=True),
    "in its call": in_its_call,
}


@pytest.mark.parametrize("rule", [HEARD, TRACED], ids=["heard", "traced"])
@pytest.mark.parametrize("how", COMPILED)
def test_a_right_compiled_answer_passes_and_a_broken_rule_is_found(how: str, rule: ByHand) -> None:
    check = made(rule)
    verdict = judge(check, COMPILED[how](by_exponentials), "s")
    assert (verdict.status, verdict.earned) == ("right", 2)
    refused = judge(check, COMPILED[how](by_torch), "s")
    assert refused.earned == 0
    assert refused.parts[0].cause is Cause.RULE_BROKEN
    assert "softmax" in refused.parts[0].problem


def test_afterwards_it_compiles_again() -> None:
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    answer = torch.compile(by_exponentials, backend=backend)
    assert judge(made(HEARD), answer, "s").status == "right"
    assert not graphs
    answer(torch.ones(2, 3))
    assert len(graphs) == 1


LISTENED = """
import os, sys, torch
from hood.judge.connection import codec
from hood.judge.connection.rpc_server import Answerer
loaded = "torch._dynamo" in sys.modules
def shares(x):
    return torch.compile(lambda x: torch.softmax(x, -1), backend="eager")(x)
asked = {"id": "", "do": "call", "args": (torch.ones(2, 2),), "listen": True}
told = codec.unpack(Answerer(shares).answer(asked))
left = "TORCHDYNAMO_DISABLE" in os.environ
[loaded, told["value"].tolist(), "torch.softmax" in told["called"], left]
"""


@pytest.mark.usefixtures("sandbox")
def test_an_answer_compiled_before_the_compiler_is_loaded_is_recorded() -> None:
    shut_down()  # a warm process forgets nothing that it imported for a lab
    with Inmate() as inmate:
        assert inmate.value(LISTENED) == [False, [[0.5, 0.5]] * 2, True, False]
