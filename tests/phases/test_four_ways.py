"""An answer gets the same verdict everywhere.

``check`` in a notebook, the service and grading judge every alternate of every lab, below cells
that any learner may write. All of them must earn all points. A proof hands in all alternates. Other
runs hand in one randomly selected alternate for each exercise. In these runs the service judges
only the exercises by hand, because their verdicts depend on more than values. Grading is then
tested in ``test_lab_proof.py``, where a learner of the sample hands in alternates with the same
cells beside them.
"""

import copy
from dataclasses import dataclass
from random import Random

import nbformat
import pytest
from nbformat.v4 import output_from_msg

from hood.authoring.proof.sample_class import lab as sample
from hood.authoring.proof.sample_class import right
from hood.classroom.service.single_exercise import exercise_alone, handed_in, verdict_of
from hood.grader.batch.grading import grade
from hood.grader.batch.intake import read_lab
from hood.grader.batch.job import Job, LabFiles, Submission
from hood.grader.course import open_course
from hood.grader.execution.graded_cell import is_verified, read_verdicts
from hood.phase_paths import ROOT
from tests.hood.authoring.proof.sample import beside
from tests.live_kernel import live_kernel

LABS = [path.stem for path in sorted(ROOT.glob("source/*/*.ipynb"))]


@dataclass(frozen=True)
class HandedIn:
    """A lab, and a notebook that solves it."""

    lab: LabFiles
    name: str
    nb: nbformat.NotebookNode
    full: dict[str, float]  # the points of each exercise
    by_hand: list[str]  # its exercises by hand

    def file(self) -> bytes:
        return nbformat.writes(self.nb).encode()


@pytest.fixture(scope="module", params=[pytest.param(lab, id=f"{lab}: {lab}") for lab in LABS])
def submissions(request, full, seeds):
    """The right solutions of a lab, with cells beside them."""
    name = request.param
    loaded = sample.load_lab(ROOT, name)
    lab = read_lab(open_course(ROOT), name)
    every = right(loaded)[1:]
    drawn = every if full else [Random(f"ways {seeds[-1]}").choice(every)]
    by_hand = [one.name for one in loaded.exercises if one.check.by_hand is not None]
    return [HandedIn(lab, name, beside(s.notebook), dict(s.earns), by_hand) for s in drawn]


def earned(verdicts):
    return {name: verdict.earned for name, verdict in verdicts.items()}


def said(verdicts):
    """The lost points and reasons, for a failing test."""
    return {
        name: [part.problem for part in verdict.parts if part.problem]
        for name, verdict in verdicts.items()
        if verdict.earned < verdict.most
    }


@pytest.mark.full
@pytest.mark.slow(60)
def test_grading_gives_all_points(submissions):
    for one in submissions:
        done = grade(Job(one.lab, "ann", Submission({one.name: one.file()}), "id"))
        found = read_verdicts(nbformat.reads(done.notebooks[0].data.decode(), 4))
        assert earned(found) == one.full, said(found)


@pytest.mark.slow(60)
@pytest.mark.of_labs
def test_a_learners_notebook_gives_all_points(submissions, monkeypatch):
    monkeypatch.delenv("OPEN_THE_HOOD_SERVICE", raising=False)
    for one in submissions:
        source = nbformat.reads(one.lab.notebooks[one.name].decode(), 4)
        ours = {cell.id: cell for cell in source.cells if is_verified(cell)}
        nb = copy.deepcopy(one.nb)
        with live_kernel() as (_, client):
            for cell in nb.cells:
                if cell.cell_type != "code":
                    continue
                graded = ours.get(cell.id)
                asks = f'check("{cell.metadata.nbgrader.grade_id}")' if graded else cell.source
                cell.outputs = outputs = []

                def hook(message, outputs=outputs):
                    if message["msg_type"] == "display_data":
                        outputs.append(output_from_msg(message))

                client.execute_interactive(asks, output_hook=hook, timeout=300, stop_on_error=False)
                if graded:
                    cell.source = graded.source
        found = read_verdicts(nb)
        assert earned(found) == one.full, said(found)


@pytest.mark.slow(60)
@pytest.mark.of_labs
def test_the_service_gives_all_points(submissions, full):
    for one in submissions:
        source = one.lab.notebooks[one.name]
        ran = [(cell.id, cell.source) for cell in one.nb.cells if cell.cell_type == "code"]
        for exercise in one.full if full else one.by_hand:
            alone = exercise_alone(one.lab, exercise).lab
            work = Job(alone, "ann", handed_in(alone, source, ran), "id")
            verdict = verdict_of(grade(work), exercise)
            assert verdict.earned == one.full[exercise], said({exercise: verdict})
