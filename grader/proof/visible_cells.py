"""What the visible cells of a lab say of a wrong solution: whether it passes them all.

A learner stops at the first cell that says `not yet`; a misconception that passes every visible
cell is heard of only when the work has been graded. ``python -m grader selftest`` counts them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import random
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch

HIDDEN = "### BEGIN HIDDEN TESTS"
PICTURES = "utils.views"  # a figure shows, and never says that something is wrong


def visible_cells(cells: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """By exercise, the code below its solution that a learner can see, in order.

    That is the cells between the solution and the graded cell, and the visible part of the latter.

    Args:
        cells: of a lab's text, in order, with ``kind``, ``source`` and ``header``.
    """
    found: dict[str, tuple[str, ...]] = {}
    since: list[str] | None = None
    for cell in cells:
        if cell.kind != "code" or "given" in cell.header:
            continue
        if "solution" in cell.header:
            since = []
        elif since is not None:
            since.append(cell.source.partition(HIDDEN)[0])
            if "test" in cell.header:
                found[cell.header["test"]] = tuple(since)
                since = None
    return found


def refusal(cells: tuple[str, ...], names: Mapping[str, Any]) -> str:
    """What stops a learner at the visible cells; empty when nothing does.

    Args:
        cells: of one exercise, in order.
        names: what is defined once the given cells and the learner's solution have run.
    """
    names = {name: _unseen if _draws(thing) else thing for name, thing in names.items()}
    before = torch.get_rng_state(), random.getstate()
    torch.manual_seed(0)  # the same for everybody who is compared
    random.seed(0)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            for cell in cells:
                exec(compile(cell, "<visible>", "exec"), names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        torch.set_rng_state(before[0])
        random.setstate(before[1])
    return ""


def with_inner_classes(cell: str) -> str:
    """A solution cell whose functions hold classes, with these below it as well.

    A candidate of one function keeps a class that it needs inside; a learner writes it above, and
    the visible cells use it.
    """
    tree = ast.parse(cell)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    classes = [n for f in functions for n in f.body if isinstance(n, ast.ClassDef)]
    return "\n\n\n".join([cell, *map(ast.unparse, classes)])


def _draws(thing: Any) -> bool:
    return callable(thing) and str(getattr(thing, "__module__", "")).startswith(PICTURES)


def _unseen(*_: Any, **__: Any) -> None:
    """Stands for a figure."""
