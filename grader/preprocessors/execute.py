"""Runs a rebuilt submission, so that what a cell costs is its own learner's points and no more."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from jupyter_core.utils import run_sync
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_output
from nbgrader.preprocessors import Execute as NbGraderExecute
from nbgrader.utils import is_grade, is_locked
from traitlets import Integer, default

from grader.preprocessors.outputs import settle, shorten, split_hidden, without_stderr

ROOT = Path(__file__).resolve().parents[2]
TIMED_OUT = "TimeLimit"


class Execute(NbGraderExecute):
    """nbgrader's Execute with these rules besides:

    - the kernel gets a seed, kept in the notebook as ``metadata.open_the_hood.seed``; a notebook
      that comes with one keeps it;
    - the visible part of a cell that calls ``verify`` may raise: the hidden part runs all the
      same, and its verdict alone decides;
    - stderr costs no points;
    - a cell has ``metadata.open_the_hood.cell_seconds``, or else ``timeout``; then it is
      interrupted, after a grace the kernel is killed, and the cells after it say so.
    """

    max_cell_seconds = Integer(
        0, help="Seconds that no cell with a learner's code may exceed; 0 for no such limit."
    ).tag(config=True)

    # after an interrupt, the time that a check needs to say what it has seen so far
    iopub_timeout = Integer(5, help="Seconds from interrupt to kill.").tag(config=True)

    @default("shutdown_kernel")
    def _shutdown_kernel_default(self) -> str:
        return "immediate"  # nothing of a learner's runs after the last cell

    def preprocess(
        self, nb: NotebookNode, resources: Any = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Run every code cell of ``nb``, in place."""
        ours = nb.metadata.setdefault("open_the_hood", NotebookNode())
        ours.setdefault("seed", secrets.token_hex(16))
        self._seed = ours.seed
        self._stopped = ""
        self._seconds = ours.get("cell_seconds", self.timeout)
        return super().preprocess(nb, resources, km)

    def start_new_kernel(self, **kwargs: Any) -> None:
        """Start the kernel with the seed, and able to import what the checks need."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        # ipykernel warns about its ports at every start, which no grading log needs
        self.extra_arguments = [*self.extra_arguments, "--IPKernelApp.log_level=40"]
        environment = {**os.environ, "OPEN_THE_HOOD_SEED": self._seed, "PYTHONPATH": path}
        super().start_new_kernel(env=environment, **kwargs)

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Run one cell; whatever it does, the next one gets its turn."""
        self._check_assign_resources(resources)
        if cell.cell_type != "code":
            return cell, self.resources
        self._limit(cell)
        parts = split_hidden(cell.source) if is_grade(cell) else None
        if parts is None:
            outputs, problem = self._run(cell.source, cell, index)
            if is_grade(cell):
                outputs = [without_stderr(output) for output in outputs]
            if problem:
                outputs.append(_error(problem))
            cell.outputs = outputs
        else:
            visible, _ = self._run(parts[0], cell, index)
            hidden, problem = self._run(parts[1], cell, index)
            cell.outputs = settle(cell, visible, hidden, problem)
        # a later cell that updates an earlier display finds nothing to write to
        self.clear_display_id_mapping(index)
        self.nb.cells[index] = cell
        return cell, self.resources

    def _limit(self, cell: NotebookNode) -> None:
        """Set the cell's time. What comes with the lab, such as imports, has all the lab's time."""
        given = is_locked(cell) and not is_grade(cell)
        capped = self.max_cell_seconds and not given
        self.timeout = min(self._seconds, self.max_cell_seconds) if capped else self._seconds
        self.error_on_timeout = {
            "ename": TIMED_OUT,
            "evalue": f"stopped after {self.timeout} s",
            "traceback": [f"{TIMED_OUT}: this cell was stopped after {self.timeout} s"],
        }

    def _run(self, source: str, cell: NotebookNode, index: int) -> tuple[list[NotebookNode], str]:
        """Outputs of some code, and why it could not be run to its end, or empty."""
        if self._stopped:
            return [], f"not run, because {self._stopped}"
        part = new_code_cell(source, metadata=cell.metadata)
        self.nb.cells[index] = part
        self.clear_display_id_mapping(index)
        problem = ""
        try:
            self.execute_cell(part, index, store_history=True)
        except CellTimeoutError:
            # it did not heed the interrupt either
            run_sync(self.km.shutdown_kernel)(now=True)
            problem = f"this cell did not end within {self.timeout} s and could not be interrupted"
            self._stopped = "an earlier cell did not end and could not be interrupted"
        except DeadKernelError:
            problem = "the kernel died in this cell"
            self._stopped = "the kernel died in an earlier cell"
        except Exception:
            # A learner's code can send any message; what can't be read is their loss alone.
            self.log.exception("An output of cell %s could not be read", index)
            problem = "the output of this cell could not be read"
        cell.execution_count = part.get("execution_count")
        return shorten(part.outputs), problem


def _error(problem: str) -> NotebookNode:
    return new_output("error", ename="NotRun", evalue=problem, traceback=[f"NotRun: {problem}"])
