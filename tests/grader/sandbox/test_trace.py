"""A lab that only traces: its kernels have Dynamo and Triton loaded, and need no compiler."""

from __future__ import annotations

import pytest

from tests.grader.sandbox.inmate import Inmate

pytestmark = [pytest.mark.slow(12), pytest.mark.usefixtures("own_zygote", "sandbox")]

FEW = 5
CODE = """
import sys, torch
before = set(sys.modules)
from torch.library import custom_op, opcheck
@custom_op("room::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2)
twice.register_fake(lambda x: torch.empty_like(x))
said = opcheck(twice, (torch.ones(3),), test_utils=("test_schema", "test_faketensor"))
compiled = torch.compile(lambda x: twice(x) + 1, backend="aot_eager", fullgraph=True)
[compiled(torch.ones(3)).tolist(), sorted(said.values()), sorted(set(sys.modules) - before)]
"""


def test_what_traces_is_there_from_the_start() -> None:
    known = "import sys\n[n for n in ('triton', 'torch._dynamo.guards') if n in sys.modules]"
    with Inmate() as inmate:  # first, for a zygote forgets nothing
        assert inmate.value(known) == []
    with Inmate(traces=True) as inmate:
        assert inmate.value(known) == ["triton", "torch._dynamo.guards"]
        values, said, missing = inmate.value(CODE)
    assert values == [3.0, 3.0, 3.0]
    assert said == ["SUCCESS", "SUCCESS"]
    assert len(missing) <= FEW, f"add to TRACER in grader/inside/preload.py: {missing}"
