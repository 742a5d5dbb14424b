"""Make the learners of the sample class: names, submissions, and the points they must earn."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

import nbformat
from nbformat.notebooknode import NotebookNode

from grader.proof.sample_class import accidents
from grader.proof.sample_class.lab import SampleExercise, SampleLab
from utils.checks.exercise import Candidate

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
    """One invented learner.

    Attributes:
        story: what this learner did, in a few words.
        data: the bytes of the notebook that was handed in.
        predicted: the points that it must earn, for each graded cell; None where it has no mark.
        filename: the notebook's name, without folders.
    """

    id: str
    name: str
    story: str
    data: bytes
    predicted: Mapping[str, float | None]
    filename: str


def make_class(lab: SampleLab, happenings: Sequence[Callable] = accidents.ALL) -> list[Learner]:
    """Make a class of at least 24 learners, the same at every call.

    Together they hand in every alternate and every misconception of the lab's checks, and every
    accident.

    Args:
        happenings: functions of :mod:`grader.proof.sample_class.accidents`; empty for a class
            without accidents.
    """
    happened = (make(lab, _exercise(lab, i)) for i, make in enumerate(happenings))
    return enrol(lab, [*right(lab), *_mistaken(lab), *happened])


def enrol(lab: SampleLab, work: Sequence[accidents.HandedIn]) -> list[Learner]:
    """Return a learner with a name for each submission."""
    return [
        Learner(
            id=_student_id(name),
            name=name.strip(),
            story=done.story,
            data=_bytes(done.notebook),
            predicted=done.earns,
            filename=done.filename or f"{lab.name}.ipynb",
        )
        for name, done in zip(_names(len(work)), work, strict=True)
    ]


def _exercise(lab: SampleLab, number: int) -> SampleExercise:
    """Return the exercise for the accident with this number, so that all exercises get some."""
    return lab.exercises[number % len(lab.exercises)]


def right(lab: SampleLab) -> list[accidents.HandedIn]:
    """Return the reference and every alternate: the k-th learner has the k-th of each exercise."""
    work = [accidents.HandedIn("solved everything", lab.solved(), lab.full())]
    columns = zip_longest(*(exercise.check.alternates for exercise in lab.exercises))
    for column in columns:
        answers = {
            exercise.name: exercise.written(candidate)
            for exercise, candidate in zip(lab.exercises, column, strict=True)
            if candidate is not None
        }
        story = f"solved {len(answers)} exercises in another way"
        work.append(accidents.HandedIn(story, lab.solved(answers), lab.full()))
    return work


def _mistaken(lab: SampleLab) -> list[accidents.HandedIn]:
    """Return submissions that have every misconception at least once, and one common mistake.

    Each learner has a few misconceptions, in different exercises, and is right in the others. As
    in a real class, several learners have the common mistakes of the first exercises. One more
    learner makes the same mistake everywhere.
    """
    pairs = [
        (exercise, candidate)
        for column in zip_longest(*(exercise.check.misconceptions for exercise in lab.exercises))
        for exercise, candidate in zip(lab.exercises, column, strict=True)
        if candidate is not None
    ]
    most = max(1, ceil(len(lab.exercises) * 0.6))
    learners: list[dict[str, tuple[SampleExercise, Candidate]]] = []
    for exercise, candidate in pairs:
        free = (own for own in learners if exercise.name not in own and len(own) < most)
        own = next(free, None)
        if own is None:
            learners.append(own := {})
        own[exercise.name] = (exercise, candidate)
    everywhere = {e.name: (e, _common(lab, e)) for e in lab.exercises if e.check.misconceptions}
    for number, own in enumerate(learners):
        for name in list(everywhere)[: 1 + number % 3]:
            own.setdefault(name, everywhere[name])
    stories = [f"mistaken in {len(own)} of the exercises" for own in learners]
    return [
        _with_misconceptions(lab, story, own)
        for story, own in [
            *zip(stories, learners, strict=True),
            ("makes the same mistake everywhere", everywhere),
        ]
    ]


def _common(lab: SampleLab, exercise: SampleExercise) -> Candidate:
    """Return the misconception of an exercise whose name is the most frequent in the lab."""
    names = [m.name for e in lab.exercises for m in e.check.misconceptions]
    return max(exercise.check.misconceptions, key=lambda m: names.count(m.name))


def _with_misconceptions(
    lab: SampleLab, story: str, own: dict[str, tuple[SampleExercise, Candidate]]
) -> accidents.HandedIn:
    """Return the submission of a learner with these misconceptions, by exercise, and no others."""
    answers = {name: exercise.written(candidate) for name, (exercise, candidate) in own.items()}
    earns = {name: lab.expects(exercise, candidate) for name, (exercise, candidate) in own.items()}
    return accidents.HandedIn(story, lab.solved(answers), lab.full() | earns)


def _names(count: int) -> list[str]:
    """Return so many names; when the list is used up, names repeat with a number."""
    return [
        NAMES[i % len(NAMES)] + (f" {i // len(NAMES) + 1}" if i >= len(NAMES) else "")
        for i in range(count)
    ]


def _student_id(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.strip()).encode("ascii", "ignore").decode()
    return PREFIX + plain.lower().replace(" ", "-")


def _bytes(notebook: NotebookNode | bytes) -> bytes:
    return notebook if isinstance(notebook, bytes) else nbformat.writes(notebook).encode()
