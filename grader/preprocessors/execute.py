"""Run a rebuilt submission in a sandbox; whatever a cell does can only cost its own points."""

from __future__ import annotations

import asyncio
import copy
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_core.utils import ensure_async, run_sync
from nbclient.client import CellExecutionComplete
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import Execute as NbGraderExecute
from nbgrader.utils import is_grade, is_locked, is_solution
from traitlets import Bool, Integer, default

from grader.inside.usage import WAITS
from grader.judging.graded_cell import (
    NOT_RUN,
    TIMED_OUT,
    Stop,
    final_outputs,
    made_output,
    message_size,
    shorten_outputs,
    verified_parts,
    without_stderr,
    without_verdict,
)
from grader.judging.learner_source import LearnerSource, importable
from grader.metadata import KEY
from grader.phase_paths import ROOT, environment_with
from grader.run_record import RunRecord, record, record_note
from grader.sandbox import FilesRefused, Limits, SandboxedKernelManager, ZygoteDied
from grader.sandbox.compiled_headers import prepared_headers
from grader.submission.notes import Note, NoteKind
from grader.verdict import Cause
from grader.verify import EXAMPLE_SECONDS, NO_EXAMPLES_VARIABLE, SEED_VARIABLE
from utils.instruments.toolchain import inductor_lacks
from utils.notebook.one_line import NBGRADER

if TYPE_CHECKING:
    from grader.judging.examiner import Examiner

# A kernel that prints on after the interrupt is killed when its output exceeds FLOOD times the
# limit. On a busy machine several times the limit is printed before the interrupt arrives.
FLOOD = 16
MAX_COUNT = 1_000_000
UNREADABLE = "the output of this cell could not be read"
# For a kernel without a sandbox, where `exit()` would end the kernel a tenth of a second later.
# A sandbox's own kernel needs no such line (`grader.inside.kernel_app`).
STAYS = "get_ipython().__class__.ask_exit = lambda shell: exec('raise SystemExit')"
# For the failing examples of a whole notebook, which are searched after its last cell.
ALL_EXAMPLES_SECONDS = 20


class KernelLost(Exception):
    """A kernel died, and no limit was the reason: its notebook runs once more from its start."""


class Execute(NbGraderExecute):
    """nbgrader's Execute with additional rules:

    - The kernel runs in its own sandbox (:mod:`grader.sandbox`), which ``extra_arguments`` do not
      reach. If this machine cannot make one, nothing runs. ``unsafe_no_sandbox`` turns it off.
    - A cell that calls ``verify`` is judged here, outside of the sandbox, also where its visible
      part raises. The kernel only answers calls; a verdict that comes from it does not count.
    - The cases are drawn from ``metadata.open_the_hood.seed``, by default a fresh one. A sandboxed
      kernel never learns it.
    - Output on stderr costs no points.
    - After the last cell, when all verdicts are final, failing examples are searched for
      (:mod:`grader.judging.example`), unless ``metadata.open_the_hood.examples`` is false. Whatever
      the learner's code does then can only cost the examples.
    - The limits are those of the lab (:class:`grader.sandbox.Limits`). A cell that takes too long
      and a notebook that prints too much are interrupted. A kernel that ignores the interrupt is
      killed, and the outputs of the later cells say so.
    - Where a kernel dies in its sandbox and no limit was the reason, the notebook is run a second
      time, because Linux or the machine may have killed it. Code that kills it does so again.
    """

    extra_arguments: list[str]
    timeout: Any

    unsafe_no_sandbox = Bool(
        False, help="Run submissions with the grader's own rights. Never use it on others' work."
    ).tag(config=True)

    max_cell_seconds = Integer(
        0, help="Upper limit in seconds for each cell with a learner's code; 0 for no limit."
    ).tag(config=True)

    # nobody reads when each cell began and ended
    record_timing = Bool(False).tag(config=True)

    @default("shutdown_kernel")
    def _shutdown_kernel_default(self) -> str:
        return "immediate"  # no learner's code may run after the last cell

    def preprocess(
        self, nb: NotebookNode, resources: Any = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Run every code cell of ``nb``, in place.

        Raises CannotSandbox, or ZygoteDied if the kernel was lost and the submission did not cause
        it.
        """
        ours = nb.metadata.setdefault(KEY, NotebookNode())
        self._seed = RunRecord.of(nb.metadata).seed or secrets.token_hex(16)
        record(nb, seed=self._seed, sandbox=not self.unsafe_no_sandbox)
        self._limits = Limits.of(nb.metadata)
        self.iopub_timeout = self._limits.grace * WAITS  # by the clock
        self._seconds = ours.get("cell_seconds", self.timeout)
        self._examples = ours.get("examples", True) is not False
        path = ((resources or {}).get("metadata") or {}).get("path")
        if self.unsafe_no_sandbox:
            self.log.warning("NO SANDBOX: this submission runs with your rights on your machine.")
        begun, as_before = time.monotonic(), copy.deepcopy(nb)
        self._may_run_again = not self.unsafe_no_sandbox
        while True:
            self._begun = time.monotonic()
            self._stopped = ""
            self._unwritten: set[str] = set()  # stubs that raised what a stub raises, by grade_id
            self._printed = 0
            self._code = LearnerSource(files=importable(Path(path)) if path else ())
            self._wrong: list[tuple[NotebookNode, Examiner]] = []
            self._polling: asyncio.Task[None] | None = None
            self._above = ""
            try:
                return super().preprocess(nb, resources, km)
            except KernelLost:
                self.log.warning("the kernel died, and no limit was the reason: running once more")
                nb.cells, nb.metadata = as_before.cells, as_before.metadata
                self._may_run_again = False
            finally:
                record(nb, seconds=round(time.monotonic() - begun, 3))

    def create_kernel_manager(self) -> Any:
        if self.unsafe_no_sandbox:
            return super().create_kernel_manager()
        folder = (self.resources.get("metadata") or {}).get("path")
        ours = self.nb.metadata[KEY]
        # where nothing can be compiled, `compile: true` is as "trace", which compiles no C++
        compiles = ours.get("compile") is True and not inductor_lacks()
        traces = ours.get("compile") in (True, "trace") and not compiles
        self.km = SandboxedKernelManager(
            kernel_name=self.nb.metadata.get("kernelspec", {}).get("name", ""),
            limits=self._limits,
            files=Path(folder) if folder else None,
            headers=prepared_headers() if compiles else None,
            preload=[*ours.get("preload", ()), *(["tracer"] if traces else [])],
        )
        return self.km

    def start_new_kernel(self, **kwargs: Any) -> None:
        """Start the kernel, without the submission's files if they cannot be copied.

        Without a sandbox the kernel judges itself, so it gets the seed and can import the grader.
        """
        if self.unsafe_no_sandbox:
            # without the level, ipykernel logs a warning about its ports at every start
            own = ["--IPKernelApp.log_level=40", f"--IPKernelApp.exec_lines=[{STAYS!r}]"]
            self.extra_arguments = [*self.extra_arguments, *own]
            kwargs["env"] = environment_with(ROOT) | {
                SEED_VARIABLE: self._seed,
                NO_EXAMPLES_VARIABLE: "" if self._examples else "1",
                NBGRADER: "autograde",
            }
        try:
            super().start_new_kernel(**kwargs)
        except FilesRefused as refused:
            note = Note(NoteKind.FILES, f"The files beside the notebook were left out: {refused}")
            record_note(self.nb, note)
            self.km.files = None
            super().start_new_kernel(**kwargs)
        self._wait(False)

    def _wait(self, waits: bool) -> None:
        """Say whether the grader waits; a sandbox's own time depends on that."""
        if not self.unsafe_no_sandbox:
            self.km.wait(waits)

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Run one cell, if it is a code cell; whatever it does, the later cells are run too."""
        self._check_assign_resources(resources)
        if cell.cell_type == "code":
            self._run_cell(cell, index)
        self._above = cell.metadata.get("nbgrader", {}).get("grade_id") or self._above
        if index == len(self.nb.cells) - 1:
            self._seek_examples(index)
        return cell, self.resources

    def _run_cell(self, cell: NotebookNode, index: int) -> None:
        begun = time.monotonic()
        total = self._limits.total_seconds
        if self.unsafe_no_sandbox and begun - self._begun > total and not self._stopped:
            run_sync(self.km.shutdown_kernel)(now=True)  # the zygote ends a sandbox at that limit
            self._stopped = f"it ran longer than {total} s in all"
        self._limit(cell)
        parts = verified_parts(cell)
        source = parts[0] if parts else cell.source
        first, stop = self._run(source, cell, index)
        first = [without_verdict(output) for output in first]
        self._code.add(source, given=is_locked(cell), finished=not (stop or self._raised))
        if not stop and self._raised == "NotImplementedError" and is_solution(cell):
            self._unwritten.add(cell.metadata.nbgrader.grade_id)
        if parts is None:
            cell.outputs = [without_stderr(output) for output in first] if is_grade(cell) else first
            if stop:
                cell.outputs.append(_error(stop.problem))
                record(cell, problem=stop.problem)
        else:
            hidden, stop = self._verify(parts[1], cell, index)
            untouched = f"{cell.metadata.nbgrader.grade_id}_solution" in self._unwritten
            cell.outputs = final_outputs(cell, first, hidden, stop, untouched)
        # a later cell must not update a display of this one
        self.clear_display_id_mapping(index)
        self.nb.cells[index] = cell

    def _seek_examples(self, index: int) -> None:
        if not self._wrong:
            return
        self._may_run_again = False  # all points are known
        last, end = self.nb.cells[index], time.monotonic() + ALL_EXAMPLES_SECONDS
        self.timeout = EXAMPLE_SECONDS
        for report, examiner in self._wrong:
            if self._stopped or time.monotonic() > end:
                break
            nowhere = NotebookNode(cell_type="code", source="", metadata={}, outputs=[])
            with examiner.seeking():
                self._run(examiner.question, nowhere, index)
                report.data.update(examiner.report_with_examples().data)
        self.clear_display_id_mapping(index)
        self.nb.cells[index] = last

    def process_message(self, msg: Any, cell: NotebookNode, cell_index: int) -> Any:
        before, size = self._printed, message_size(msg["content"]) + sum(map(len, msg["buffers"]))
        self._printed += size
        most = self._limits.output
        if self._printed > most and msg["msg_type"] != "status":
            if before <= most:
                cell.outputs.append(_error(f"this notebook printed more than {most >> 10} KiB"))
                asyncio.ensure_future(self.km.interrupt_kernel())
            elif before <= FLOOD * most < self._printed:
                asyncio.ensure_future(self.km.shutdown_kernel(now=True))
            return None
        try:
            return super().process_message(msg, cell, cell_index)
        except CellExecutionComplete:
            self._complete = True
            raise

    def on_cell_executed(self, **told: Any) -> None:
        """Remember whether the cell's own code raised; a thread or a callback can show errors."""
        super().on_cell_executed(**told)
        content = told["execute_reply"]["content"]
        self._raised = str(content.get("ename")) if content["status"] == "error" else ""

    async def _async_handle_timeout(
        self, timeout: int, cell: NotebookNode | None = None
    ) -> dict[str, Any] | None:
        """Interrupt a cell whose time is up, and wait for its end as long as the grace lasts."""
        begun = time.monotonic()
        if self.unsafe_no_sandbox:
            if begun - self._asked < WAITS * timeout and os.getloadavg()[0] > (os.cpu_count() or 1):
                return None
            passed = time.monotonic
        else:
            passed = self.km.passed
        reply = await super()._async_handle_timeout(timeout, cell)
        end = passed() + self._limits.grace
        while not self._complete and await ensure_async(self.km.is_alive()):
            if passed() > end or time.monotonic() - begun > self.iopub_timeout:
                raise CellTimeoutError.error_from_timeout_and_cell(
                    "the cell could not be interrupted", timeout, cell or self.nb.cells[0]
                )
            await asyncio.sleep(0.05)
        return reply

    async def _async_poll_kernel_alive(self) -> None:
        self._polling = asyncio.current_task()
        await super()._async_poll_kernel_alive()

    def _limit(self, cell: NotebookNode) -> None:
        """Set a cell's time limit; ``max_cell_seconds`` spares the lab's own cells, as imports."""
        given = is_locked(cell) and not is_grade(cell)
        capped = self.max_cell_seconds and not given
        self.timeout = min(self._seconds, self.max_cell_seconds) if capped else self._seconds
        self.error_on_timeout = {
            "ename": TIMED_OUT,
            "evalue": f"stopped after {self.timeout} s",
            "traceback": [f"{TIMED_OUT}: this cell was stopped after {self.timeout} s"],
        }

    def _verify(
        self, hidden: str, cell: NotebookNode, index: int
    ) -> tuple[list[NotebookNode], Stop | None]:
        """Judge a graded cell; return the report, or the error if there is none, as `_run` does."""
        if self.unsafe_no_sandbox or self._stopped:
            return self._run(hidden, cell, index)
        # imported here, because it imports torch, which a lab without checks does not need
        from grader.judging.examiner import Examiner

        points = float(cell.metadata.nbgrader.points)
        examiner = Examiner(hidden, points, self._seed, self._code, self.km)
        with examiner.asking():
            outputs, stop = self._run(examiner.question, cell, index)
            if self._raised != TIMED_OUT and not examiner.finished():
                errors = [output for output in outputs if output.output_type == "error"]
                if raised := [error for error in errors if error.ename == self._raised]:
                    return raised[-1:], stop
            report = examiner.report()
            if self._examples and not stop and examiner.unexampled():
                self._wrong.append((report, examiner))
            return [report], stop

    def _run(
        self, source: str, cell: NotebookNode, index: int
    ) -> tuple[list[NotebookNode], Stop | None]:
        """Execute code in the kernel; return the outputs, and why it did not run to its end."""
        if self._stopped:
            return [], Stop(Cause.KERNEL_STOPPED, f"not run, because {self._stopped}")
        part = NotebookNode(cell_type="code", source=source, outputs=[], execution_count=None)
        part.metadata = cell.metadata
        self.nb.cells[index] = part
        self.clear_display_id_mapping(index)
        stop: Stop | None = None
        outputs: list[NotebookNode] = []
        self._raised, self._complete, self._asked = "", False, time.monotonic()
        self._wait(True)
        try:
            self.execute_cell(part, index, store_history=True)
        except CellTimeoutError:
            # the code ignored the interrupt
            run_sync(self.km.shutdown_kernel)(now=True)
            late = f"did not end within {self.timeout} s and could not be interrupted"
            stop = Stop(Cause.TIMEOUT, f"this cell {late}")
            self._stopped = f"{self._named(cell)} {late}"
        except DeadKernelError:
            why = "" if self.unsafe_no_sandbox else self.km.why_stopped()
            if self._may_run_again and self.km.died:
                raise KernelLost from None
            why = f": {why}" if why else ""
            stop = Stop(Cause.KERNEL_DIED, f"the kernel died in this cell{why}")
            self._stopped = f"the kernel died in {self._named(cell)}{why}"
        except ZygoteDied:
            raise
        except Exception:
            # A learner's code can send any message. An unreadable one ends this cell only.
            self.log.exception("An output of cell %s could not be read", index)
            stop = Stop(Cause.NOT_EVALUATED, UNREADABLE)
        finally:
            self._wait(False)
            if self._polling is not None:  # nbclient does not cancel it after an exception
                self._polling.cancel()
        count = part.get("execution_count")  # it comes from the kernel and may be any value
        cell.execution_count = count if type(count) is int and 0 <= count < MAX_COUNT else None
        try:
            outputs = shorten_outputs(part.outputs)
        except (AttributeError, KeyError, TypeError):  # an output of an unexpected form
            stop = stop or Stop(Cause.NOT_EVALUATED, UNREADABLE)
        return outputs, stop

    def _named(self, cell: NotebookNode) -> str:
        """Return words for a cell, in which nothing stands that a learner wrote."""
        if own := cell.metadata.get("nbgrader", {}).get("grade_id"):
            return f"the cell `{own}`"
        return f"a cell below `{self._above}`" if self._above else "a cell above all exercises"


def _error(problem: str) -> NotebookNode:
    line = f"{NOT_RUN}: {problem}"
    return made_output("error", ename=NOT_RUN, evalue=problem, traceback=[line])
