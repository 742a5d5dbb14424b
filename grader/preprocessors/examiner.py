"""Judges one graded cell from outside of the kernel, while the kernel executes it."""

from __future__ import annotations

import ast
import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import torch
from nbformat.notebooknode import NotebookNode

from grader.answer_key import answer_key
from grader.catalogue import find_check
from grader.judge import ask, assess, claims_of
from grader.preprocessors.outputs import made_output
from grader.remote.link import LinkLost, OverSocket
from grader.report import Report
from grader.written import Written

SERVE = '__import__("grader.remote.answer", fromlist=["serve"]).serve'


class Examiner:
    """Asks the kernel about the learner's functions and comes to a verdict here.

    Used as a context around the execution of :attr:`question`, which must happen in another
    thread than the one that asks; when the context ends, nothing waits for the kernel any more.

    Args:
        hidden: the hidden part of the graded cell, with its call of ``verify``.
        seed: draws the cases.
        code: the cells that ran so far, in which the learner's code is looked up.
        end: this side's end of the socket to the kernel.

    Attributes:
        question: code for the kernel to execute. It answers until it is told to end.
    """

    def __init__(self, hidden: str, seed: str, code: Written, end: socket.socket):
        torch.set_num_threads(1)  # other submissions are judged beside this one
        name, thing, things = read_call(hidden)
        self._phase, check = find_check(name)
        self._key = answer_key(check, seed)
        self._code = code
        named = ", ".join(f"{key!r}: {value}" for key, value in things.items())
        self.question = f"{SERVE}({'{' + named + '}' if things else thing})"
        self._link = OverSocket(end)

    def __enter__(self) -> Examiner:
        self._thread = ThreadPoolExecutor(1)
        self._asked = self._thread.submit(self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._link.cut("it gave no answer")
        self._thread.shutdown()
        self._link.close()

    def report(self) -> NotebookNode:
        """What came of it, for the notebook; to be called when the question was executed."""
        self._link.cut("it gave no answer")
        verdict = assess(
            self._key,
            self._asked.result(),
            source=self._code,
            claims=claims_of(self._key.check),
        )
        data = Report(verdict, self._phase.number)._repr_mimebundle_()
        return made_output("display_data", data=data)

    def _ask(self) -> list:
        try:
            return ask(self._key, self._link)
        finally:
            with contextlib.suppress(LinkLost):
                self._link.end()


def read_call(hidden: str) -> tuple[str, str, dict[str, str]]:
    """The arguments of the last call of ``verify``: a check's name, and code for what it judges.

    Returns:
        the name, the code of the one thing or ``"None"``, and by name that of each of several.

    Raises:
        ValueError: when there is no such call.
    """
    calls = [
        node
        for node in ast.walk(ast.parse(hidden))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "verify" and node.args
    ]
    if not calls:
        raise ValueError(f"expected `verify(name, ...)` in the hidden part, came: {hidden}")
    name, *rest = calls[-1].args
    things = {word.arg: ast.unparse(word.value) for word in calls[-1].keywords if word.arg}
    return ast.literal_eval(name), ast.unparse(rest[0]) if rest else "None", things
