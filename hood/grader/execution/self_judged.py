"""Decide what feedback may show of plain hidden tests, which run in the learner's own kernel.

A function that such a test calls can read the test's source. After that, everything that the kernel
sends, even a report by ``verify``, may contain the source in any encoding. So feedback shows only
text that existed before the run: the type of a built-in exception, and the instructor's own
message, if the actual message matches the instructor's message.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_solution

from hood.grader.execution.graded_cell import NOT_RUN, TIMED_OUT, is_verified, made_output, plain
from hood.grader.run_record import problem_of

HOLE = "…"
# The grader's own errors and their messages, without any text from the run.
OURS = {
    TIMED_OUT: "this cell was stopped at its time limit",
    NOT_RUN: "this cell could not be run to its end",
}
OTHER_TYPE = "an exception"
NOTE = (
    "From here on this page shows no output: hidden tests have run, and later code could "
    "print these tests. Run the notebook yourself to see your cells' output."
)
BUILT_IN = {
    name
    for name, thing in vars(builtins).items()
    if isinstance(thing, type) and issubclass(thing, BaseException)
}


def is_self_judged(cell: NotebookNode) -> bool:
    """Return whether the learner's own kernel decides the cell's points."""
    graded = cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)
    return bool(graded and not is_verified(cell))


def known_outputs(cell: NotebookNode) -> list[NotebookNode]:
    """Return what feedback shows of a cell with plain hidden tests, or of a later cell."""
    if not is_self_judged(cell):
        return []
    errors = [output for output in cell.outputs if output.output_type == "error"]
    if not errors:
        return []
    ours = [error for error in errors if error.ename in OURS]
    error = [*ours, *errors][0]
    if ours:
        kind, message = error.ename, OURS[error.ename]
    else:
        kind = error.ename if error.ename in BUILT_IN else OTHER_TYPE
        said = plain(str(error.evalue))
        fitting = (HOLE.join(texts) for texts in _messages(cell.source) if _fits(said, texts))
        message = next(fitting, "")
    if problem := problem_of(cell):
        kind, message = NOT_RUN, problem
    line = f"{kind}: {message}" if message else kind
    return [made_output("error", ename=kind, evalue=message, traceback=[line])]


def _messages(source: str) -> Iterator[list[str]]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # magics
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            message = node.msg
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            message = node.exc.args[0]
        else:
            continue
        texts = [""]
        for part in message.values if isinstance(message, ast.JoinedStr) else [message]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                texts[-1] += part.value
            else:
                texts.append("")
        if any(texts):
            yield texts


def _fits(said: str, texts: list[str]) -> bool:
    first, *others = map(re.escape, texts)
    *between, last = others or [""]
    # an atomic group finds only the first place of its text, so the time is linear
    inner = "".join(f"(?>.*?{text})" for text in between)
    pattern = f"{first}{inner}.*{last}" if others else first
    return re.fullmatch(pattern, said, re.DOTALL) is not None
