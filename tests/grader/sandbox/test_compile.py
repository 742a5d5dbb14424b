"""torch.compile in a sandbox: a compiler is there, and compiled headers save most of the time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.sandbox.compiled_headers import prepared_headers
from grader.sandbox.warm_process import cool
from tests.grader.sandbox.inmate import Inmate

pytestmark = [
    pytest.mark.slow(25),
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="not run: no C++ compiler here"),
]

FEW = 5
CODE = """
import time, torch
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
def cpu(): return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
begin = cpu()
f = torch.compile(lambda x: torch.softmax(x * 2 + 1, -1))
x = torch.arange(600.0).reshape(2, 300)
same = torch.allclose(f(x), torch.softmax(x * 2 + 1, -1))
from torch._dynamo.utils import counters
[same, cpu() - begin, counters["inductor"]["fxgraph_cache_hit"]]
"""
# The compiler is called with other flags, for which no headers are there.
OTHERWISE = """
import torch._inductor.config as config
config.cpp.simdlen = 1
torch.compile(torch.sigmoid)(torch.zeros(8)).tolist()
"""


@pytest.fixture(autouse=True, scope="module")
def _a_zygote_of_its_own():
    """Its zygote has imported the compiler, which no other test expects."""
    cool()
    yield
    cool()


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compiled headers that were not there before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
        yield prepared_headers()


def test_it_compiles_and_finds_compiled_headers(headers: Path) -> None:
    used = []
    with Inmate() as inmate:
        used.append(inmate.value(CODE))
    with Inmate(headers=headers) as inmate:
        used.append(inmate.value(CODE))
        assert inmate.value(OTHERWISE) == [0.5] * 8
    assert [same for same, _, _ in used] == [True, True]
    (_, text, _), (_, prepared, hits) = used
    assert prepared < text
    assert hits == 0
    print(f"first torch.compile: {text:.1f} s of CPU, with compiled headers {prepared:.1f} s")


def test_for_a_lab_that_compiles_the_compiler_is_there_too(headers: Path) -> None:
    """Nothing but what the code itself compiles is imported in its kernel."""
    with Inmate(headers=headers) as inmate:
        missing = inmate.value(
            "import sys, torch\n"
            "before = set(sys.modules)\n"
            "torch.compile(lambda x: torch.softmax(x * 2 + 1, -1))(torch.ones(2, 8))\n"
            "sorted(name for name in set(sys.modules) - before if 'compile_tasks' not in name)",
        )
    assert len(missing) <= FEW, f"add to COMPILER in grader/inside/preload.py: {missing}"
