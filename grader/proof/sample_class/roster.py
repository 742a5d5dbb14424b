"""Who is in the sample class: names, what each handed in, and what it must earn."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil
from random import Random

import nbformat
from nbformat.notebooknode import NotebookNode

from grader.proof.sample_class import accidents
from grader.proof.sample_class.lab import Exercise, Lab
from utils.checks import Candidate

PREFIX = "sample-"
# Of one exercise, so many misconceptions are in a sample.
SAMPLED = 8

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
    """One made-up learner.

    Attributes:
        id: nbgrader's student id, with the sample class's prefix.
        name: first and last name.
        story: what this learner did, in a few words.
        data: the bytes of the notebook that was handed in.
        predicted: points for each graded cell.
        filename: the notebook's name, without folders.
    """

    id: str
    name: str
    story: str
    data: bytes
    predicted: dict[str, float]
    filename: str

    @property
    def points(self) -> float:
        """Points in all."""
        return sum(self.predicted.values())


def make_class(lab: Lab, happenings: Sequence[Callable] = accidents.ALL) -> list[Learner]:
    """At least 24 learners, the same at every call.

    Together they hand in every alternate and every misconception of the lab's checks, and
    whatever else happens.

    Args:
        happenings: functions of :mod:`grader.proof.sample_class.accidents`; none for honest
        learners
            alone.
    """
    happened = (make(lab, _exercise(lab, i)) for i, make in enumerate(happenings))
    return _enrol(lab, [*_right(lab), *_mistaken(lab), *happened])


def sampled(exercise: Exercise, seed: str) -> list[Candidate]:
    """The misconceptions of an exercise; of many, some that a seed draws."""
    every = list(exercise.check.misconceptions)
    return Random(f"{seed} {exercise.name}").sample(every, min(SAMPLED, len(every)))


def make_sample(lab: Lab, seed: str) -> list[Learner]:
    """As few learners as hand in every alternate and the :func:`sampled` misconceptions once.

    One has solved everything, one has left the lab as it was. The others make a mistake in each
    exercise, as long as there are mistakes left to make, and leave the rest as it was.
    """
    columns = zip_longest(*(sampled(exercise, seed) for exercise in lab.exercises))
    mistaken = [
        {
            exercise.name: (exercise, candidate)
            for exercise, candidate in zip(lab.exercises, column, strict=True)
            if candidate is not None
        }
        for column in columns
    ]
    stories = [f"mistaken in {len(own)} of the exercises, the rest untouched" for own in mistaken]
    return _enrol(
        lab,
        [
            *_right(lab),
            *(
                _with_misconceptions(lab, story, own, solved=False)
                for story, own in zip(stories, mistaken, strict=True)
            ),
            accidents.untouched(lab, lab.exercises[0]),
        ],
    )


def _enrol(lab: Lab, work: Sequence[accidents.Work]) -> list[Learner]:
    """Give each piece of work a learner's name."""
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


def _exercise(lab: Lab, number: int) -> Exercise:
    """Accidents happen in different exercises."""
    return lab.exercises[number % len(lab.exercises)]


def _right(lab: Lab) -> list[accidents.Work]:
    """The reference, and every alternate: one learner takes the first of each, and so on."""
    work = [accidents.Work("solved everything", lab.solved(), lab.full())]
    columns = zip_longest(*(exercise.check.alternates for exercise in lab.exercises))
    for column in columns:
        answers = {
            exercise.name: exercise.written(candidate)
            for exercise, candidate in zip(lab.exercises, column, strict=True)
            if candidate is not None
        }
        story = f"solved {len(answers)} exercises in another way"
        work.append(accidents.Work(story, lab.solved(answers), lab.full()))
    return work


def _mistaken(lab: Lab) -> list[accidents.Work]:
    """Every misconception at least once, spread over learners who are right elsewhere, and one
    learner who makes the same mistake everywhere.

    A learner has a few of them, each in another exercise. So that the class looks like one, the
    common mistakes of the first exercises come up again and again.
    """
    pairs = [
        (exercise, candidate)
        for column in zip_longest(*(exercise.check.misconceptions for exercise in lab.exercises))
        for exercise, candidate in zip(lab.exercises, column, strict=True)
        if candidate is not None
    ]
    most = max(1, ceil(len(lab.exercises) * 0.6))
    learners: list[dict[str, tuple[Exercise, Candidate]]] = []
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


def _common(lab: Lab, exercise: Exercise) -> Candidate:
    """The exercise's misconception whose name most other exercises share."""
    names = [m.name for e in lab.exercises for m in e.check.misconceptions]
    return max(exercise.check.misconceptions, key=lambda m: names.count(m.name))


def _with_misconceptions(
    lab: Lab, story: str, own: dict[str, tuple[Exercise, Candidate]], *, solved: bool = True
) -> accidents.Work:
    """A learner with these mistakes, who has solved the rest, or left it as it was."""
    answers = {name: exercise.written(candidate) for name, (exercise, candidate) in own.items()}
    earns = {name: lab.expects(exercise, candidate) for name, (exercise, candidate) in own.items()}
    if solved:
        return accidents.Work(story, lab.solved(answers), lab.full() | earns)
    nothing = {exercise.name: 0.0 for exercise in lab.exercises}
    return accidents.Work(story, lab.answered(answers), nothing | earns)


def _names(count: int) -> list[str]:
    """As many names as learners; past the list, they are numbered."""
    return [
        NAMES[i % len(NAMES)] + (f" {i // len(NAMES) + 1}" if i >= len(NAMES) else "")
        for i in range(count)
    ]


def _student_id(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.strip()).encode("ascii", "ignore").decode()
    return PREFIX + plain.lower().replace(" ", "-")


def _bytes(notebook: NotebookNode | bytes) -> bytes:
    return notebook if isinstance(notebook, bytes) else nbformat.writes(notebook).encode()
