"""A small class of a lab, for a test that cannot grade all that its checks know."""

from random import Random

from grader.proof.sample_class import Learner, enrol
from grader.proof.sample_class.accidents import Submission, untouched
from grader.proof.sample_class.lab import SampleExercise, SampleLab, find
from utils.checks.answers import Candidate


def sampled(exercise: SampleExercise, seed: str) -> Candidate:
    """The misconception of an exercise that a seed draws; other commits draw others."""
    return Random(f"{seed} {exercise.name}").choice(exercise.check.misconceptions)


def make_sample(lab: SampleLab, seed: str) -> list[Learner]:
    """Make four learners.

    One solves everything as the lab does, one everything in another way that the seed draws, one
    has a :func:`sampled` misconception everywhere, and one hands in the untouched lab.
    """
    solved = Submission("solved everything", lab.solved(), lab.full())
    return enrol(lab, [solved, _otherwise(lab, seed), _mistaken(lab, seed), untouched(lab)])


def _otherwise(lab: SampleLab, seed: str) -> Submission:
    answers = {
        exercise.name: exercise.written(
            Random(f"{seed} {exercise.name}").choice(exercise.check.alternates)
        )
        for exercise in lab.exercises
    }
    return Submission("solved everything in another way", lab.solved(answers), lab.full())


def _mistaken(lab: SampleLab, seed: str) -> Submission:
    done = untouched(lab)
    for exercise in lab.exercises:
        candidate = sampled(exercise, seed)
        find(done.notebook, exercise.solution_id).source = exercise.written(candidate)
        done.earns[exercise.name] = exercise.expects(candidate)
    return Submission("mistaken in every exercise", done.notebook, done.earns)
