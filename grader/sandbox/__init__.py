"""Run a kernel in a sandbox for every submission; ``python -m grader doctor`` tests it.

Known limits of the sandbox:

- Two sandboxes that run side by side can send each other slow messages, if both cooperate: one can
  measure the other's load by the time that its own work takes, and by which parts of shared files
  are in memory.
- The path of the Python environment is visible inside, in every module's path and in
  /proc/self/mountinfo.
- There are no cgroups. The memory of a sandbox is measured ten times a second, so it can exceed its
  limit for a tenth of a second. A sandbox that starts new sessions all the time gets more than its
  share of the processor.
"""

from grader.sandbox.limits import Limits
from grader.sandbox.manager import SandboxedKernelManager
from grader.sandbox.warm_process import CannotSandbox, FilesRefused, ZygoteDied

__all__ = ["CannotSandbox", "FilesRefused", "Limits", "SandboxedKernelManager", "ZygoteDied"]
