"""Run a kernel in a sandbox for every notebook; ``python -m hood doctor`` tests it.

Cooperating sandboxes can signal to each other through the machine's load, and through shared files
in memory. Sandboxes see the path of the Python environment. docs/explanation/walls.md describes
what else a sandbox does not prevent.
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
