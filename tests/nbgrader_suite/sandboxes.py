"""A pytest plugin: nbgrader executes everything in a sandboxed kernel."""

import os
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import Execute

from hood.grader.sandbox import Limits, SandboxedKernel, TimeIsUp
from hood.grader.sandbox.outputs import Outputs


def pytest_configure() -> None:
    """Before any test: only the kernel changes, nbgrader's own steps stay."""
    Execute.preprocess = _preprocess


def _preprocess(
    self: Execute, nb: NotebookNode, resources: Any = None, km: Any = None
) -> tuple[NotebookNode, Any]:
    folder = ((resources or {}).get("metadata") or {}).get("path") or os.getcwd()
    name = nb.metadata.get("kernelspec", {}).get("name", "")
    with SandboxedKernel(name, limits=Limits(), files=Path(folder)) as kernel:
        for cell in nb.cells:
            if cell.cell_type == "code" and cell.source.strip():
                _run(self, kernel, cell)
    return nb, resources


def _run(self: Execute, kernel: SandboxedKernel, cell: NotebookNode) -> None:
    outputs = Outputs()
    try:
        said = kernel.run(cell.source, self.timeout, heard=lambda it, _: it and outputs.add(it))
        cell.execution_count = said["count"]
        outputs.number(said["count"])
    except TimeIsUp:
        said = self.error_on_timeout
    cell.outputs = outputs.shown
    reply = {"status": "error" if said["ename"] else "ok", "traceback": [], **said}
    self.on_cell_executed(cell=cell, execute_reply={"content": reply})
