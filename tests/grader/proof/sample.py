"""A small class of a lab, for a test that cannot grade all that its checks know."""

from itertools import zip_longest
from random import Random

from grader.proof.sample_class import Learner, enrol, right
from grader.proof.sample_class.accidents import Submission, untouched
from grader.proof.sample_class.lab import SampleExercise, SampleLab, find
from utils.checks.answers import Candidate

# Of one exercise, so many misconceptions are in a sample; other commits draw others.
SAMPLED = 1


def sampled(exercise: SampleExercise, seed: str) -> list[Candidate]:
    """The misconceptions of an exercise; of many, some that a seed draws."""
    every = list(exercise.check.misconceptions)
    return Random(f"{seed} {exercise.name}").sample(every, min(SAMPLED, len(every)))


def make_sample(lab: SampleLab, seed: str) -> list[Learner]:
    """As few learners as hand in every alternate and the :func:`sampled` misconceptions once.

    One learner solves everything and one hands in the untouched lab. The learners with
    misconceptions have one in each exercise, while there are some left, and leave the other
    exercises untouched.
    """
    columns = zip_longest(*(sampled(exercise, seed) for exercise in lab.exercises))
    mistaken = [_mistaken(lab, column) for column in columns]
    return enrol(lab, [*right(lab), *mistaken, untouched(lab)])


def _mistaken(lab: SampleLab, column: tuple[Candidate | None, ...]) -> Submission:
    """Hand in the untouched lab with these misconceptions, one for each exercise or None."""
    done = untouched(lab)
    pairs = [pair for pair in zip(lab.exercises, column, strict=True) if pair[1] is not None]
    for exercise, candidate in pairs:
        find(done.notebook, exercise.solution_id).source = exercise.written(candidate)
        done.earns[exercise.name] = exercise.expects(candidate)
    story = f"mistaken in {len(pairs)} of the exercises, the rest untouched"
    return Submission(story, done.notebook, done.earns)
