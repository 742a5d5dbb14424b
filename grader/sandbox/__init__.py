"""Run a kernel in a sandbox for every notebook; ``python -m grader doctor`` tests it.

Two sandboxes that run side by side can send each other slow messages, if both cooperate: one can
measure the other's load by the time that its own work takes, and by which parts of shared files are
in memory. The path of the Python environment is visible inside. SECURITY.md has the other limits.
"""

from grader.sandbox.limits import Limits
from grader.sandbox.manager import SandboxedKernelManager
from grader.sandbox.warm_process import CannotSandbox, FilesRefused, ZygoteDied

__all__ = ["CannotSandbox", "FilesRefused", "Limits", "SandboxedKernelManager", "ZygoteDied"]
