"""Judge one graded cell from outside the kernel, while the kernel executes it."""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from nbformat.notebooknode import NotebookNode

from hood import UserError
from hood.grader.course_sandbox import of_course
from hood.grader.execution.graded_cell import made_output
from hood.grader.sandbox import SandboxedKernel
from hood.judge.catalogue import find_check
from hood.judge.checks.exercise import Check
from hood.judge.connection.rpc_client import Connection, ConnectionLost, OverSocket
from hood.judge.examples.example import can_be_shown, find_examples, fresh_seed
from hood.judge.report import VerdictReport
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.answer_key import answer_key
from hood.judge.verdicts.judge import ask, assess, claims_of
from hood.judge.verdicts.outcome import OUT_OF_MEMORY
from hood.phase_paths import PhasePaths
from hood.verdict import Cause, PartResult, Verdict

SERVE = '__import__("hood.judge.connection.rpc_server", fromlist=["serve"]).serve'


@contextlib.contextmanager
def _usable() -> Iterator[None]:
    """Turn an error of a check into a UserError: the learner did not cause this error."""
    try:
        yield
    except (MemoryError, OSError, UserError):  # the machine's fault, or already reported
        raise
    except Exception as error:
        if OUT_OF_MEMORY in str(error):  # a library's own message
            raise MemoryError(str(error)) from error
        said = f"{type(error).__name__}: {error}"
        raise UserError(
            f"a check cannot be used: {said}. Test the checks with `python -m hood selftest`"
        ) from error


def check_for(hidden: str, points: float) -> tuple[PhasePaths, Check]:
    """Return the check that a hidden part calls, and its phase.

    Raises UserError if the check can't be used, or if the check and the cell have different points.
    """
    with _usable():
        name, _, _ = read_call(hidden)
        phase, check = find_check(name)
    if not math.isclose(check.points, points):
        raise UserError(
            f"the check {name!r} gives {check.points:g} points, but its cell in source/ has "
            f"{points:g}. Use the same number in the lab's text and in the check, then run "
            "`python -m hood build`. If source/ itself was edited, add `--force`: this drops the "
            "edit"
        )
    return phase, check


class Examiner:
    """Call the learner's functions in the kernel and compute the verdict here.

    ``hidden`` is the hidden part of the graded cell, with its call of ``verify``. ``points`` are
    the points of the graded cell. ``code`` has the cells that have run until now; it is needed to
    find the learner's code. A thread sends the calls, and tells ``kernel`` whether the thread waits
    for an answer. Raises UserError if the check cannot be loaded or cannot make its cases, or if
    the check and the cell have different points. None of these errors is the learner's fault.
    """

    def __init__(
        self,
        hidden: str,
        points: float,
        seed: str,
        code: LearnerSource,
        kernel: SandboxedKernel,
    ):
        of_course().one_thread()  # other processes judge other submissions at the same time
        with _usable():
            name, thing, things = read_call(hidden)
            self._phase, check = check_for(hidden, points)
            self._key = answer_key(check, seed)
        self._code, self._kernel = code, kernel
        self._named = all(k == v for k, v in (things or {name: thing}).items())
        self._verdict: Verdict | None = None
        named = ", ".join(f"{key!r}: {value}" for key, value in things.items())
        # Code that the caller executes in the kernel inside :meth:`asking` or :meth:`seeking`. The
        # code answers calls until it receives a message that no more calls follow.
        self.question = f"{SERVE}({'{' + named + '}' if things else thing})"

    @contextlib.contextmanager
    def asking(self, seconds: float) -> Iterator[None]:
        """Send all cases from a thread while the kernel executes the question.

        The thread ends when the context ends. ``seconds`` is the time limit of the cell.
        """
        with self._talking(lambda connection: ask(self._key, connection)):
            self._connection.limit = f"{seconds:g} s for all calls of this exercise"
            yield

    @contextlib.contextmanager
    def seeking(self) -> Iterator[None]:
        """Search for failing examples after the verdict, in a thread, as :meth:`asking` does."""
        parts, seed = self.unexampled(), fresh_seed()
        with self._talking(lambda found: find_examples(self._key, found, parts, seed)):
            yield

    def printed_too_much(self, said: str) -> None:
        """Record that the current call is interrupted because the notebook printed too much."""
        self._connection.printed_too_much(said)

    def finished(self) -> bool:
        """Return whether every case has an answer; call this after the question's code ran."""
        return all(got.cause is not Cause.NO_REPLY for got in self._answers())

    def raised(self) -> list[tuple[str, str]]:
        """Return the type and the message of each error in a case."""
        found = [got.raised for got in self._answers()]
        return [(error.kinds[0], error.message) for error in found if error]

    def report(self) -> NotebookNode:
        """Compute the verdict and return it for the notebook; call this after the question ran."""
        claims = claims_of(self._key)
        verdict = assess(self._key, self._answers(), source=self._code, claims=claims)
        self._verdict = replace(verdict, parts=tuple(map(self._with_limit, verdict.parts)))
        return self._output(self._verdict)

    def _with_limit(self, part: PartResult) -> PartResult:
        """If the code ran out of a resource, such as memory, name its limit in the problem."""
        wrong = part.cause is Cause.WRONG_RESULT
        return replace(part, problem=self._limited(part.problem)) if wrong else part

    def _limited(self, problem: str) -> str:
        has = self._kernel.limits.met(problem)
        return f"{problem}; a sandbox has {has}" if has else problem

    def report_with_examples(self) -> NotebookNode:
        """Return the verdict with examples; call this after the question has run a second time."""
        assert self._verdict is not None
        found = self._answers().items()
        limited = {part: replace(one, problem=self._limited(one.problem)) for part, one in found}
        return self._output(self._verdict.with_examples(limited))

    def unexampled(self) -> dict[str, str]:
        """Return the parts that need examples, like :meth:`Verdict.unexampled`.

        If the hidden part passes the learner's code under another name than the check uses, the
        result is empty, because the example's call would not run in the notebook.
        """
        if self._verdict is None or not self._named:
            return {}
        return can_be_shown(self._key, self._verdict.unexampled())

    @contextlib.contextmanager
    def _talking(self, talk: Callable[[Connection], Any]) -> Iterator[None]:
        self._connection = OverSocket(self._kernel.connection, self._kernel.wait)
        with contextlib.closing(self._connection), ThreadPoolExecutor(1) as thread:
            self._talk = thread.submit(self._run, talk)
            try:
                yield
            finally:
                self._connection.cut("the code gave no answer")

    def _run(self, talk: Callable[[Connection], Any]) -> Any:
        try:
            return talk(self._connection)
        finally:
            with contextlib.suppress(ConnectionLost):
                self._connection.end()
            self._kernel.wait(True)  # the grader now waits for the end of the cell

    def _answers(self) -> Any:
        """Stop the thread and return its result."""
        self._connection.cut("the code gave no answer")
        return self._talk.result()

    def _output(self, verdict: Verdict) -> NotebookNode:
        data = VerdictReport(verdict, self._phase.number)._repr_mimebundle_()
        return made_output("display_data", data=data)


def read_call(hidden: str) -> tuple[str, str, dict[str, str]]:
    """Read the arguments of the last call of ``verify``.

    Return the check's name, the code of the next positional argument, and a dict with the code of
    each keyword argument. If there is no other positional argument, its code is ``"None"``. Only an
    exercise with several functions has keyword arguments.
    """
    calls = [
        node
        for node in ast.walk(ast.parse(hidden))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "verify" and node.args
    ]
    if not calls:
        raise ValueError(f"expected `verify(name, ...)` in the hidden part, got: {hidden}")
    name, *rest = calls[-1].args
    things = {word.arg: ast.unparse(word.value) for word in calls[-1].keywords if word.arg}
    return ast.literal_eval(name), ast.unparse(rest[0]) if rest else "None", things
