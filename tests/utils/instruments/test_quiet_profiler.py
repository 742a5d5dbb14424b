"""A profile writes nothing to stderr, in a process where it is the first profile."""

import os
import subprocess
import sys

import pytest

CODE = """
import torch
{}
with profile() as heard:
    torch.ones(2) + 1
assert "aten::add" in [event.name for event in heard.function_events]
"""


@pytest.mark.parametrize(
    ("module", "quiet"),
    [
        ("torch.autograd.profiler", False),
        ("utils.instruments.quiet_profiler", True),
        ("utils.drivers.cpp_operator", True),
        ("utils.instruments.drawn_clock", True),
    ],
)
def test_the_first_profile_of_a_process_writes_nothing(module, quiet):
    code = CODE.format(f"import {module}\nfrom torch.autograd.profiler import profile")
    # without the variable that another test's import may have set in this process
    around = {name: value for name, value in os.environ.items() if name != "KINETO_LOG_LEVEL"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=around
    )
    assert (run.stderr == "") is quiet
