"""Run a kernel in a sandbox for every notebook; ``python -m hood doctor`` tests it.

Sandboxes that cooperate can signal to each other by load and by which shared files are in memory,
and see the path of the Python environment. docs/explanation/walls.md has the other limits.
"""

from hood.grader.sandbox.kernel import (
    KernelDied,
    NotInterrupted,
    SandboxedKernel,
    TimeIsUp,
    UnsafeKernel,
)
from hood.grader.sandbox.limits import Limits
from hood.grader.sandbox.warm_process import CannotSandbox, FilesRefused, ZygoteDied

__all__ = [
    "CannotSandbox",
    "FilesRefused",
    "KernelDied",
    "Limits",
    "NotInterrupted",
    "SandboxedKernel",
    "TimeIsUp",
    "UnsafeKernel",
    "ZygoteDied",
]
