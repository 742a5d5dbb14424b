"""A warm, sandboxed kernel for every submission; `python -m grader doctor` tries it."""

from grader.sandbox.limits import Limits
from grader.sandbox.manager import SandboxedKernelManager
from grader.sandbox.warm import CannotSandbox, FilesRefused, ZygoteDied

__all__ = ["CannotSandbox", "FilesRefused", "Limits", "SandboxedKernelManager", "ZygoteDied"]
