"""Detect failures of code that was written for a newer Python than this machine has.

Such code does not parse here, or uses modules and names that this standard library does not have
yet. The notebook's metadata has the learner's version of Python, and the learner's kernel reports
the error. A learner could forge the version and the error. A forgery gains no points, because a
person looks at the answer.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterable

from hood.grader.execution.graded_cell import Stop
from hood.grader.submission.additions import names_in
from hood.judge.source.cell_names import words
from hood.judge.source.learner_source import LearnerSource
from hood.verdict import Cause

OURS = sys.version_info[:2]
VERSION = re.compile(r"(\d)\.(\d{1,3})(?![\d])")
# Modules of the standard library, including those that this Python may not have.
LIBRARY = sys.stdlib_module_names | words("annotationlib compression")
# Python's messages about missing names and modules. Each message contains the module's name.
LACKS = {
    "ImportError": re.compile(r"cannot import name '\w+' from '(\w+)[.\w]*'"),
    "ModuleNotFoundError": re.compile(r"No module named '(\w+)[.\w]*'"),
    "AttributeError": re.compile(r"module '(\w+)[.\w]*' has no attribute "),
}


class NewerPython:
    """The names that cells could not define because the notebook's Python is newer.

    ``version`` is the notebook's version of Python, such as ``3.13.5``. If the text has another
    form, the version counts as unknown.
    """

    def __init__(self, version: str):
        found = VERSION.match(version)
        self._theirs = (int(found[1]), int(found[2])) if found else OURS
        self._given = set[str]()  # names of the lab's own cells
        self._lacking: dict[str, str] = {}  # name -> why no cell defined it

    def ran(self, source: str, given: bool, error: str = "", message: str = "") -> None:
        """Record a cell that ran, and the type and message of the error if an error ended the cell.

        ``given`` says whether the cell came with the lab.
        """
        if self._theirs <= OURS:
            return
        names = names_in(source)
        self._given |= names if given else set()
        why = _why(error, message)
        if why and not given:
            self._lacking |= dict.fromkeys(names - self._given, why)
        elif not error:
            for name in names & self._lacking.keys():
                del self._lacking[name]

    def stop(
        self, hidden: str, code: LearnerSource, raised: Iterable[tuple[str, str]] = ()
    ) -> Stop | None:
        """Return why an answer without full points must wait for a person, or None.

        ``hidden`` is the graded cell's code, which names the judged object. ``raised`` has the
        types and messages of errors from calls.
        """
        if self._theirs <= OURS:
            return None
        why = next(filter(None, (_why(*one) for one in raised)), "")
        if not why and self._lacking:
            names = {node.id for node in ast.walk(ast.parse(hidden)) if isinstance(node, ast.Name)}
            with contextlib.suppress(RecursionError):  # the code is nested too deeply
                names = names.union(*map(code.reads, names))
            why = next((self._lacking[name] for name in sorted(names & self._lacking.keys())), "")
        if not why:
            return None
        theirs, ours = (".".join(map(str, version)) for version in (self._theirs, OURS))
        problem = (
            f"no mark yet: the notebook was written with Python {theirs}, but the grading "
            f"machine has Python {ours}: {why}. A person will look at it"
        )
        return Stop(Cause.NEWER_PYTHON, problem)


def _why(error: str, message: str) -> str:
    """Return in words what this Python lacks if an error shows it; else an empty text."""
    if error == "SyntaxError":
        return "a cell that this answer needs does not parse (SyntaxError)"
    found = LACKS[error].match(message) if error in LACKS else None
    if found is None or found[1] not in LIBRARY:
        return ""
    return f"`{found[1]}` lacks something that this answer needs ({error})"
