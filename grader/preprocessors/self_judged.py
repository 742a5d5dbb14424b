"""What feedback may show of plain hidden tests, which the learner's own process has read.

A hidden test that is an ordinary ``assert`` runs in the kernel with the learner's code: a function
that it calls can look at its caller's source, and whatever the kernel sends from then on, output,
error or display, may hold that source in any disguise. So none of it is copied. What a learner
needs is told in words that are known beforehand: the type of a built-in exception, and the message
that the instructor wrote, when the one that came fits it. A report by ``verify`` is left out, too,
where such a test ran before it: it may name types and exceptions of the learner's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_solution

from grader.judging.graded_cell import NOT_RUN, TIMED_OUT, is_verified, made_output, plain
from grader.run_record import CellRecord

HOLE = "…"
# What the grader itself says, with no word of the run in it.
OURS = {
    TIMED_OUT: "this cell was stopped at its time limit",
    NOT_RUN: "this cell could not be run to its end",
}
OTHER_TYPE = "an exception"
NOTE = (
    "From here on this page shows no output: hidden tests have run, and what runs with or after "
    "them could print them. Run the notebook yourself to see what your cells show."
)
BUILT_IN = {
    name
    for name, thing in vars(builtins).items()
    if isinstance(thing, type) and issubclass(thing, BaseException)
}


def is_self_judged(cell: NotebookNode) -> bool:
    """Whether the cell's points rest on what its own kernel says."""
    graded = cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)
    return bool(graded and not is_verified(cell))


def known_outputs(cell: NotebookNode) -> list[NotebookNode]:
    """What may be shown of a cell, hidden region included, that ran with hidden tests or later."""
    if not is_self_judged(cell):
        return []
    errors = [output for output in cell.outputs if output.output_type == "error"]
    if not errors:
        return []
    ours = [error for error in errors if error.ename in OURS]
    kind, message = _in_known_words([*ours, *errors][0], cell.source)
    if problem := CellRecord.of(cell).problem:
        kind, message = NOT_RUN, problem
    line = f"{kind}: {message}" if message else kind
    return [made_output("error", ename=kind, evalue=message, traceback=[line])]


def _in_known_words(error: NotebookNode, source: str) -> tuple[str, str]:
    """Type and message of an error, both chosen from what was there before it was raised."""
    if error.ename in OURS:
        return error.ename, OURS[error.ename]
    kind = error.ename if error.ename in BUILT_IN else OTHER_TYPE
    said = plain(str(error.evalue))
    fitting = (HOLE.join(texts) for texts in _messages(source) if _fits(said, texts))
    return kind, next(fitting, "")


def _messages(source: str) -> Iterator[list[str]]:
    """The messages of a cell's ``assert`` and ``raise``: each one's literal texts, in order.

    What an f-string puts between them comes from the run, so it is not told.
    """
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
    """Whether a message is these texts with anything between them; in time linear in its length."""
    if len(texts) == 1:
        return said == texts[0]
    first, *between, last = texts
    if len(said) < len(first) + len(last) or not said.startswith(first) or not said.endswith(last):
        return False
    place, end = len(first), len(said) - len(last)
    for text in between:
        place = said.find(text, place, end)
        if place < 0:
            return False
        place += len(text)
    return True
