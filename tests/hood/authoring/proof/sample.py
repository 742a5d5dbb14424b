"""A small class of a lab, for a test that cannot grade all that its checks know."""

from collections.abc import Mapping
from random import Random

from hood.authoring.proof.sample_class import Learner, enrol
from hood.authoring.proof.sample_class.accidents import Submission, untouched
from hood.authoring.proof.sample_class.lab import SampleExercise, SampleLab, find
from hood.judge.checks.answers import Candidate
from tests.phases import dear


def sampled(exercise: SampleExercise, seed: str) -> Candidate:
    """The misconception of an exercise that a seed draws; other commits draw others."""
    return Random(f"{seed} {exercise.name}").choice(exercise.check.misconceptions)


def asked(lab: SampleLab) -> list[SampleExercise]:
    """The exercises to which each learner of a sample has an answer."""
    return [exercise for exercise in lab.exercises if exercise.name not in dear.TRAINS]


def make_sample(lab: SampleLab, seed: str) -> list[Learner]:
    """Make four learners.

    One solves everything as the lab does. Two have answers to what is :func:`asked`: one solves it
    in another way, which the seed draws, and one has a :func:`sampled` misconception in each. One
    hands in the untouched lab.
    """
    solved = Submission("solved everything", lab.solved(), lab.full())
    return enrol(lab, [solved, _otherwise(lab, seed), _mistaken(lab, seed), untouched(lab)])


def _otherwise(lab: SampleLab, seed: str) -> Submission:
    def other(exercise: SampleExercise) -> Candidate:
        return Random(f"{seed} {exercise.name}").choice(exercise.check.alternates)

    full = lab.full()
    answers = {e: (e.written(other(e)), full[e.name]) for e in asked(lab)}
    return _answered(lab, answers, "solved in another way")


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
