"""torch.compile in a sandbox: a compiler is there, and compiled headers save most of the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.grader.sandbox.inmate import Inmate

pytestmark = [
    pytest.mark.slow(25),
    pytest.mark.usefixtures("own_zygote", "sandbox"),
    pytest.mark.usefixtures("compiler"),
]

FEW = 5
CODE = """
import sys, torch
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
def cpu(): return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
before, begin = set(sys.modules), cpu()
f = torch.compile(lambda x: torch.softmax(x * 2 + 1, -1))
x = torch.arange(600.0).reshape(2, 300)
same = torch.allclose(f(x), torch.softmax(x * 2 + 1, -1))
used = cpu() - begin
missing = sorted(name for name in set(sys.modules) - before if "compile_tasks" not in name)
from torch._dynamo.utils import counters
[same, used, counters["inductor"]["fxgraph_cache_hit"], missing]
"""
# The compiler is called with other flags, for which no headers are there.
OTHERWISE = """
import torch._inductor.config as config
config.cpp.simdlen = 1
torch.compile(torch.sigmoid)(torch.zeros(8)).tolist()
"""


def test_it_compiles_and_finds_compiled_headers(headers: list[Path]) -> None:
    """And nothing but what the code itself compiles is imported in a kernel that has them."""
    used = []
    with Inmate() as inmate:
        used.append(inmate.value(CODE))
    with Inmate(headers=headers[0]) as inmate:
        used.append(inmate.value(CODE))
        assert inmate.value(OTHERWISE) == [0.5] * 8
    (same, text, _, _), (as_well, prepared, hits, missing) = used
    assert [same, as_well] == [True, True]
    assert prepared < text
    assert hits == 0
    assert len(missing) <= FEW, f"add to COMPILER in grader/inside/preload.py: {missing}"
    print(f"first torch.compile: {text:.1f} s of CPU, with compiled headers {prepared:.1f} s")
