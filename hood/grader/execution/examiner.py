"""Judge one graded cell from outside of the kernel, while the kernel executes it."""

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
    """Turn an error of a check, which is no learner's fault, into a UserError."""
    try:
        yield
    except (MemoryError, OSError, UserError):  # the machine's fault, or already said
        raise
    except Exception as error:
        if OUT_OF_MEMORY in str(error):  # a library's word for it
            raise MemoryError(str(error)) from error
        said = f"{type(error).__name__}: {error}"
        raise UserError(f"a check cannot be used: {said}. Is it in `selftest`?") from error


def check_for(hidden: str, points: float) -> tuple[PhasePaths, Check]:
    """Return the check that a hidden part calls, and its phase.

    Raises UserError when it can't be used, or gives other points than the cell has.
    """
    with _usable():
        name, _, _ = read_call(hidden)
        phase, check = find_check(name)
    if not math.isclose(check.points, points):
        raise UserError(
            f"the check {name!r} gives {check.points:g} points, and its cell in source/ has "
            f"{points:g}: set both alike, in the lab's text and its check, and run "
            "`python -m hood build`, with `--force` where source/ itself was edited, which drops "
            "the edit"
        )
    return phase, check


class Examiner:
    """Call the learner's functions in the kernel and compute the verdict here.

    ``hidden`` is the hidden part of the graded cell, with its call of ``verify``. ``points`` are
    the points of the graded cell. ``code`` has the cells that ran so far, in which the learner's
    code is looked up. ``kernel`` is told whether a thread waits for the
    kernel. Raises UserError if the check cannot be loaded, cannot draw its cases, or gives other
    points than the cell has. That is no learner's fault.
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
        # Code that the caller lets the kernel execute inside of :meth:`asking` or :meth:`seeking`;
        # it answers calls until it is told to end
        self.question = f"{SERVE}({'{' + named + '}' if things else thing})"

    @contextlib.contextmanager
    def asking(self, seconds: float) -> Iterator[None]:
        """Let a thread ask all cases while the kernel executes the question.

        When the context ends, the thread has ended too. ``seconds``: the time limit of the cell.
        """
        with self._talking(lambda connection: ask(self._key, connection)):
            self._connection.limit = f"{seconds:g} s for all calls of this exercise"
            yield

    @contextlib.contextmanager
    def seeking(self) -> Iterator[None]:
        """Let a thread find failing examples after the verdict, as :meth:`asking` does."""
        parts, seed = self.unexampled(), fresh_seed()
        with self._talking(lambda found: find_examples(self._key, found, parts, seed)):
            yield

    def printed_too_much(self, said: str) -> None:
        """Say that the call that is asked for is interrupted because of what it printed."""
        self._connection.printed_too_much(said)

    def finished(self) -> bool:
        """Return whether each case had its answer; call it after the question's code ran."""
        return all(got.cause is not Cause.NO_REPLY for got in self._answers())

    def raised(self) -> list[tuple[str, str]]:
        """Return the type and the message of each error that came of a case."""
        found = [got.raised for got in self._answers()]
        return [(error.kinds[0], error.message) for error in found if error]

    def report(self) -> NotebookNode:
        """Compute the verdict and return it for the notebook; call it after the question ran."""
        claims = claims_of(self._key)
        verdict = assess(self._key, self._answers(), source=self._code, claims=claims)
        self._verdict = replace(verdict, parts=tuple(map(self._with_limit, verdict.parts)))
        return self._output(self._verdict)

    def _with_limit(self, part: PartResult) -> PartResult:
        """Say how much there is of what the learner's code found lacking, as memory."""
        wrong = part.cause is Cause.WRONG_RESULT
        return replace(part, problem=self._limited(part.problem)) if wrong else part

    def _limited(self, problem: str) -> str:
        has = self._kernel.limits.met(problem)
        return f"{problem}; a sandbox has {has}" if has else problem

    def report_with_examples(self) -> NotebookNode:
        """Return the verdict with what was found; call it after the question ran again."""
        assert self._verdict is not None
        found = self._answers().items()
        limited = {part: replace(one, problem=self._limited(one.problem)) for part, one in found}
        return self._output(self._verdict.with_examples(limited))

    def unexampled(self) -> dict[str, str]:
        """Return the parts for which to search examples, as :meth:`Verdict.unexampled` does.

        There are none if the hidden part passes the learner's code under another name than the
        check uses, because the example's call would not run in the notebook.
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
                self._connection.cut("it gave no answer")

    def _run(self, talk: Callable[[Connection], Any]) -> Any:
        try:
            return talk(self._connection)
        finally:
            with contextlib.suppress(ConnectionLost):
                self._connection.end()
            self._kernel.wait(True)  # for the end of the cell

    def _answers(self) -> Any:
        """Stop the thread and return its result."""
        self._connection.cut("it gave no answer")
        return self._talk.result()

    def _output(self, verdict: Verdict) -> NotebookNode:
        data = VerdictReport(verdict, self._phase.number)._repr_mimebundle_()
        return made_output("display_data", data=data)


def read_call(hidden: str) -> tuple[str, str, dict[str, str]]:
    """Read the arguments of the last call of ``verify``.

    It returns the check's name; the code of the positional argument after it, or ``"None"``; and
    the code of each keyword argument, by name, for an exercise with several functions.
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
