"""Make submissions with typical accidents, such as a syntax error or a deleted cell.

Each function takes a lab and the exercise to which the accident happens, and returns the
submission with the points that it must earn.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from grader.proof.sample_class.lab import SampleExercise, SampleLab, find, position

# Body of the endless loops. It uses the processor; tests replace it by a sleep.
FOREVER = "pass"


@dataclass(frozen=True)
class HandedIn:
    """One submission.

    Attributes:
        story: what the learner did, in a few words.
        notebook: what was handed in: a notebook, or the bytes of a file.
        earns: the points that it must earn, for each graded cell; None where it has no mark.
        filename: the file's name if it is not the lab's.
    """

    story: str
    notebook: NotebookNode | bytes
    earns: Mapping[str, float | None]
    filename: str = ""


def untouched(lab: SampleLab, _: SampleExercise) -> HandedIn:
    """Hand in the release unchanged."""
    return HandedIn("handed in the untouched lab", copy.deepcopy(lab.release), _nothing(lab))


def half_finished(lab: SampleLab, _: SampleExercise) -> HandedIn:
    """Solve the first half of the exercises and leave the rest as stubs."""
    rest = lab.exercises[len(lab.exercises) // 2 :]
    nb = lab.solved({e.name: find(lab.release, e.solution_id).source for e in rest})
    return HandedIn("got half way", nb, lab.full() | _zero(*rest))


def syntax_error(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in a cell that does not parse."""
    nb = lab.solved({exercise.name: f"{exercise.reference}\nreturn ]"})
    return HandedIn(f"syntax error in {exercise.name}", nb, lab.full() | _zero(exercise))


def exception_in_cell(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in a cell that raises before it defines anything."""
    nb = lab.solved({exercise.name: f"1 / 0\n\n\n{exercise.reference}"})
    return HandedIn(f"a cell raises in {exercise.name}", nb, lab.full() | _zero(exercise))


def loop_in_function(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in functions that never return."""
    nb = lab.solved({exercise.name: _instead(exercise, f"while True:\n        {FOREVER}")})
    # drop the cells between, so that only the graded cell runs into its time limit
    first, last = position(nb, exercise.solution_id), position(nb, exercise.name)
    nb.cells = nb.cells[: first + 1] + nb.cells[last:]
    return HandedIn(f"{exercise.name} never returns", nb, lab.full() | _zero(exercise))


def loop_in_cell(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in a cell that never ends and can be interrupted."""
    nb = lab.solved({exercise.name: f"while True:\n    {FOREVER}\n\n\n{exercise.reference}"})
    return HandedIn(f"a cell never ends in {exercise.name}", nb, lab.full() | _zero(exercise))


def loop_that_stays(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in a cell that never ends and ignores interrupts, so that no later cell runs."""
    ignore = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"
    stay = f"{ignore}\nwhile True:\n    {FOREVER}\n"
    nb = lab.solved({exercise.name: stay})
    return HandedIn("a loop that can't be interrupted", nb, lab.full() | _from(lab, exercise))


def kernel_dies(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in a cell that ends the kernel, so that no later cell runs."""
    nb = lab.solved({exercise.name: f"import os\nos._exit(1)\n\n\n{exercise.reference}"})
    return HandedIn(f"the kernel dies in {exercise.name}", nb, lab.full() | _from(lab, exercise))


def calls_exit(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in functions that raise SystemExit."""
    nb = lab.solved({exercise.name: _instead(exercise, "raise SystemExit(0)")})
    return HandedIn(f"{exercise.name} calls sys.exit", nb, lab.full() | _zero(exercise))


def warns(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in right answers whose functions warn at each call, which writes to stderr."""
    nb = lab.solved()
    for e in lab.exercises:
        cell = find(nb, e.solution_id)
        cell.source = _warning(cell.source, e.functions())
    return HandedIn("prints warnings everywhere", nb, lab.full())


def _warning(source: str, names: Collection[str]) -> str:
    """Return a cell in which the functions of these names warn before they do anything.

    The line stands in the functions themselves: a rule for work by hand can follow it there.
    """
    lines = source.splitlines()
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = node.body[0]
            above = min(n.lineno for n in (first, *getattr(first, "decorator_list", ())))
            if above > node.lineno:
                indent = " " * first.col_offset
                lines.insert(above - 1, f'{indent}warnings.warn("mind the strides")')
    return "\n".join(["import warnings", "", *lines])


def prints_much(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Hand in a right answer that also prints ten thousand lines."""
    nb = lab.solved(
        {exercise.name: f"{exercise.reference}\n\n\nfor i in range(10_000):\n    print('line', i)"}
    )
    return HandedIn("prints ten thousand lines", nb, lab.full())


def copies_cells(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Copy cells: an unchanged solution cell above the real one, and a second graded cell."""
    nb = lab.solved()
    at = position(nb, exercise.solution_id)
    nb.cells.insert(at, _copy(find(lab.release, exercise.solution_id), "first-try"))
    nb.cells.append(_copy(find(lab.release, exercise.name), "second-test"))
    return HandedIn(f"copied cells of {exercise.name}", nb, lab.full())


def deletes_test(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Delete the graded cell; the answer is right."""
    nb = lab.solved()
    del nb.cells[position(nb, exercise.name)]
    return HandedIn(f"deleted the test of {exercise.name}", nb, lab.full())


def deletes_answer(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Delete the solution cell and put its code into a new cell."""
    nb = lab.solved()
    at = position(nb, exercise.solution_id)
    nb.cells[at] = nbformat.v4.new_code_cell(nb.cells[at].source)
    return HandedIn(f"moved {exercise.name} to a new cell", nb, lab.full())


def edits_test(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Leave the answer out and edit the graded cell, so that it claims points."""
    nb = lab.solved({exercise.name: find(lab.release, exercise.solution_id).source})
    find(nb, exercise.name).source = "1e9"
    find(nb, exercise.name).metadata.nbgrader.points = 1000
    return HandedIn(f"edited the test of {exercise.name}", nb, lab.full() | _zero(exercise))


def tags_test(lab: SampleLab, exercise: SampleExercise) -> HandedIn:
    """Leave the answer out and tag the graded cell so that nbclient would skip it."""
    nb = lab.solved({exercise.name: find(lab.release, exercise.solution_id).source})
    find(nb, exercise.name).metadata["tags"] = ["skip-execution"]
    return HandedIn(f"tagged the test of {exercise.name}", nb, lab.full() | _zero(exercise))


def foreign_schema(lab: SampleLab, _: SampleExercise) -> HandedIn:
    """Hand in right answers in a notebook with another nbgrader's schema and no kernelspec."""
    nb = lab.solved()
    nb.metadata = nbformat.from_dict({})
    for cell in nb.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.schema_version = 99
    return HandedIn("saved by a newer nbgrader", nb, lab.full())


def misnamed(lab: SampleLab, _: SampleExercise) -> HandedIn:
    """Hand in right answers in a file with the name that a browser gives a second download."""
    return HandedIn("handed in a misnamed file", lab.solved(), lab.full(), f"{lab.name} (1).ipynb")


def other_notebook(lab: SampleLab, _: SampleExercise) -> HandedIn:
    """Hand in a notebook that is not this lab."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print('hola')")])
    return HandedIn("handed in another notebook", nb, _nothing(lab))


def damaged(lab: SampleLab, _: SampleExercise) -> HandedIn:
    """Hand in a file that was cut off during its upload."""
    data = nbformat.writes(lab.solved()).encode()
    return HandedIn("the upload was cut off", data[: len(data) // 2], _no_mark(lab))


def empty(lab: SampleLab, _: SampleExercise) -> HandedIn:
    """Hand in an empty file."""
    return HandedIn("handed in an empty file", b"", _no_mark(lab))


ALL = (
    untouched,
    half_finished,
    syntax_error,
    exception_in_cell,
    loop_in_function,
    loop_in_cell,
    loop_that_stays,
    kernel_dies,
    calls_exit,
    warns,
    prints_much,
    copies_cells,
    deletes_test,
    deletes_answer,
    edits_test,
    tags_test,
    foreign_schema,
    misnamed,
    other_notebook,
    damaged,
    empty,
)


def _zero(*exercises: SampleExercise) -> dict[str, float]:
    return {exercise.name: 0.0 for exercise in exercises}


def _nothing(lab: SampleLab) -> dict[str, float]:
    return _zero(*lab.exercises)


def _no_mark(lab: SampleLab) -> dict[str, None]:
    return dict.fromkeys(exercise.name for exercise in lab.exercises)


def _from(lab: SampleLab, exercise: SampleExercise) -> dict[str, float]:
    """Return 0 points for an exercise and for all after it."""
    return _zero(*lab.exercises[lab.exercises.index(exercise) :])


def _instead(exercise: SampleExercise, body: str) -> str:
    """Return the exercise's functions with another body."""
    functions = (f"def {name}(*args, **kwargs):\n    {body}" for name in exercise.check.names)
    return "\n\n\n".join(functions)


def _copy(cell: NotebookNode, cell_id: str) -> NotebookNode:
    cell = copy.deepcopy(cell)
    cell.id = cell_id
    if is_grade(cell):
        cell.outputs = []
    return cell
