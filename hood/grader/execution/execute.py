"""Run a rebuilt submission in a sandbox. A faulty cell costs only its own points."""

from __future__ import annotations

import copy
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import Execute as NbGraderExecute
from nbgrader.utils import is_grade, is_locked, is_solution
from traitlets import Bool, Integer

from hood.audience import NBGRADER
from hood.course import course_folder
from hood.grader.course_sandbox import compiler_lacks
from hood.grader.execution.graded_cell import (
    NOT_RUN,
    TIMED_OUT,
    Stop,
    final_outputs,
    made_output,
    shorten_outputs,
    verified_parts,
    without_stderr,
    without_verdict,
)
from hood.grader.execution.newer_python import NewerPython
from hood.grader.execution.own_cells import is_own
from hood.grader.execution.own_time import OwnTime
from hood.grader.inside.messages import BadMessage
from hood.grader.run_record import RunRecord, record_note
from hood.grader.sandbox import (
    FilesRefused,
    KernelDied,
    Limits,
    NotInterrupted,
    SandboxedKernel,
    TimeIsUp,
    UnsafeKernel,
    ZygoteDied,
)
from hood.grader.sandbox.compiled_headers import prepared_headers
from hood.grader.sandbox.outputs import Outputs
from hood.grader.submission.additions import names_in
from hood.grader.submission.notes import Note, NoteKind, record
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verify import EXAMPLE_SECONDS, NO_EXAMPLES_VARIABLE, SEED_VARIABLE
from hood.metadata import KEY
from hood.phase_paths import environment_with
from hood.verdict import FULL, VERDICT_MIME, Cause

if TYPE_CHECKING:
    from hood.grader.execution.examiner import Examiner

# A kernel that still prints after the interrupt is killed when its output exceeds FLOOD times the
# limit. On a busy machine, a kernel can print far more than the limit before the interrupt arrives.
FLOOD = 16
MAX_COUNT = 1_000_000
UNREADABLE = "the output of this cell could not be read"
# seconds for the failing examples of a whole notebook, which are searched after its last cell
ALL_EXAMPLES_SECONDS = 20


class TurnIsOver(Exception):
    """A notebook took longer than its turn. If no other job waited, it would get more time."""


class KernelLost(Exception):
    """A kernel died, but not at a limit, so its notebook is run once more from the beginning."""


class Execute(NbGraderExecute):
    """nbgrader's Execute with additional rules:

    - The kernel is this project's own kernel (:mod:`hood.grader.inside.kernel`) and runs in its own
      sandbox. If this machine cannot make a sandbox, nothing runs. ``unsafe_no_sandbox`` turns
      sandboxes off. The only setting of nbgrader and nbclient that is used is ``timeout``.
    - A cell that calls ``verify`` is judged here, outside the sandbox, even if its visible part
      raises an error. The kernel only answers calls; a verdict from the kernel does not count.
    - The cases come from the seed in ``metadata.open_the_hood.seed``, by default a new seed. A
      sandboxed kernel never learns the seed.
    - Output on stderr costs no points.
    - After the last cell, when all verdicts are final, failing examples are searched for
      (:mod:`hood.judge.examples.example`). If ``metadata.open_the_hood.examples`` is false, this
      step is left out. In this step, the learner's code can spoil only the examples.
    - The limits are the lab's own limits (:class:`hood.grader.sandbox.Limits`). A cell that takes
      too long and a notebook that prints too much are interrupted. A kernel that ignores the
      interrupt is killed, and the outputs of the later cells say so.
    - All of a learner's own cells together have a separate time limit, which is as long as the
      limit of all other cells (:mod:`hood.grader.execution.own_time`). When this time is used up,
      own cells that an exercise needs use the answers' time, and other own cells are left out.
    - If a kernel dies in its sandbox, but not at a limit, the notebook is run a second time,
      because Linux or the machine may have killed the kernel. If the learner's code killed the
      kernel, it will kill the kernel again.
    """

    timeout: Any
    # Seconds of the sandbox's own time after which TurnIsOver is raised; 0 for no such limit
    turn = 0
    ended: tuple[str, ...] = ()  # cells stopped at a limit, in words
    seconds = 0.0  # of the sandbox's own time

    unsafe_no_sandbox = Bool(
        False,
        help="Run submissions with the grader's own rights. Never use it for other people's work.",
    ).tag(config=True)

    max_cell_seconds = Integer(
        0, help="Upper limit in seconds for each cell with a learner's code; 0 for no limit."
    ).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: Any = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Run every code cell of ``nb``, in place.

        Raises:
            CannotSandbox: this machine cannot make the sandbox.
            TurnIsOver: the notebook took longer than its turn.
            ZygoteDied: the kernel was lost, and the submission did not cause the loss.
            UserError: the notebook is not in Python.
        """
        ours = nb.metadata.setdefault(KEY, NotebookNode())
        self._seed = RunRecord.of(nb.metadata).seed or secrets.token_hex(16)
        record(nb, seed=self._seed, sandbox=not self.unsafe_no_sandbox)
        self._limits = Limits.of(nb.metadata)
        self._seconds = ours.get("cell_seconds", self.timeout)
        self._examples = ours.get("examples", True) is not False
        path = ((resources or {}).get("metadata") or {}).get("path")
        if self.unsafe_no_sandbox:
            self.log.warning("NO SANDBOX: this submission runs with your rights on your machine.")
        begun, as_before = time.monotonic(), copy.deepcopy(nb)
        self._in_turn = 0 < self.turn < self._limits.total_seconds and not self.unsafe_no_sandbox
        if self._in_turn:
            self._limits = replace(self._limits, total_seconds=self.turn)
        limits = self._limits
        self._own_time = OwnTime(nb.cells, limits.total_seconds, limits.grace)
        self._may_run_again = not self.unsafe_no_sandbox
        while True:
            self.nb = nb
            self._stopped = ""
            self._unwritten: set[str] = set()  # grade_ids of stubs that raised NotImplementedError
            self._printed, self._flooded = 0, ""
            self._code = LearnerSource()
            self._newer = NewerPython(RunRecord.of(nb.metadata).python)
            self._ended: dict[str, str] = {}  # types of errors, for `final_outputs`
            self._wrong: list[tuple[NotebookNode, Examiner]] = []
            self._above = ""
            self._asking: Examiner | None = None
            self.ended = ()
            try:
                self._run_all(Path(path) if path else None)
                return nb, resources
            except ZygoteDied:
                if self._in_turn:  # on a busy machine, a short turn ends early by the clock
                    raise TurnIsOver from None
                raise
            except KernelLost:
                self.log.warning(
                    "the kernel died, but not at a limit: the notebook is run once more"
                )
                nb.cells, nb.metadata = as_before.cells, as_before.metadata
                self._may_run_again = False
            finally:
                record(nb, seconds=round(time.monotonic() - begun, 3))

    def _run_all(self, folder: Path | None) -> None:
        self.kernel = self._new_kernel(folder)
        self._start(self.kernel)
        self._own_time.start()
        try:
            for cell in self.nb.cells:
                if is_own(cell):
                    self._run_own(cell)
                elif cell.cell_type == "code":
                    self._run_cell(cell)
                self._above = cell.metadata.get("nbgrader", {}).get("grade_id") or self._above
                self._end_turn()
            if note := self._own_time.note():
                record_note(self.nb, note)
            self._seek_examples()
            self._end_turn()
            self.seconds = self.kernel.passed()
        finally:
            self.kernel.end()

    def _end_turn(self) -> None:
        """Raise TurnIsOver if the turn is over. The result so far is then not used."""
        if self._in_turn and self.kernel.passed() > self.turn:
            raise TurnIsOver

    def _new_kernel(self, folder: Path | None) -> UnsafeKernel | SandboxedKernel:
        ours = self.nb.metadata[KEY]
        name = self.nb.metadata.get("kernelspec", {}).get("name", "")
        if self.unsafe_no_sandbox:  # the kernel judges itself
            environment = environment_with(course_folder()) | {
                SEED_VARIABLE: self._seed,
                NO_EXAMPLES_VARIABLE: "" if self._examples else "1",
                NBGRADER: "autograde",
            }
            return UnsafeKernel(name, folder, environment)
        # without a compiler, `compile: true` acts like "trace", which compiles no C++
        compiles = ours.get("compile") is True and not compiler_lacks()
        traces = ours.get("compile") in (True, "trace") and not compiles
        return SandboxedKernel(
            name,
            limits=self._limits,
            files=folder,
            headers=prepared_headers() if compiles else None,
            preload=[*ours.get("preload", ()), *(["tracer"] if traces else [])],
            loopback=ours.get("loopback") is True,
        )

    def _start(self, kernel: UnsafeKernel | SandboxedKernel) -> None:
        """Start the kernel, without the submission's files if they cannot be copied."""
        try:
            kernel.start()
        except FilesRefused as refused:
            note = Note(NoteKind.FILES, f"The files beside the notebook were left out: {refused}")
            record_note(self.nb, note)
            assert isinstance(kernel, SandboxedKernel)
            kernel.files = None
            kernel.start()
        kernel.wait(False)

    def _run_own(self, cell: NotebookNode) -> None:
        self._limit(cell)
        seconds = self._own_time.limit(cell, self.timeout)
        if seconds is None or self._stopped:
            self._run_cell(cell)
        elif seconds <= 0:
            cell.outputs = [_error(self._own_time.leave_out())]
        else:
            with self._own_time.spent(self.kernel, seconds, self._place()):
                self._run_cell(cell, seconds)

    def _run_cell(self, cell: NotebookNode, seconds: int = 0) -> None:
        total, passed = self._limits.total_seconds, self.kernel.passed() - self._own_time.spared
        if self.unsafe_no_sandbox and passed > total and not self._stopped:
            self.kernel.end()  # the zygote ends a kernel in a sandbox
            self._stopped = f"the notebook ran longer than {total} s in all"
        self._limit(cell)
        self.timeout = seconds or self.timeout
        parts = verified_parts(cell)
        source = parts[0] if parts else cell.source
        first, stop = self._run(source, cell)
        first = [without_verdict(output) for output in first]
        error = NOT_RUN if stop else self._raised
        given, bound = is_locked(cell), self.kernel.bound
        self._code.add(source, given=given, finished=not error, bound=bound)
        self._newer.ran(source, given, error, self._message)
        if self._raised:
            self._ended |= dict.fromkeys(names_in(source), self._raised)
        if not stop and self._raised == "NotImplementedError" and is_solution(cell):
            self._unwritten.add(cell.metadata.nbgrader.grade_id)
        if parts is None:
            cell.outputs = [without_stderr(output) for output in first] if is_grade(cell) else first
            if stop:
                cell.outputs.append(_error(stop.problem))
                record(cell, problem=stop.problem)
        else:
            hidden, stop = self._verify(parts[1], cell)
            untouched = f"{cell.metadata.nbgrader.grade_id}_solution" in self._unwritten
            cell.outputs = final_outputs(cell, first, hidden, stop, untouched, self._ended)

    def _seek_examples(self) -> None:
        if not self._wrong:
            return
        self._may_run_again = False  # all points are known
        end = time.monotonic() + ALL_EXAMPLES_SECONDS
        self.timeout = EXAMPLE_SECONDS
        for report, examiner in self._wrong:
            if self._stopped or time.monotonic() > end:
                break
            nowhere = NotebookNode(cell_type="code", source="", metadata={}, outputs=[])
            with examiner.seeking():
                self._run(examiner.question, nowhere)
                report.data.update(examiner.report_with_examples().data)

    def _limit(self, cell: NotebookNode) -> None:
        """Set a cell's time limit; ``max_cell_seconds`` does not limit the lab's own cells."""
        given = is_locked(cell) and not is_grade(cell)
        capped = self.max_cell_seconds and not given
        self.timeout = min(self._seconds, self.max_cell_seconds) if capped else self._seconds

    def _verify(self, hidden: str, cell: NotebookNode) -> tuple[list[NotebookNode], Stop | None]:
        """Judge a graded cell; return the report or an error, and why the cell stopped early."""
        if self.unsafe_no_sandbox or self._stopped:
            return self._run(hidden, cell)
        # here, because this imports torch, and a lab without checks does not need torch
        from hood.grader.execution.examiner import Examiner

        points = float(cell.metadata.nbgrader.points)
        assert isinstance(self.kernel, SandboxedKernel)
        examiner = Examiner(hidden, points, self._seed, self._code, self.kernel)
        with examiner.asking(self.timeout):
            self._asking = examiner
            outputs, stop = self._run(examiner.question, cell)
            self._code.add(examiner.question, given=True, bound=self.kernel.bound)
            self._asking = None
            if self._raised != TIMED_OUT and not examiner.finished():
                errors = [output for output in outputs if output.output_type == "error"]
                if raised := [error for error in errors if error.ename == self._raised]:
                    return raised[-1:], stop or self._newer.stop(hidden, self._code)
            report = examiner.report()
            if not stop and report.data[VERDICT_MIME]["status"] not in FULL:
                stop = self._newer.stop(hidden, self._code, examiner.raised())
            if self._examples and not stop and examiner.unexampled():
                self._wrong.append((report, examiner))
            return [report], stop

    def _run(self, source: str, cell: NotebookNode) -> tuple[list[NotebookNode], Stop | None]:
        """Execute code in the kernel; return the outputs, and why the code stopped early."""
        self.kernel.bound = {}
        if self._stopped:
            return [], Stop(Cause.KERNEL_STOPPED, f"not run, because {self._stopped}")
        stop: Stop | None = None
        self._raised, self._message, cell.execution_count = "", "", None
        outputs = Outputs()

        def hear(message: dict[str, Any] | None, size: int) -> None:
            if self._has_room(size, outputs) and message:
                outputs.add(message)

        if not source.strip():
            return [], None
        self.kernel.wait(True)
        try:
            done = self.kernel.run(source, self.timeout, self._limits.grace, hear)
            cell.execution_count = done["count"] if 0 <= done["count"] < MAX_COUNT else None
            outputs.number(cell.execution_count)
            if done["ename"] is not None:
                self._raised, self._message = done["ename"], done["evalue"]
                if all(output.get("ename") != self._raised for output in outputs.shown):
                    # the learner switched the error's display off
                    line = f"{self._raised}: {done['evalue']}"
                    outputs.shown.append(_error(done["evalue"], self._raised, line))
        except TimeIsUp:
            self._raised, late = TIMED_OUT, f"stopped after {self.timeout} s"
            self.ended += (f"{self._named(cell)} was {late}",)
            outputs.shown.append(_error(late, TIMED_OUT, f"{TIMED_OUT}: this cell was {late}"))
        except NotInterrupted:
            # the code ignored the interrupt
            self.kernel.end()
            late = f"did not end within {self.timeout} s and could not be interrupted"
            stop = Stop(Cause.TIMEOUT, f"this cell {late}")
            self._stopped = f"{self._named(cell)} {late}"
            self.ended += (self._stopped,)
        except KernelDied:
            why = self.kernel.why_stopped() or self._flooded
            self._end_turn()
            if self._may_run_again and self.kernel.died:
                raise KernelLost from None
            why = f": {why}" if why else ""
            stop = Stop(Cause.KERNEL_DIED, f"the kernel died in this cell{why}")
            self._stopped = f"the kernel died in {self._named(cell)}{why}"
            self.ended += (self._stopped,)
        except (BadMessage, RecursionError) as error:
            # A learner's code can send any message. An unreadable message ends only this cell.
            self.log.warning("An output of %s could not be read: %s", self._named(cell), error)
            stop = Stop(Cause.NOT_EVALUATED, UNREADABLE)
        finally:
            self.kernel.wait(False)
        try:
            return shorten_outputs(outputs.shown), stop
        except (AttributeError, KeyError, TypeError):  # an output of an unexpected form
            return [], stop or Stop(Cause.NOT_EVALUATED, UNREADABLE)

    def _has_room(self, size: int, outputs: Outputs) -> bool:
        """Count an output's bytes; return whether the notebook is still within its limit."""
        before, most = self._printed, self._limits.output
        self._printed += size
        if self._printed <= most:
            return True
        if before <= most:
            said = f"this notebook printed more than {most >> 10} KiB"
            outputs.shown.append(_error(said))
            if self._asking:
                self._asking.printed_too_much(f"{said}, the limit for the notebook and its calls")
            self.kernel.interrupt()
        elif before <= FLOOD * most < self._printed:
            self._flooded = f"this notebook printed more than {FLOOD * most >> 10} KiB"
            self.kernel.end()
            raise KernelDied
        return False

    def _named(self, cell: NotebookNode) -> str:
        """Return words that identify a cell, without quoting a learner's text."""
        if own := cell.metadata.get("nbgrader", {}).get("grade_id"):
            return f"the cell `{own}`"
        return f"a cell {self._place()}"

    def _place(self) -> str:
        return f"below `{self._above}`" if self._above else "above all exercises"


def _error(problem: str, name: str = NOT_RUN, line: str = "") -> NotebookNode:
    traceback = [line or f"{name}: {problem}"]
    return made_output("error", ename=name, evalue=problem, traceback=traceback)
