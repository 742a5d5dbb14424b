"""What was compiled once on a machine is used, and not compiled again, by each zygote."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.inside.headers import INDEX
from grader.phase_paths import ROOT

pytestmark = [
    pytest.mark.slow(10),
    pytest.mark.skipif(shutil.which("g++") is None, reason="not run: no C++ compiler here"),
]

# Says which trial programs are compiled, and which instructions torch takes in the end.
USE = """
import json, sys
from pathlib import Path
from torch._inductor import cpu_vec_isa
from grader.inside import headers

tried = []
cpu_vec_isa.VecISA.check_build = lambda isa, code: bool(tried.append(str(isa)))
headers.use(Path(sys.argv[1]))
print(json.dumps([tried, str(cpu_vec_isa.pick_vec_isa())]))
"""


def use(folder: Path) -> tuple[list[str], str]:
    """Return the instructions that were tried, and those that were taken, in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", USE, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tried, taken = json.loads(done.stdout)
    return tried, taken


def test_no_trial_program_is_compiled_twice(headers: list[Path], tmp_path: Path) -> None:
    found = json.loads((headers[0] / INDEX).read_text())
    assert any(found["instructions"].values()), "this processor has no vector instructions?"
    tried, taken = use(headers[0])
    assert tried == []
    assert taken != "INVALID_VEC_ISA"

    (tmp_path / INDEX).write_text(json.dumps(found | {"instructions": {}}))
    tried, nothing_works = use(tmp_path)
    assert taken in tried, "what is not recorded is tried"
    assert nothing_works == "INVALID_VEC_ISA"
