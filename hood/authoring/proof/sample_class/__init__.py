"""Make a class of invented learners for any lab, with the score that each of them must get.

The answers come from the lab's own solutions and from the alternates and misconceptions of its
checks. So a class can be made for every lab, and every score is known beforehand.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

import nbformat

from hood.authoring.proof.sample_class.accidents import Submission, make_accidents
from hood.authoring.proof.sample_class.lab import SampleExercise, SampleLab, load_lab
from hood.judge.checks.answers import Candidate

__all__ = ["PREFIX", "Learner", "load_lab", "make_class"]

PREFIX = "sample-"

NAMES = """
Lucía Alonso, Oliver Hughes, Mateo Ferrer, Amelia Brooks, Valentina Rojas, Noah Whitfield,
Martín Echeverría, Isla Campbell, Camila Navarro, George Okafor, Sofía Mendoza, Harper Lindqvist,
Diego Ibáñez, Emily Thornton, Julia Peña, Samuel Adeyemi, Elena Castaño, Jack Morrison,
Hugo Villalba, Grace Chen, Irene Quiroga, Leo Fairbanks, Nuria Serrano, Daniel Abbott,
Pablo Zubiri, Ruby Sinclair, Alba Montoya, Theo Marlowe, Adrián Luján, Chloe Ashdown,
Marina Otero, Finn Gallagher, Daniela Acosta, Maya Patel, Tomás Arriaga, Ivy Delaney,
Rocío Bravo, Arthur Penrose, Inés Cabrera, Zoe Hartley, Gael Fuentes, Nora Winslow,
Bruno Salinas, Alice Carver, Carmen Ledesma, Owen Draper, Vera Pizarro, Ethan Calloway
""".replace("\n", " ").split(",")


@dataclass(frozen=True)
class Learner:
    """One invented learner."""

    id: str
    name: str
    story: str  # what this learner did, in a few words
    data: bytes  # the bytes of the submitted notebook
    predicted: Mapping[str, float | None]  # points by graded cell; None for a cell without mark
    filename: str  # the notebook's name, without folders


def make_class(lab: SampleLab, accidents: bool = True) -> list[Learner]:
    """Make a class of at least 24 learners; every call makes the same class.

    Together the learners hand in every alternate and every misconception of the lab's checks. With
    ``accidents``, they also hand in every accident.
    """
    happened = make_accidents(lab) if accidents else []
    return enrol(lab, [*right(lab), *_mistaken(lab), *happened])


def enrol(lab: SampleLab, work: Sequence[Submission]) -> list[Learner]:
    """Return a named learner for each submission. When names run out, numbers are added."""
    learners = []
    for number, done in enumerate(work):
        again, k = divmod(number, len(NAMES))
        name = NAMES[k].strip() + (f" {again + 1}" if again else "")
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        nb = done.notebook
        learners.append(
            Learner(
                id=PREFIX + plain.lower().replace(" ", "-"),
                name=name,
                story=done.story,
                data=nb if isinstance(nb, bytes) else nbformat.writes(nb).encode(),
                predicted=done.earns,
                filename=done.filename or f"{lab.name}.ipynb",
            )
        )
    return learners


def right(lab: SampleLab) -> list[Submission]:
    """Return submissions: one with all references, then for each k one with all k-th alternates."""
    work = [Submission("solved everything", lab.solved(), lab.full())]
    for column in zip_longest(*(exercise.check.alternates for exercise in lab.exercises)):
        answers = {
            exercise.name: exercise.written(candidate)
            for exercise, candidate in zip(lab.exercises, column, strict=True)
            if candidate is not None
        }
        story = f"solved {len(answers)} exercises in another way"
        work.append(Submission(story, lab.solved(answers), lab.full()))
    return work


def _mistaken(lab: SampleLab) -> list[Submission]:
    """Return submissions with every misconception at least once, and a few misconceptions often.

    Each learner has a few misconceptions in different exercises, and solves the other exercises. As
    in a real class, several learners make the same mistakes in the first exercises. One more
    learner makes the most frequent mistake in every exercise.
    """
    most = max(1, ceil(len(lab.exercises) * 0.6))
    learners: list[dict[SampleExercise, Candidate]] = []
    for column in zip_longest(*(exercise.check.misconceptions for exercise in lab.exercises)):
        for exercise, candidate in zip(lab.exercises, column, strict=True):
            if candidate is None:
                continue
            with_room = (own for own in learners if exercise not in own and len(own) < most)
            own = next(with_room, None)
            if own is None:
                learners.append(own := {})
            own[exercise] = candidate
    names = [m.name for e in lab.exercises for m in e.check.misconceptions]
    everywhere = {
        e: max(e.check.misconceptions, key=lambda m: names.count(m.name))
        for e in lab.exercises
        if e.check.misconceptions
    }
    work = [("makes the same mistake everywhere", everywhere)]
    for number, own in enumerate(learners):
        for exercise in list(everywhere)[: 1 + number % 3]:
            own.setdefault(exercise, everywhere[exercise])
        work.insert(number, (f"mistaken in {len(own)} of the exercises", own))
    submissions = []
    for story, own in work:
        answers = {e.name: e.written(candidate) for e, candidate in own.items()}
        earns = {e.name: e.expects(candidate) for e, candidate in own.items()}
        submissions.append(Submission(story, lab.solved(answers), lab.full() | earns))
    return submissions
