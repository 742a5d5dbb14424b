"""End a notebook's cell with one line instead of a less helpful traceback.

Two errors need no traceback. One is a stub that is not filled in. The other is a missing name that
a cell above defines, if this kernel has not run that cell (for example after a kernel died). A
course may add other errors (`errors` in its `course.toml`), such as a compilation on a machine
without a compiler. An error below a verdict in the same cell needs no traceback either: the verdict
has explained it. The cell still ends in an error, so that Run All and Validate notice it.
"""

from __future__ import annotations

import os
import symtable
import textwrap
import traceback
from importlib import import_module
from typing import Any

from IPython import get_ipython

from hood.audience import NBGRADER
from hood.course import course
from hood.judge import history
from hood.lab_words import STUB
from hood.learner import bounded_traceback as bounded_traceback  # for all other errors
from hood.learner.contents import ROOT, own_notebook
from hood.learner.lab_file import UNREADABLE, cells_of, text_of

COLUMNS = 88  # JupyterLab would break a longer line inside a word
MOST = 200  # characters of an error's message

_judged = [""]  # the text of the last cell that showed a verdict


def install() -> None:
    shell = get_ipython()
    if shell is not None and os.environ.get(NBGRADER) != "autograde":
        shell.set_custom_exc((Exception,), _show)


def after_verdict() -> None:
    """Show only one line for errors in the rest of this cell.

    :func:`hood.learner.check.check` calls this when it has shown a verdict.
    """
    _judged[0] = history.running()


def line_for(error: BaseException, trace: Any) -> str:
    """Return the line to show for an error; empty if the error's traceback should be shown."""
    if isinstance(error, NotImplementedError) and str(error) == STUB:
        *_, (frame, _) = traceback.walk_tb(trace)
        name = frame.f_code.co_qualname
        return f"{name}: not written yet. Replace its `raise` line with your answer."
    if type(error) is NameError and error.name and not_run_yet(error.name):
        return textwrap.fill(
            f"`{error.name}` is not defined: a cell above defines it, but has not run in this "
            "kernel. If a kernel died, the new kernel is empty. Choose Run → Run All Above "
            "Selected Cell, then run this cell again.",
            COLUMNS,
        )
    if (module := course(ROOT).errors) and (line := import_module(module).line_for(error)):
        return str(line)
    own = hasattr(error, "_render_traceback_")  # the error itself chooses what is shown
    if _judged[0] and _judged[0] == history.running() and not own:
        return _below_verdict(error, trace)
    return ""


def _below_verdict(error: BaseException, trace: Any) -> str:
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    names = [
        frame.f_code.co_qualname
        for frame in frames
        if "__name__" in frame.f_globals and frame.f_globals["__name__"] == "__main__"
    ]
    where = f" (in `{names[-1]}`)" if names and names[-1] != "<module>" else ""
    said = str(error).strip().partition("\n")[0][:MOST]
    return f"{type(error).__name__}: {said}{where}. The rest of this cell did not run."


def not_run_yet(name: str) -> bool:
    """Return whether a cell above the running cell defines a name, and has not run to its end.

    The cells come from the saved notebook. If the saved notebook can't be read, the result is
    False.
    """
    path, ran = own_notebook(), history.cells()
    if path is None:
        return False
    try:
        cells = [cell for cell in cells_of(path) if cell["cell_type"] == "code"]
        above = {str(cell.get("id")): text_of(cell) for cell in cells}
    except (OSError, *UNREADABLE):
        return False
    now = next(reversed(ran), "")
    names = list(above)
    above = {one: above[one] for one in names[: names.index(now) if now in above else len(names)]}
    done = {one for one, cell in ran.items() if cell.finished}
    return any(name in _defined(text) for one, text in above.items() if one not in done)


def _defined(code: str) -> set[str]:
    """Return the names to which code gives a value; empty if the code can't be parsed."""
    try:
        symbols = symtable.symtable(code, "cell", "exec").get_symbols()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}


def _show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
    if line := line_for(error, trace):
        shell._showtraceback(kind, error, [line])
    else:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


install()
