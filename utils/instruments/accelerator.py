"""The kinds of GPU that this course runs on. To add a kind, change only this module.

PyTorch derives a device's dispatch key (CUDA, MPS) from the device's type. NVIDIA's and AMD's GPUs
have the same type in PyTorch: ``cuda``. PyTorch's build decides whether ``cuda`` means NVIDIA or
AMD.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Gpu:
    """A device that PyTorch can use in addition to the CPU."""

    name: str  # the driver's name for it
    target: str = ""  # the target of compiled kernels, such as "sm_90"; "" if there is no such name
    memory: int | None = None  # bytes; None if the device shares the CPU's memory


@dataclass(frozen=True)
class Accelerator:
    """A kind of GPU."""

    device_type: str  # its type in PyTorch, as in ``tensor.device.type``
    # the name of Triton's backend; "" if Triton has no backend, so that kernels are interpreted on
    # the CPU
    triton: str = ""
    warp: int = 32  # threads of one warp
    # A regular expression for names of targets, such as "sm_90". Kernels compile for these targets
    # also without a GPU. The first group is the number that Triton expects. "" if there is none.
    targets: str = ""

    @property
    def module(self) -> Any:
        """PyTorch's module for the device, such as ``torch.cuda``."""
        return torch.get_device_module(self.device_type)

    def is_available(self) -> bool:
        return self.module.is_available()

    def current(self, device: torch.device) -> AbstractContextManager[None]:
        """Return a context in which kernels are launched on ``device``."""
        return self.module.device(device)

    def gpus(self) -> tuple[Gpu, ...]:
        if not hasattr(self.module, "get_device_properties"):
            return tuple(Gpu(self.device_type) for _ in range(self.module.device_count()))
        properties = map(self.module.get_device_properties, range(self.module.device_count()))
        return tuple(Gpu(gpu.name, _target(gpu), gpu.total_memory) for gpu in properties)


class _Apple(Accelerator):
    """Apple's GPU: one for each machine. PyTorch has no properties of it, and Triton no backend."""

    def is_available(self) -> bool:
        return torch.backends.mps.is_available()

    def gpus(self) -> tuple[Gpu, ...]:
        return (Gpu("Apple GPU"),)


# The kinds, in the order of preference.
ACCELERATORS: tuple[Accelerator, ...] = (
    Accelerator("cuda", triton="cuda", targets=r"sm_(\d+)"),
    _Apple("mps"),
)


def available() -> Accelerator | None:
    """Return the accelerator that PyTorch can use on this machine, or None."""
    return next((kind for kind in ACCELERATORS if kind.is_available()), None)


def compiles_for(device: torch.device) -> Accelerator | None:
    """Return the accelerator of a device, or None if Triton does not compile for the device."""
    return next((kind for kind in _compiled() if kind.device_type == device.type), None)


def kernel_devices() -> tuple[str, ...]:
    """Return the device types that Triton kernels of this course run on: ``cpu`` and GPUs."""
    return "cpu", *(kind.device_type for kind in _compiled())


def triton_target(target: str) -> tuple[str, int, int]:
    """Return Triton's target for a name such as "sm_90": backend, number, threads of a warp."""
    for kind in _compiled():
        if kind.targets and (match := re.fullmatch(kind.targets, target)):
            return kind.triton, int(match[1]), kind.warp
    raise ValueError(f'target: expected "sm_80", "sm_90" or the like, got {target!r}')


def _compiled() -> list[Accelerator]:
    return [kind for kind in ACCELERATORS if kind.triton]


def _target(properties: Any) -> str:
    """Return NVIDIA's name such as sm_90, AMD's name such as gfx942, or "" for another GPU."""
    amd = getattr(properties, "gcnArchName", "") if torch.version.hip else ""
    if amd or not hasattr(properties, "major"):
        return amd.partition(":")[0]
    return f"sm_{properties.major}{properties.minor}"
