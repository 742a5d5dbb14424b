"""Attacks that copy plain hidden tests from the learner's kernel into the feedback."""

from __future__ import annotations

from textwrap import dedent

import nbformat
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

# The result of `f` does not depend on the hidden number; `g` is called after `f`.
RIGHT_F = "def f(x):\n    return x"
RIGHT_G = "def g(x):\n    return x"
HIDDEN = (
    "hidden_number = {number}\nassert f(hidden_number) == hidden_number, f'f gave {{f(2)}}, so'"
)
SEEN = """
import sys
def hidden_test():
    return str(sys._getframe(2).f_globals.get("hidden_number", 0))
"""


def source_notebook(number: int) -> NotebookNode:
    """Return an ordinary nbgrader lab whose hidden tests contain a number.

    Args:
        number: the number, which no learner should be able to read.
    """
    nb = new_notebook()

    def add(source: str, **settings: object) -> None:
        kind = {"grade": False, "solution": False, "locked": False, "task": False}
        about = {"nbgrader": kind | {"schema_version": 3} | settings}
        nb.cells.append(new_code_cell(source, id=str(settings["grade_id"]), metadata=about))

    begin, end = "### BEGIN SOLUTION", "### END SOLUTION"
    for name, right in (("f", RIGHT_F), ("g", RIGHT_G)):
        head, body = right.split("\n")
        add(f"{head}\n    {begin}\n{body}\n    {end}", solution=True, grade_id=f"{name}_solution")
        test = HIDDEN.format(number=number) if name == "f" else f"assert g({number}) == {number}"
        hidden = f"### BEGIN HIDDEN TESTS\n{test}\n### END HIDDEN TESTS"
        visible = f"assert {name}(1) is not None, 'nothing was returned'"
        add(f"{visible}\n{hidden}", grade=True, locked=True, grade_id=name, points=2)
    return nb


def attempt(f: str = RIGHT_F, g: str = RIGHT_G, first: str = "", last: str = "", more: int = 0):
    """Return the cells of one submission: its answer, and code to run before and after it."""
    return {"f": f, "g": g, "first": first, "last": last, "more": more}


# Attempt -> the cells of its submission.
ATTEMPTS = {
    "prints what its caller knows": attempt(
        SEEN + "def f(x):\n    print(hidden_test())\n    return x"
    ),
    "prints its caller's code": attempt(
        "def f(x):\n    print(In[-1])\n    import linecache\n"
        "    print([v[2] for k, v in linecache.cache.items() if 'ipykernel' in k])\n    return x"
    ),
    "reads it from the history in a later cell": attempt(
        last="print(In); print(list(get_ipython().history_manager.get_range()))"
    ),
    "prints to stderr and warns": attempt(
        SEEN + "import warnings\ndef f(x):\n    print(hidden_test(), file=sys.stderr)\n"
        "    warnings.warn(hidden_test())\n    return x"
    ),
    "raises it": attempt(
        SEEN + "def f(x):\n    if x == 1: return x\n    raise ValueError(hidden_test())"
    ),
    "names a type after it": attempt(
        SEEN + "def f(x):\n    if x == 1: return x\n"
        "    raise type('X' + hidden_test(), (Exception,), {})()"
    ),
    "fills the gap of the instructor's message": attempt(
        SEEN + "def f(x):\n    if x == 1: return x\n    return hidden_test() if x == 2 else None"
    ),
    "displays it as a picture": attempt(
        SEEN + "import base64\ndef f(x):\n    data = base64.b64encode(hidden_test().encode())\n"
        "    display({'image/png': data.decode(), 'text/html': hidden_test()}, raw=True)\n"
        "    return x"
    ),
    "updates what an earlier cell displayed": attempt(
        SEEN + "def f(x):\n    handle.update(hidden_test())\n    return x",
        first="handle = display('nothing yet', display_id='early')",
    ),
    "prints from a thread of an earlier cell": attempt(
        last="import time; time.sleep(0.2)",
        first="""
        import threading, time
        def wait():
            while "hidden_number" not in globals():
                time.sleep(0.01)
            for _ in range(10):
                print(hidden_number, flush=True)
                time.sleep(0.01)
        threading.Thread(target=wait, daemon=True).start()
        """,
    ),
    "counts executions up to it": attempt(
        SEEN + "def f(x):\n    get_ipython().execution_count = int(hidden_test())\n    return x",
        last="1",
    ),
    "writes its own traceback": attempt(
        SEEN
        + "def f(x):\n    shell = get_ipython()\n"
        + "    shell._showtraceback = lambda *a: shell.display_pub and "
        + "shell.sender.send('error', "
        + "ename='NotRun', evalue=str(hidden_number), traceback=[str(hidden_number)])\n"
        + "    if x > 1: raise ValueError\n    return x",
    ),
    "says it as the grader's own error": attempt(
        SEEN + "def f(x):\n    if x == 1: return x\n"
        "    raise type('TimeLimit', (Exception,), {})('stopped after ' + hidden_test() + ' s')"
    ),
    "fails in a later cell for each bit of it": attempt(
        last="assert not hidden_number >> {k} & 1", more=20
    ),
    "opens a widget that holds it": attempt(
        last="import ipywidgets; display(ipywidgets.HTML(str(hidden_number)))"
    ),
    "asks for a new cell": attempt(last="get_ipython().set_next_input(str(hidden_number))"),
    "writes it beside the notebook": attempt(
        last="open('seen.html', 'w').write(str(hidden_number))"
    ),
}


def handed_in(released: NotebookNode, cells: dict) -> bytes:
    """Return the submission's file."""
    nb = nbformat.from_dict(released)
    by_id = {cell.metadata.nbgrader.grade_id: cell for cell in nb.cells}
    for name in ("f", "g"):
        by_id[f"{name}_solution"].source = cells[name].strip()
    first, last = dedent(cells["first"]).strip(), dedent(cells["last"]).strip()
    if first:
        nb.cells.insert(0, new_code_cell(first))
    if last:
        nb.cells += [new_code_cell(last.replace("{k}", str(k))) for k in range(cells["more"] or 1)]
    return nbformat.writes(nb).encode()
