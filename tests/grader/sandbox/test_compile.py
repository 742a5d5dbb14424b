"""torch.compile in a room: a compiler is there, and a prepared cache saves the time."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pytest

from grader.sandbox.warm import cool
from tests.grader.sandbox.inmate import Inmate

pytestmark = [
    pytest.mark.slow(25),
    pytest.mark.usefixtures("room"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="not run: no C++ compiler here"),
]

FEW = 5
CODE = """
import time, torch
begin = time.perf_counter()
f = torch.compile(lambda x: torch.softmax(x * 2 + 1, -1))
x = torch.arange(600.0).reshape(2, 300)
same = torch.allclose(f(x), torch.softmax(x * 2 + 1, -1))
from torch._dynamo.utils import counters
[same, time.perf_counter() - begin, counters["inductor"]["fxgraph_cache_hit"]]
"""
FOLDER = """
import base64, os
{os.path.relpath(os.path.join(top, name), "/tmp/inductor"):
 base64.b64encode(open(os.path.join(top, name), "rb").read()).decode()
 for top, _, names in os.walk("/tmp/inductor") for name in names}
"""


@pytest.fixture(autouse=True, scope="module")
def _a_zygote_of_its_own():
    """Its zygote has imported the compiler, which no other test expects."""
    cool()
    yield
    cool()


def test_it_compiles_and_takes_a_prepared_cache(tmp_path: Path) -> None:
    with Inmate() as inmate:
        same, cold, hits = inmate.value(CODE)
        assert same
        assert hits == 0
        listing = inmate.value(FOLDER.replace("\n ", " "))
    for name, data in listing.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))
    with Inmate(cache=tmp_path) as inmate:
        same, warm, hits = inmate.value(CODE)
        assert same
        assert hits == 1
        assert warm < cold
    print(f"first torch.compile: {cold:.1f} s, with a prepared cache {warm:.1f} s")


def test_for_a_lab_that_compiles_the_compiler_is_there_too(tmp_path: Path) -> None:
    """Nothing but what the code itself compiles is imported in its kernel."""
    with Inmate(cache=tmp_path) as inmate:
        missing = inmate.value(
            "import sys, torch\n"
            "before = set(sys.modules)\n"
            "torch.compile(lambda x: torch.softmax(x * 2 + 1, -1))(torch.ones(2, 8))\n"
            "sorted(name for name in set(sys.modules) - before if 'compile_tasks' not in name)",
        )
    assert len(missing) <= FEW, f"add to COMPILER in grader/sandbox/preload.py: {missing}"
