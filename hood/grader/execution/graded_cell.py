"""Read a graded cell's outputs, and write them so that nbgrader derives the verdict's points.

nbgrader derives a grade from outputs: an error or text on stderr gives 0, the first result that is
a number gives that number, and anything else gives full points. So a cell that calls ``verify``
gets exactly one result, the verdict's points; all other outputs become displays.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbformat.notebooknode import NotebookNode, from_dict
from nbgrader.utils import is_grade, is_solution

from hood.judge.verify import shown_points
from hood.untrusted import ESCAPES, seen
from hood.verdict import VERDICT_MIME, Cause, Status, Verdict

# Types of the error outputs that the grader adds to a cell.
TIMED_OUT, NOT_RUN = "TimeLimit", "NotRun"
MAX_TEXT = 20_000
MAX_MARKUP = 200_000

# The hidden region is at the end of the cell.
HIDDEN = re.compile(
    r"^[^\n]*BEGIN HIDDEN TESTS[^\n]*\n(?P<hidden>.*?)^[^\n]*END HIDDEN TESTS[^\n]*\s*\Z",
    re.MULTILINE | re.DOTALL,
)
NAMED = re.compile(r"name '(\w+)' is not defined")
PYTHON = "{}.{}".format(*sys.version_info)
CALLS_VERIFY = re.compile(r"^verify\(", re.MULTILINE)
ANSI = re.compile(ESCAPES)


@dataclass(frozen=True)
class Stop:
    """Why a cell did not run to its end."""

    cause: Cause  # the reason, for programs
    problem: str  # the reason in words, for the learner


def made_output(kind: str, **fields: Any) -> NotebookNode:
    """Return a new output without validating it.

    nbformat's own function validates each output, which takes as long as a small cell. The whole
    notebook is validated when it is written.
    """
    if kind in ("display_data", "execute_result"):
        fields = {"metadata": {}} | fields
    return from_dict({"output_type": kind, **fields})


def split_hidden(source: str) -> tuple[str, str] | None:
    """Return ``(visible, hidden)`` of the source of a cell that calls ``verify``; else None."""
    found = HIDDEN.search(source)
    if found is None or not CALLS_VERIFY.search(found["hidden"]):
        return None
    return source[: found.start()].rstrip("\n"), found["hidden"].rstrip("\n")


def verified_parts(cell: NotebookNode) -> tuple[str, str] | None:
    """Return ``(visible, hidden)`` of a cell if its grade comes from ``verify``; else None.

    If a learner writes a graded cell, a person grades the cell, whatever its content.
    """
    if cell.cell_type != "code" or not is_grade(cell) or is_solution(cell):
        return None
    return split_hidden(cell.source)


def is_verified(cell: NotebookNode) -> bool:
    """Return whether the cell's grade comes from ``verify``."""
    return verified_parts(cell) is not None


def final_outputs(
    cell: NotebookNode,
    visible: list[NotebookNode],
    hidden: list[NotebookNode],
    stop: Stop | None = None,
    untouched: bool = False,
    ended: Mapping[str, str] | None = None,
) -> list[NotebookNode]:
    """Return the outputs of a verified cell: its visible part's outputs, the report, the points.

    The report is the only output of the hidden part that is kept, because a learner's function
    could print its hidden arguments. ``stop`` says why there is no verdict, if the cell was
    stopped. ``untouched`` says whether the stub above the cell is unchanged. If an error ended a
    cell, ``ended`` maps each name that the cell would have defined to the error's type.
    """
    grade_id, points = cell.metadata.nbgrader.grade_id, float(cell.metadata.nbgrader.points)
    # The points are read from the report and not from the cell's result, because a learner's code
    # can change how results are displayed. A report is made after the kernel has answered all
    # questions. So an error beside a report has another cause, such as a learner's thread.
    reports = [
        output
        for output in hidden
        if output.output_type == "display_data"
        and isinstance(said := output.data.get(VERDICT_MIME), dict)
        and said.get("check") == grade_id
    ]
    earned = None
    if reports and not stop:
        report = reports[-1]
        earned = as_points(report.data[VERDICT_MIME].get("earned"), points)
    if earned is None:
        stop = stop or _why(hidden, ended or {})
        status = Status.NOT_RUN
        if untouched and stop.cause is Cause.UNDEFINED_NAME:  # a stub that defines no name
            status, stop = Status.NOT_ATTEMPTED, Stop(Cause.NOT_ATTEMPTED, "not attempted yet")
        said = Verdict(grade_id, points, status, cause=stop.cause, problem=stop.problem)
        earned_so_far = "–" if stop.cause is Cause.NEWER_PYTHON else "0"
        text = f"{grade_id}: {earned_so_far} of {points:g} points\n  {stop.problem}"
        data = {"text/plain": text, VERDICT_MIME: said.to_json()}
        report = made_output("display_data", data=data)
    shown = shown_points(earned or 0.0)
    result = made_output("execute_result", data=shown, execution_count=None)
    return [*map(as_display, visible), report, result]


def as_points(stated: Any, points: float) -> float | None:
    """Return the points that a verdict states if they are from 0 to ``points``; else None."""
    try:
        value = float(stated)
    except (TypeError, ValueError):
        return None
    return value if 0.0 <= value <= points else None


def _why(hidden: list[NotebookNode], ended: Mapping[str, str]) -> Stop:
    for output in hidden:
        if output.output_type == "error" and output.ename == "NameError":
            name = NAMED.match(output.evalue)
            error = ended.get(name[1], "") if name else ""
            why = f", and a cell that would define it ended in {seen(error)}" if error else ""
            why += f", here with Python {PYTHON}" if error == "SyntaxError" else ""
            problem = f"{seen(output.evalue)}: no cell that ran to its end defines it{why}"
            return Stop(Cause.UNDEFINED_NAME, problem)
        if output.output_type == "error":
            cause = Cause.TIMEOUT if output.ename == TIMED_OUT else Cause.NOT_EVALUATED
            return Stop(cause, f"the check could not be run: {seen(output.ename)}")
    return Stop(Cause.NOT_EVALUATED, "the check gave no verdict")


def read_verdicts(nb: NotebookNode) -> dict[str, Verdict]:
    """Return a dict from ``grade_id`` to verdict, for the verified cells of a graded notebook."""
    return {
        cell.metadata.nbgrader.grade_id: Verdict.from_json(output.data[VERDICT_MIME])
        for cell in nb.cells
        if is_verified(cell)
        for output in cell.outputs
        if output.output_type == "display_data" and VERDICT_MIME in output.data
    }


def without_stderr(output: NotebookNode) -> NotebookNode:
    """Return an output with stderr turned into stdout, because nbgrader gives 0 for stderr."""
    if output.output_type == "stream" and output.name == "stderr":
        return made_output("stream", name="stdout", text=output.text)
    return output


def without_verdict(output: NotebookNode) -> NotebookNode:
    """Return an output of the learner's code without the key that only the grader may set."""
    output.get("data", {}).pop(VERDICT_MIME, None)
    return output


def as_display(output: NotebookNode) -> NotebookNode:
    """Return an output that nbgrader does not grade: errors and results become displays."""
    if output.output_type == "error":
        text = plain("\n".join(output.traceback)) or f"{output.ename}: {plain(output.evalue)}"
        return made_output("display_data", data={"text/plain": text})
    if output.output_type == "execute_result":
        return made_output("display_data", data=output.data, metadata=output.metadata)
    return without_stderr(output)


def shorten_outputs(outputs: list[NotebookNode], most: int = MAX_TEXT) -> list[NotebookNode]:
    """Shorten all printed text together, and every other plain text, to ``most`` characters."""
    kept, left = [], most
    for output in outputs:
        if output.output_type == "stream":
            if left <= 0:
                continue
            text = _cut(output.text, left)
            kept.append(made_output("stream", name=output.name, text=text))
            left -= len(output.text)
        elif output.output_type == "error":
            if sum(map(len, output.traceback)) > most:
                output.traceback = [_cut("\n".join(output.traceback), most)]
            output.ename, output.evalue = _cut(output.ename, 200), _cut(output.evalue, most)
            kept.append(output)
        else:
            for kind in output.data:
                if kind.startswith("text/"):
                    output.data[kind] = _fitting(kind, output.data[kind], most)
            kept.append(output)
    return kept


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n... more output was cut ...\n"


def _fitting(kind: str, text: str | list[str], most: int) -> str:
    """Shorten text of a display. Long markup is left out, because a part of it may be invalid."""
    text = text if isinstance(text, str) else "".join(text)
    if kind == "text/plain":
        return _cut(text, most)
    return text if len(text) <= MAX_MARKUP else "... this output was too long ..."


def plain(text: str) -> str:
    """Return text without colours, links and cursor movements."""
    return ANSI.sub("", text)
