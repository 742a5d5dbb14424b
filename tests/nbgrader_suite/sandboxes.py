"""A pytest plugin: whatever nbgrader executes, it executes in a kernel in a sandbox of its own."""

import os
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import Execute

from grader.sandbox import Limits, SandboxedKernelManager


def pytest_configure() -> None:
    """Before any test: the kernel is all that changes, nbgrader's own steps stay as they are."""
    Execute.create_kernel_manager = _create_kernel_manager


def _create_kernel_manager(self: Execute) -> Any:
    folder = (self.resources.get("metadata") or {}).get("path") or os.getcwd()
    self.km = SandboxedKernelManager(
        kernel_name=self.nb.metadata.get("kernelspec", {}).get("name", ""),
        limits=Limits(),
        files=Path(folder),
    )
    return self.km
