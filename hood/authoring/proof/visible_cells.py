"""Test whether a wrong solution passes all visible cells of a lab.

A learner stops at the first cell that fails. If a misconception passes every visible cell, only
grading finds it. ``python -m hood selftest`` counts these misconceptions.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Mapping
from typing import Any

from hood.authoring.notebooks.regions import BEGIN_HIDDEN
from hood.authoring.proof.quiet import quiet
from hood.grader.course_sandbox import of_course

# Functions that only report mistakes to a person, such as `check`, are skipped.
SKIPPED = ("hood.learner.check",)  # and modules that the course names


def visible_cells(cells: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """Return for each exercise the visible code below its solution, in order.

    These are the cells between the solution and the graded cell, and the visible part of the graded
    cell. ``cells`` are the cells of a lab's text, in order, with ``kind``, ``source`` and
    ``header``.
    """
    found: dict[str, tuple[str, ...]] = {}
    since: list[str] | None = None
    for cell in cells:
        if cell.kind != "code" or "given" in cell.header:
            continue
        if "solution" in cell.header:
            since = []
        elif since is not None:
            since.append(cell.source.partition(BEGIN_HIDDEN)[0])
            if "test" in cell.header:
                found[cell.header["test"]] = tuple(since)
                since = None
    return found


def refusal(cells: tuple[str, ...], names: Mapping[str, Any]) -> str:
    """Run the visible cells of an exercise; return the first error, or an empty string.

    ``names`` has everything that the given cells and the learner's solution define.
    """
    names = {name: _unseen if _skipped(thing) else thing for name, thing in names.items()}
    before = random.getstate()
    random.seed(0)  # the same for all solutions
    try:
        with of_course().same_random(), quiet():
            for cell in cells:
                exec(compile(cell, "<visible>", "exec"), names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        random.setstate(before)
    return ""


def with_inner_classes(cell: str) -> str:
    """Return a solution cell, followed by copies of the classes inside its functions.

    A candidate is a single function, so its classes are inside it. A learner writes classes outside
    the function, where the visible cells can use the classes.
    """
    tree = ast.parse(cell)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    classes = [n for f in functions for n in f.body if isinstance(n, ast.ClassDef)]
    return "\n\n\n".join([cell, *map(ast.unparse, classes)])


def _skipped(thing: Any) -> bool:
    return callable(thing) and str(getattr(thing, "__module__", "")).startswith(
        (*SKIPPED, *of_course().never_fail)
    )


def _unseen(*_: Any, **__: Any) -> None:
    """Do nothing, in place of a function that is skipped."""
