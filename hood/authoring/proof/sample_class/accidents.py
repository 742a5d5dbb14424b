"""Make submissions with typical accidents, such as a syntax error or a deleted cell."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from hood.authoring.proof.sample_class.lab import SampleExercise, SampleLab, find, position

# Body of the endless loops. This body uses the processor; tests replace it with a sleep.
FOREVER = "pass"


@dataclass(frozen=True)
class Submission:
    """One submission."""

    story: str  # what the learner did, in a few words
    notebook: Any  # what was handed in: a notebook, or the bytes of a file
    earns: Mapping[str, float | None]  # points by graded cell; None for a cell without mark
    filename: str = ""  # the file's name, if it differs from the lab's name


def untouched(lab: SampleLab) -> Submission:
    """Return the release as a submission."""
    return _without("handed in the untouched lab", lab, lab.exercises)


def make_accidents(lab: SampleLab) -> list[Submission]:
    """Return a submission for each accident. The next accident is always in the next exercise."""
    made = []
    for number, accident in enumerate(ACCIDENTS):
        made.append(accident(lab, lab.exercises[number % len(lab.exercises)]))
    return made


Accident = Callable[[SampleLab, SampleExercise], Submission]


def _cell(story: str, code: str, loses: bool = True, loses_later: bool = False) -> Accident:
    """Return an accident in a solution cell.

    ``story`` says what happened, with ``{}`` in place of the exercise's name. ``code`` is the cell,
    with ``{reference}``, ``{forever}``, or ``{head}`` for the functions' heads. ``loses`` says
    whether the exercise loses its points, and ``loses_later`` whether later exercises also lose
    their points.
    """

    def happen(lab: SampleLab, exercise: SampleExercise) -> Submission:
        heads = (f"def {name}(*args, **kwargs):\n" for name in exercise.check.names)
        filled = (
            code.format(reference=exercise.reference, forever=FOREVER, head=head)
            for head in (heads if "{head}" in code else [""])
        )
        at = lab.exercises.index(exercise)
        lost = lab.exercises[at : None if loses_later else at + loses]
        nb = lab.solved({exercise.name: "\n\n\n".join(filled)})
        return Submission(story.format(exercise.name), nb, lab.full() | _zero(lost))

    return happen


def _without(story: str, lab: SampleLab, exercises: Iterable[SampleExercise]) -> Submission:
    nb = lab.solved({e.name: find(lab.release, e.solution_id).source for e in exercises})
    return Submission(story, nb, lab.full() | _zero(exercises))


def _got_half_way(lab: SampleLab, _: SampleExercise) -> Submission:
    return _without("got half way", lab, lab.exercises[len(lab.exercises) // 2 :])


def _loops_in_function(lab: SampleLab, exercise: SampleExercise) -> Submission:
    done = _cell("{} never returns", "{head}    while True:\n        {forever}")(lab, exercise)
    # drop the cells in between, so that only the graded cell runs into its time limit
    cells = done.notebook.cells
    first, last = (position(done.notebook, i) for i in (exercise.solution_id, exercise.name))
    done.notebook.cells = cells[: first + 1] + cells[last:]
    return done


def _warns(lab: SampleLab, _: SampleExercise) -> Submission:
    answers = {e.name: _warning(e.reference, e.functions()) for e in lab.exercises}
    return Submission("prints warnings everywhere", lab.solved(answers), lab.full())


def _warning(source: str, names: Collection[str]) -> str:
    """Return a cell in which the functions with these names first print a warning.

    The line with the warning is inside the functions, because rules for work by hand look there.
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


def _copies_cells(lab: SampleLab, exercise: SampleExercise) -> Submission:
    """Add copies of two cells: an unchanged solution cell above the real one, and a graded cell."""
    nb = lab.solved()
    at = position(nb, exercise.solution_id)
    nb.cells.insert(at, _copy(find(lab.release, exercise.solution_id), "first-try"))
    nb.cells.append(_copy(find(lab.release, exercise.name), "second-test"))
    return Submission(f"copied cells of {exercise.name}", nb, lab.full())


def _deletes_test(lab: SampleLab, exercise: SampleExercise) -> Submission:
    nb = lab.solved()
    del nb.cells[position(nb, exercise.name)]
    return Submission(f"deleted the test of {exercise.name}", nb, lab.full())


def _moves_answer(lab: SampleLab, exercise: SampleExercise) -> Submission:
    nb = lab.solved()
    at = position(nb, exercise.solution_id)
    nb.cells[at] = nbformat.v4.new_code_cell(nb.cells[at].source)
    return Submission(f"moved {exercise.name} to a new cell", nb, lab.full())


def _edits_test(lab: SampleLab, exercise: SampleExercise) -> Submission:
    done = _without(f"edited the test of {exercise.name}", lab, [exercise])
    find(done.notebook, exercise.name).source = "1e9"
    find(done.notebook, exercise.name).metadata.nbgrader.points = 1000
    return done


def _tags_test(lab: SampleLab, exercise: SampleExercise) -> Submission:
    """Leave the answer out and tag the graded cell so that nbclient would skip it."""
    done = _without(f"tagged the test of {exercise.name}", lab, [exercise])
    find(done.notebook, exercise.name).metadata["tags"] = ["skip-execution"]
    return done


def _saves_foreign_schema(lab: SampleLab, _: SampleExercise) -> Submission:
    nb = lab.solved()
    nb.metadata = nbformat.from_dict({})  # this removes the kernelspec, too
    for cell in nb.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.schema_version = 99
    return Submission("saved by a newer nbgrader", nb, lab.full())


def _misnames(lab: SampleLab, _: SampleExercise) -> Submission:
    second = f"{lab.name} (1).ipynb"  # as a browser names a second download
    return Submission("handed in a misnamed file", lab.solved(), lab.full(), second)


def _confuses_notebooks(lab: SampleLab, _: SampleExercise) -> Submission:
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print('hola')")])
    return Submission("handed in another notebook", nb, _zero(lab.exercises))


def _cuts_upload(lab: SampleLab, _: SampleExercise) -> Submission:
    data = nbformat.writes(lab.solved()).encode()
    return Submission("the upload was cut off", data[: len(data) // 2], dict.fromkeys(lab.full()))


ACCIDENTS: tuple[Accident, ...] = (
    lambda lab, _: untouched(lab),
    _got_half_way,
    _cell("syntax error in {}", "{reference}\nreturn ]"),
    _cell("a cell raises in {}", "1 / 0\n\n\n{reference}"),
    _loops_in_function,
    _cell("a cell of {} never ends", "while True:\n    {forever}\n\n\n{reference}"),
    _cell(
        "a loop that can't be interrupted",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    {forever}\n",
        loses_later=True,
    ),
    _cell("the kernel dies in {}", "import os\nos._exit(1)\n\n\n{reference}", loses_later=True),
    _cell("{} calls sys.exit", "{head}    raise SystemExit(0)"),
    _warns,
    _cell(
        "prints ten thousand lines",
        "{reference}\n\n\nfor i in range(10_000):\n    print('line', i)",
        loses=False,
    ),
    _copies_cells,
    _deletes_test,
    _moves_answer,
    _edits_test,
    _tags_test,
    _saves_foreign_schema,
    _misnames,
    _confuses_notebooks,
    _cuts_upload,
    lambda lab, _: Submission("handed in an empty file", b"", dict.fromkeys(lab.full())),
)


def _zero(exercises: Iterable[SampleExercise]) -> dict[str, float]:
    return {exercise.name: 0.0 for exercise in exercises}


def _copy(cell: NotebookNode, cell_id: str) -> NotebookNode:
    cell = copy.deepcopy(cell)
    cell.id = cell_id
    if is_grade(cell):
        cell.outputs = []
    return cell
