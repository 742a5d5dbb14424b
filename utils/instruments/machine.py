"""Find the versions of Python, PyTorch and Triton with which cells run, and the devices.

Nothing here names the machine, its user or a path, so a report can be published.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from utils.instruments.accelerator import Gpu, available, kernel_devices
from utils.instruments.toolchain import Lack, cxx, inductor_lacks, triton_lacks

SYSTEMS = {"Darwin": "macOS"}  # other names for results of platform.system()
CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Machine:
    """Versions and devices."""

    python: str  # version of the Python that runs the cells
    system: str  # "Linux", "macOS" or "Windows"
    architecture: str  # "x86_64", "arm64", …
    torch: str  # PyTorch's version
    build: str  # the platform of PyTorch's build: "CPU", "CUDA 12.8", "ROCm 6.4"
    triton: str | None  # Triton's version; None if it is not installed
    cores: int  # processor cores that this process may use
    threads: int  # threads that one PyTorch op may use
    instructions: str  # the widest instruction set that PyTorch uses, such as "AVX512"
    memory: int | None  # bytes that this process may use at most; None if unknown
    gpus: tuple[Gpu, ...] = ()  # GPUs that PyTorch can use, all of one kind
    gpu_device: str = ""  # their device type in PyTorch; "" without a GPU
    compiler: str = "g++"  # the name of the C++ compiler that `torch.compile` calls
    inductor_lacks: Lack | None = None  # what is missing for `torch.compile`, or None
    # what is missing to launch a Triton kernel on a GPU, or None
    triton_lacks: Lack | None = None

    @property
    def triton_runs(self) -> str:
        """Where a Triton kernel runs: "gpu", "interpreter", or "" if it does not run."""
        if self.triton is None:
            return ""
        if self.gpu_device not in kernel_devices():
            return "interpreter"
        return "" if self.triton_lacks else "gpu"


def this_machine() -> Machine:
    """Return the versions and devices that this process has now."""
    accelerator = available()
    return Machine(
        python=platform.python_version(),
        system=SYSTEMS.get(platform.system(), platform.system()),
        architecture=platform.machine(),
        torch=torch.__version__.partition("+")[0],
        build=_build(),
        triton=_triton(),
        cores=_cores(),
        threads=torch.get_num_threads(),
        instructions=torch.backends.cpu.get_cpu_capability(),
        memory=_memory(),
        gpus=accelerator.gpus() if accelerator else (),
        gpu_device=accelerator.device_type if accelerator else "",
        compiler=Path(cxx()).name,
        inductor_lacks=inductor_lacks(),
        triton_lacks=triton_lacks(),
    )


def _build() -> str:
    if torch.version.hip:
        return f"ROCm {torch.version.hip.partition('-')[0]}"
    return f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"


def _triton() -> str | None:
    # Triton is not imported here. The first import of Triton decides for the whole process whether
    # kernels are interpreted, and a report must not decide this.
    if importlib.util.find_spec("triton") is None:
        return None
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> int | None:
    """Return the bytes of main memory, or of the memory that this container may use."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None
    with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
        found = min(found, int(CGROUP.read_text()))
    return found
