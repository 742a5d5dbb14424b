"""``verify``: the one hidden line of a graded cell.

It runs the check of that name, shows a short report, and returns the points earned as a float,
which nbgrader reads as partial credit.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import secrets
import textwrap
from typing import Any

from IPython import get_ipython

SEED_VARIABLE = "OPEN_THE_HOOD_SEED"
VERDICT_MIME = "application/vnd.open-the-hood.verdict+json"


def verify(name: str, thing: Any = None, /, **things: Any) -> float:
    """Judge the learner's work by the check ``name``, show the report, return the points earned.

    The cases are drawn from the seed in ``OPEN_THE_HOOD_SEED``, or from a fresh one.

    Args:
        name: the check.
        thing: the function, class or value, for an exercise that asks for one.
        things: the functions by name, for an exercise that asks for several.

    Raises:
        LookupError: when there is no such check. Nothing that the learner's code does raises.
    """
    thing = things or thing
    # imported here: a kernel that only asks another process to judge needs none of them
    from grader.catalogue import find_check
    from grader.judge import judge
    from grader.report import Report

    phase, check = find_check(name)
    seed = os.environ.get(SEED_VARIABLE) or secrets.token_hex(8)
    verdict = judge(check, thing, seed, source=_source_of(thing))
    Report(verdict, phase.number).show()
    return verdict.earned


def _source_of(thing: Any) -> str | dict[str, str]:
    """The learner's code where Python still has it: of each function, when there are several."""
    if isinstance(thing, dict):
        return {name: _source_of(function) for name, function in thing.items()}
    try:
        return "\n\n".join(_sources(inspect.unwrap(getattr(thing, "func", thing)), set()))
    except Exception:  # it may be an object that only pretends to be a function
        return ""


def _sources(function: Any, seen: set[int]) -> list[str]:
    """The code of a function and of the helpers beside it that it calls, each once."""
    if not inspect.isfunction(function) or id(function) in seen:
        return []
    seen.add(id(function))
    helpers = (function.__globals__.get(name) for name in function.__code__.co_names)
    near = [h for h in helpers if getattr(h, "__module__", None) == function.__module__]
    return [_source(function), *(text for helper in near for text in _sources(helper, seen))]


def _source(function: Any) -> str:
    """Its own lines, or the whole cell where these don't stand by themselves (a lambda)."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        ast.parse(text)
        return text
    except (OSError, SyntaxError):
        return "".join(linecache.getlines(function.__code__.co_filename)) or _from_history(function)


def _from_history(function: Any) -> str:
    """The last cell that defined it, where a cell magic hid the code from Python."""
    shell = get_ipython()
    cells = shell.user_ns.get("In", []) if shell else []
    found = [cell for cell in cells if f"def {function.__name__}(" in cell]
    lines = found[-1].splitlines() if found else []
    return "\n".join(line for line in lines if not line.startswith(("%", "!")))
