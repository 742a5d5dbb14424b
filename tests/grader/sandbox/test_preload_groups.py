"""A lab asks for a group of modules: its kernels have them from the start, and no others do."""

from __future__ import annotations

import pytest

from tests.grader.sandbox.inmate import Inmate

pytestmark = [pytest.mark.slow(8), pytest.mark.usefixtures("own_zygote", "sandbox")]

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


def test_the_first_optimizer_imports_nothing_where_a_lab_asked_for_it() -> None:
    with Inmate() as inmate:  # first, for a zygote forgets nothing
        assert inmate.value("import sys\n'torch._dynamo' in sys.modules") is False
    with Inmate(preload=["optimizers"]) as inmate:
        missing, validates = inmate.value(CODE)
    assert missing == []
    assert validates is True, "torch.distributions begins as torch has it"
