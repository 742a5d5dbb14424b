"""A lab asks for a group of modules: its kernels have them from the start, and no others do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.sandbox.warm_process import shut_down
from tests.grader.sandbox.inmate import Inmate

pytestmark = [pytest.mark.slow(8), pytest.mark.usefixtures("sandbox")]

CODE = """
import sys, torch
before = set(sys.modules)
p = torch.nn.Parameter(torch.ones(2))
p.grad = torch.ones(2)
optimizer = torch.optim.AdamW([p], lr=0.1)
torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
optimizer.step()
[sorted(set(sys.modules) - before), torch.distributions.Distribution._validate_args]
"""


@pytest.fixture(autouse=True, scope="module")
def _a_zygote_of_its_own() -> Iterator[None]:
    """Its zygote has imported a group, which no other test expects."""
    shut_down()
    yield
    shut_down()


def test_the_first_optimizer_imports_nothing_where_a_lab_asked_for_it() -> None:
    with Inmate() as inmate:  # first, for a zygote forgets nothing
        assert inmate.value("import sys\n'torch._dynamo' in sys.modules") is False
    with Inmate(preload=["optimizers"]) as inmate:
        missing, validates = inmate.value(CODE)
    assert missing == []
    assert validates is True, "torch.distributions begins as torch has it"
