"""The facts about this machine, compared with other sources."""

from __future__ import annotations

import getpass
import platform
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from utils.instruments import machine
from utils.instruments.machine import this_machine
from utils.instruments.toolchain import Lack


def test_the_facts_are_those_of_this_process():
    found = this_machine()
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert torch.__version__.startswith(found.torch)
    assert found.threads == torch.get_num_threads()
    assert found.cores >= 1
    assert bool(found.gpus) == bool(found.gpu_device)
    assert (found.build == "CPU") == (torch.version.cuda is None and torch.version.hip is None)


def test_a_container_gets_its_own_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "memory.max")
    whole = this_machine().memory
    (tmp_path / "memory.max").write_text("1048576\n")
    assert this_machine().memory == 1048576
    (tmp_path / "memory.max").write_text("max\n")
    assert this_machine().memory == whole


@pytest.mark.parametrize(
    ("triton", "device", "runs"),
    [
        (None, "cuda", ""),
        ("3", "cuda", "gpu"),
        ("3", "", "interpreter"),
        ("3", "mps", "interpreter"),
    ],
)
def test_the_place_where_a_triton_kernel_runs_is_known(triton, device, runs):
    there = replace(this_machine(), triton_lacks=None)
    assert replace(there, triton=triton, gpu_device=device).triton_runs == runs


def test_no_kernel_runs_on_a_gpu_where_its_launcher_cannot_be_compiled():
    lack = Lack(("gcc",), ("g++",), "sudo apt-get install g++")
    there = replace(this_machine(), triton="3", triton_lacks=lack)
    assert replace(there, gpu_device="cuda").triton_runs == ""
    assert replace(there, gpu_device="").triton_runs == "interpreter"


@pytest.mark.usefixtures("nothing_compiles")
def test_missing_compilers_are_facts():
    found = this_machine()
    assert found.compiler == "g++"
    assert found.inductor_lacks.tools[0] == "g++"


def test_a_missing_triton_is_reported(monkeypatch):
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    assert this_machine().triton is None


def test_nothing_names_the_machine_or_its_user():
    facts = repr(this_machine())
    assert platform.node() not in facts
    assert "/" not in facts.replace("N/A", "")
    assert len(getpass.getuser()) < 3 or getpass.getuser() not in facts


@pytest.mark.slow(2)
def test_a_report_does_not_import_triton():
    """The first import of Triton decides how kernels run, for the whole process."""
    code = "import sys; from utils.instruments.machine import this_machine; this_machine(); "
    code += "print('triton.language' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
