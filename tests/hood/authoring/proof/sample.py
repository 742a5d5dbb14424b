"""A small class for a lab, for a test that has no time to grade all known answers."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell

from hood.authoring.proof.sample_class import Learner, enrol
from hood.authoring.proof.sample_class.accidents import Submission, untouched
from hood.authoring.proof.sample_class.lab import SampleExercise, SampleLab, find
from hood.judge.checks.answers import Candidate
from tests.phases import dear

BESIDE = [
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "import a_package_that_is_not_here",
    "len?\n!true\n%timeit -n 1 -r 1 sum([1, 2])\n'x' in globals()",
    "from IPython.core.interactiveshell import InteractiveShell\n"
    "InteractiveShell.ast_node_interactivity = 'all'\nexec('scratch = 1')",
]


def beside(nb: NotebookNode) -> NotebookNode:
    """Return a copy with a learner's own cells after the first code cell."""
    nb = copy.deepcopy(nb)
    first = next(n for n, cell in enumerate(nb.cells) if cell.cell_type == "code") + 1
    nb.cells[first:first] = [new_code_cell(text) for text in BESIDE]
    return nb


def sampled(exercise: SampleExercise, seed: str) -> Candidate:
    """The misconception of an exercise that the seed selects; other commits select others."""
    return Random(f"{seed} {exercise.name}").choice(exercise.check.misconceptions)


def asked(lab: SampleLab) -> list[SampleExercise]:
    """The exercises that every learner of a sample answers."""
    return [exercise for exercise in lab.exercises if exercise.name not in dear.DEAREST]


def make_sample(lab: SampleLab, seed: str) -> list[Learner]:
    """Make four learners.

    One learner solves everything as the lab does. Two answer the exercises that :func:`asked`
    returns. The first of these two hands in alternates that the seed selects, with cells of
    :func:`beside`. The second hands in a :func:`sampled` misconception for each exercise. One hands
    in the untouched lab.
    """
    solved = Submission("solved everything", lab.solved(), lab.full())
    return enrol(lab, [solved, _otherwise(lab, seed), _mistaken(lab, seed), untouched(lab)])


def _otherwise(lab: SampleLab, seed: str) -> Submission:
    def other(exercise: SampleExercise) -> Candidate:
        return Random(f"{seed} {exercise.name}").choice(exercise.check.alternates)

    full = lab.full()
    answers = {e: (e.written(other(e)), full[e.name]) for e in asked(lab)}
    done = _answered(lab, answers, "solved in another way")
    return replace(done, notebook=beside(done.notebook))


def _mistaken(lab: SampleLab, seed: str) -> Submission:
    mistakes = {exercise: sampled(exercise, seed) for exercise in asked(lab)}
    answers = {e: (e.written(mistake), e.expects(mistake)) for e, mistake in mistakes.items()}
    return _answered(lab, answers, "mistaken in every exercise")


def _answered(
    lab: SampleLab, answers: Mapping[SampleExercise, tuple[str, float]], story: str
) -> Submission:
    done = untouched(lab)
    for exercise, (cell, points) in answers.items():
        find(done.notebook, exercise.solution_id).source = cell
        done.earns[exercise.name] = points
    return Submission(story, done.notebook, done.earns)
