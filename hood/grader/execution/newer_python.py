"""Tell what a notebook lacks because it was written with a newer Python than this machine's.

That is code which is no Python here, and modules and names that the standard library does not have
yet. The notebook's own metadata says which Python it was, and the learner's kernel which error came
of it. Both are claims: to forge them gains no point, only a look by a person.
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
# Modules of the standard library that this Python need not have.
LIBRARY = sys.stdlib_module_names | words("annotationlib compression")
# What Python says of what a module lacks, with the module.
LACKS = {
    "ImportError": re.compile(r"cannot import name '\w+' from '(\w+)[.\w]*'"),
    "ModuleNotFoundError": re.compile(r"No module named '(\w+)[.\w]*'"),
    "AttributeError": re.compile(r"module '(\w+)[.\w]*' has no attribute "),
}


class NewerPython:
    """What the cells that ran so far could not define, as long as the notebook's Python is newer.

    ``version`` is what the notebook says, such as ``3.13.5``; anything else means that it says
    nothing.
    """

    def __init__(self, version: str):
        found = VERSION.match(version)
        self._theirs = (int(found[1]), int(found[2])) if found else OURS
        self._given = set[str]()  # names of the lab's own cells
        self._lacking: dict[str, str] = {}  # name -> why no cell defined it

    def ran(self, source: str, given: bool, error: str = "", message: str = "") -> None:
        """Note a cell that ran, and the type and the message of the error that ended it, if any.

        ``given`` says whether it came with the lab.
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
        """Return why an answer that did not earn its points waits for a person; None if it doesn't.

        ``hidden`` is the graded cell's code, which names what is judged; ``raised`` has the types
        and messages of the errors that came of calls.
        """
        if self._theirs <= OURS:
            return None
        why = next(filter(None, (_why(*one) for one in raised)), "")
        if not why and self._lacking:
            names = {node.id for node in ast.walk(ast.parse(hidden)) if isinstance(node, ast.Name)}
            with contextlib.suppress(RecursionError):  # it is made of too much
                names = names.union(*map(code.reads, names))
            why = next((self._lacking[name] for name in sorted(names & self._lacking.keys())), "")
        if not why:
            return None
        theirs, ours = (".".join(map(str, version)) for version in (self._theirs, OURS))
        problem = (
            f"no mark yet: the notebook was written with Python {theirs}, and the machine that "
            f"grades has Python {ours}, where {why}. A person will look at it"
        )
        return Stop(Cause.NEWER_PYTHON, problem)


def _why(error: str, message: str) -> str:
    """Return, in words, what this Python lacks by an error; empty if it may be another's fault."""
    if error == "SyntaxError":
        return "a cell that this answer needs does not parse (SyntaxError)"
    found = LACKS[error].match(message) if error in LACKS else None
    if found is None or found[1] not in LIBRARY:
        return ""
    return f"`{found[1]}` lacks something that this answer needs ({error})"
