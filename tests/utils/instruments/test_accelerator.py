"""A GPU of another kind is added in one place, and the rest of the course runs on it."""

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from utils.instruments import accelerator, machine, parity, records
from utils.instruments.accelerator import Accelerator, compiles_for, kernel_devices, triton_target
from utils.instruments.launching import launch
from utils.instruments.records import NoRecord
from utils.instruments.toolchain import Lack
from utils.softmax import run

UTILS = Path(accelerator.__file__).parents[1]


class StandIn(Accelerator):
    """A GPU that no machine has: its tensors are on PyTorch's device \"meta\"."""

    entered: list = []

    def is_available(self):
        return True

    @contextmanager
    def current(self, device):
        self.entered.append(device.type)
        yield

    def gpus(self):
        return (accelerator.Gpu("Stand-in 1", "st_7", 2**30),)


@pytest.fixture
def stand_in(monkeypatch):
    one = StandIn("meta", triton="standin", warp=16, targets=r"st_(\d+)")
    monkeypatch.setattr(accelerator, "ACCELERATORS", (one, *accelerator.ACCELERATORS))
    monkeypatch.setattr(StandIn, "entered", [])
    return one


class Kernel:
    """Replaces a kernel that Triton would compile, and records its launches."""

    def __init__(self):
        self.launched = []

    @staticmethod
    def fn(x, n):
        raise AssertionError("a compiled kernel is not interpreted")

    def __getitem__(self, grid):
        return lambda **arguments: self.launched.append((grid, arguments))


def test_a_kernel_is_launched_on_it(stand_in):
    kernel, x = Kernel(), torch.empty(8, device="meta")
    launch(kernel, (2,), x, 3, num_warps=8)
    assert kernel.launched == [((2,), {"x": x, "n": 3, "num_warps": 8})]
    assert stand_in.entered == ["meta"]


def test_the_softmax_is_launched_on_it_as_on_any_gpu(stand_in, monkeypatch):
    kernel, x = Kernel(), torch.empty(4, 600, device="meta")
    monkeypatch.setattr(run, "find_kernel", lambda direction, chosen: kernel)
    y = run.forward(x)
    [(grid, arguments)] = kernel.launched
    assert (y.shape, stand_in.entered) == (x.shape, ["meta"])
    assert arguments["num_warps"] == run.choose("forward", 4, 4, 600).warps
    assert len(grid) == 1


def test_it_has_a_target_and_the_machine_shows_it(stand_in, monkeypatch):
    assert triton_target("st_7") == ("standin", 7, 16)
    assert triton_target("sm_90") == ("cuda", 90, 32)
    assert kernel_devices() == ("cpu", "meta", "cuda")
    found = machine.this_machine()
    assert found.gpu_device == "meta"
    assert [gpu.name for gpu in found.gpus] == ["Stand-in 1"]
    monkeypatch.setattr(machine, "_triton", lambda: "3.7.1")
    monkeypatch.setattr(machine, "triton_lacks", lambda: None)
    assert machine.this_machine().triton_runs == "gpu"


def test_logits_are_compared_with_a_run_on_it(stand_in, monkeypatch, tmp_path):
    asked = []

    class Model:
        def to(self, device, dtype):
            asked.append((device, dtype))
            return lambda tokens: torch.zeros(2, 32, 600)

    monkeypatch.setattr(parity, "load_minigpt", Model)
    monkeypatch.setattr(parity, "triton_lacks", lambda: None)
    found = parity.gpu_run()
    assert found.device == "meta"
    assert found.words == "a run on this machine's Stand-in 1"
    assert asked == [("meta", dtype) for dtype in parity.TOLERANCES]
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    monkeypatch.setattr(parity, "triton_lacks", lambda: Lack(("gcc",), (), "install a compiler"))
    with pytest.raises(NoRecord):
        parity.gpu_run()


@pytest.mark.slow(4)
def test_the_softmax_is_an_operator_of_its_device():
    """The operators are registered when their module is imported, so this is a new process."""
    code = """
from utils.instruments import accelerator
accelerator.ACCELERATORS += (accelerator.Accelerator("xpu", triton="intel"),)
import torch, utils.softmax
has = torch._C._dispatch_has_kernel_for_dispatch_key
for name in ("softmax", "softmax_backward"):
    print([key for key in ("CPU", "CUDA", "XPU", "MPS") if has(f"open_the_hood::{name}", key)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['CPU', 'CUDA', 'XPU']"] * 2


def test_only_what_triton_compiles_for_is_launched_on():
    assert compiles_for(torch.device("cuda", 1)).triton == "cuda"
    assert compiles_for(torch.device("cpu")) is None
    assert compiles_for(torch.device("mps")) is None  # interpreted, on the CPU
    assert compiles_for(torch.device("meta")) is None
    with pytest.raises(ValueError, match='expected "sm_80", "sm_90" or the like, got \'h100\''):
        triton_target("h100")


@pytest.mark.parametrize(
    ("hip", "properties", "target"),
    [
        (None, SimpleNamespace(major=9, minor=0), "sm_90"),
        ("6.4", SimpleNamespace(major=9, minor=4, gcnArchName="gfx942:sramecc+:xnack-"), "gfx942"),
        (None, SimpleNamespace(name="neither"), ""),
    ],
)
def test_a_gpu_is_named_by_its_target(monkeypatch, hip, properties, target):
    monkeypatch.setattr(torch.version, "hip", hip)
    assert accelerator._target(properties) == target


def test_no_other_module_asks_for_a_kind_of_gpu():
    """Views draw other machines, and ``compiling`` describes a machine to Inductor, so both name
    machines.

    A sandbox's imports are listed by the names of modules.
    """
    names = re.compile(r"[\"\']cuda[\"\']|torch\.cuda|torch\.backends\.mps|GPUTarget\([\"\']")
    exempt = {"views", "compiling", "accelerator.py", "imports.py"}
    others = [p for p in UTILS.rglob("*.py") if not exempt & set(p.parts)]
    assert len(others) > 20
    assert [p.name for p in others if names.search(p.read_text())] == []
