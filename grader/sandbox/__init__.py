"""A warm, sandboxed kernel for every submission; `python -m grader doctor` tries it.

What sandboxes do not close: who runs beside another can feel its load, in the time that its own
work takes and in what of shared files lies in memory, so two that agree on it can pass slow
messages. Where Python's environment lies is seen inside, in every module's path and in
/proc/self/mountinfo. Without cgroups a sandbox's memory is looked at ten times a second, so it can
be exceeded for so long, and a sandbox that starts new sessions all the time has more of the
processor than its share.
"""

from grader.sandbox.limits import Limits
from grader.sandbox.manager import SandboxedKernelManager
from grader.sandbox.warm_process import CannotSandbox, FilesRefused, ZygoteDied

__all__ = ["CannotSandbox", "FilesRefused", "Limits", "SandboxedKernelManager", "ZygoteDied"]
