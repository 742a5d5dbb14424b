"""Every zygote uses the headers that were compiled once on a machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hood.phase_paths import ROOT
from utils.sandbox.headers import INDEX, LIBRARIES

pytestmark = [
    pytest.mark.slow(10),
    pytest.mark.usefixtures("compiler"),
]

# Prints for each folder, in a separate process, which trial programs are compiled, and which
# instructions torch chooses.
USE = """
import json, os, sys
from pathlib import Path
from torch._inductor import cpu_vec_isa
from utils.sandbox import headers

for folder in sys.argv[1:]:
    if os.fork() == 0:
        tried = []
        cpu_vec_isa.VecISA.check_build = lambda isa, code: bool(tried.append(str(isa)))
        headers.use(Path(folder), '/tmp/headers')
        print(json.dumps([tried, str(cpu_vec_isa.pick_vec_isa())]))
        break
    os.wait()
"""


def use(*folders: Path) -> Iterator[tuple[list[str], str]]:
    """Yield the tried and the chosen instructions for each folder."""
    done = subprocess.run(
        [sys.executable, "-c", USE, *map(str, folders)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for line in done.stdout.splitlines():
        tried, taken = json.loads(line)
        yield tried, taken


def test_no_trial_program_is_compiled_twice(headers: list[Path], tmp_path: Path) -> None:
    found = json.loads((headers[0] / INDEX).read_text())
    assert any(found["instructions"].values()), "this processor has no vector instructions?"
    (tmp_path / INDEX).write_text(json.dumps(found | {"instructions": {}}))
    (none, taken), (tried, nothing_works) = use(headers[0], tmp_path)
    assert none == []
    assert taken != "INVALID_VEC_ISA"
    assert taken in tried, "what is not recorded is tried"
    assert nothing_works == "INVALID_VEC_ISA"


# Prints the number of threads, and what is found in advance for each kernel.
PRELOADED = """
import inspect, json, os
from utils.sandbox import preload_compiler

preload_compiler()
threads = len(os.listdir("/proc/self/task"))
from torch._dynamo import guards
from torch._inductor import cpu_vec_isa
from torch._inductor.fx_passes import joint_graph, post_grad
import torch

cpu_vec_isa.VecISA.check_build = lambda *_: False  # or eight seconds of trial programs
torch.compile(lambda x: x.exp())(torch.zeros(8, requires_grad=True)).sum().backward()
known = [passes.lazy_init.cache_info() for passes in (joint_graph, post_grad)]
used = "profile_guard_manager(" in inspect.getsource(guards)
print(json.dumps([threads, [(info.misses, info.hits > 0) for info in known], used]))
"""


def test_the_compiler_is_preloaded_without_a_thread_and_repeats_no_search() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRELOADED],
        cwd=ROOT,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",  # else another run's graph would be used
        },
        capture_output=True,
        text=True,
        check=True,
    )
    threads, patterns, used = json.loads(done.stdout)
    assert threads == 1, "a fork of a process with threads can hang"
    assert patterns == [[1, True], [1, True]], (
        "Inductor registers its patterns with other arguments"
    )
    assert used, "torch no longer times guards under that name: see utils/sandbox/imports.py"


def test_kernels_are_linked_with_empty_libraries_of_torchs_names(headers: list[Path]) -> None:
    made = headers[0] / LIBRARIES
    assert {"libtorch.so", "libtorch_cpu.so", "libtorch_python.so"} <= {
        p.name for p in made.iterdir()
    }
    for path in made.iterdir():
        told = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True)
        assert f"SONAME               {path.name}" in told.stdout
        assert path.stat().st_size < 100_000
