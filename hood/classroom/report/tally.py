"""Add up a class, one learner at a time, in little memory even for ten thousand learners.

Two numbers are kept of each learner. Of everything else there are counts and the first examples.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from hood.classroom.gradebook.graded import Graded, GradedCell, Reason, ReasonKind
from hood.classroom.gradebook.pseudonyms import LearnerNames
from hood.grader.outline import Outline
from hood.verdict import Cause, Status, Verdict

SHOWN = 40  # learners listed under each reason; the CSV has them all
MOST_TEXTS = 500  # different problem texts that are counted per exercise
KINDS = tuple(ReasonKind)  # the most severe first


@dataclass
class ExerciseTally:
    """The counts of one exercise over the class.

    Attributes:
        marked: learners with a score; the sum of ``full``, ``some``, ``nothing`` and ``not_tried``.
        wrong: learners who tried and did not get all points.
        unexplained: those of them with a failed part that no misconception explains.
        problems: the check's problem texts for these parts, counted.
        not_run: parts that the grading machine could not run, with the reason, counted.
        withheld: points of such parts in the lab's maximum: only other learners could earn them.
    """

    cell: GradedCell
    title: str = ""
    marked: int = 0
    full: int = 0
    some: int = 0
    nothing: int = 0
    not_tried: int = 0
    earned: float = 0.0
    waiting: int = 0
    wrong: int = 0
    unexplained: int = 0
    lesson: str = ""
    reads: str = ""
    misconceptions: Counter[str] = field(default_factory=Counter)
    explanations: dict[str, str] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)
    not_run: Counter[str] = field(default_factory=Counter)
    withheld: float = 0.0
    claims: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.cell.name

    @property
    def share(self) -> float | None:
        """Share of the obtainable points that was earned, 0 to 1."""
        most = self.cell.points * self.marked - self.withheld
        return self.earned / most if most else None

    @property
    def outcomes(self) -> dict[str, int]:
        """How many learners earned all its points, and so on, in the page's words."""
        counts = self.full, self.some, self.nothing, self.not_tried
        named = zip(("all", "some", "nothing", "not tried"), counts, strict=True)
        return {word: count for word, count in named if count}

    def add(self, graded: Graded, names: LearnerNames) -> None:
        """Add one learner."""
        score, verdict = graded.scores.get(self.name), graded.verdicts.get(self.name)
        if score is not None:
            self._mark(score, verdict, graded)
        if verdict is not None:
            self._explain(verdict, graded, names)

    def _mark(self, score: float, verdict: Verdict | None, graded: Graded) -> None:
        most = min(self.cell.points, verdict.most) if verdict else self.cell.points
        if verdict and not most:
            return  # no part was judged, so the score says nothing about the learner
        self.marked += 1
        self.earned += score
        self.withheld += self.cell.points - most
        if score >= most:
            self.full += 1
        elif score > 0:
            self.some += 1
        elif (verdict and verdict.status is Status.NOT_ATTEMPTED) or not graded.attempted:
            self.not_tried += 1
        else:
            self.nothing += 1

    def _explain(self, verdict: Verdict, graded: Graded, names: LearnerNames) -> None:
        self.lesson, self.reads = verdict.lesson or self.lesson, verdict.reads or self.reads
        parts = [part for part in verdict.parts if part.status is Status.NOT_RUN]
        self.not_run.update(f"{part.name} ({part.problem})" for part in parts)
        self.claims += [claim for claim in verdict.claims if claim not in self.claims]
        self.misconceptions.update(verdict.explanations.keys())
        self.explanations |= verdict.explanations
        if verdict.status not in (Status.PARTLY, Status.WRONG):
            return
        self.wrong += 1
        texts = {
            names.problem(part, graded)
            for part in verdict.parts
            if part.earned < part.points
            and not part.misconception
            and part.cause is not Cause.RULE_BROKEN
            and part.status is not Status.NOT_RUN
        }
        self.unexplained += bool(texts)
        for text in texts:
            if text in self.problems or len(self.problems) < MOST_TEXTS:
                self.problems[text] += 1


class Person(NamedTuple):
    """A submission that a person should look at; no id if names are hidden, None without a mark."""

    student: str
    name: str
    points: float | None
    reasons: tuple[Reason, ...]


class Tally:
    """The counts of the whole class.

    Attributes:
        submissions: number in the gradebook, whether or not grading finished.
        unread: number of submissions that have no mark for what could not be read.
        automatic: points of each graded learner in automatic exercises; ``total``, in all.
        people: submissions that a person should look at, by the most severe kind of reason.
        needing: number of submissions per kind of reason.
        sandbox: number that ran in a sandbox (True), without one (False), or unrecorded (None).
        versions: number of submissions by the version of lab, checks, settings and grader.
        graded_at: when the first and the last were graded, in seconds since the epoch; or empty.
        seconds: grading time of all submissions; ``longest``, of one, and whose it is.
    """

    def __init__(
        self, cells: list[GradedCell], outline: Outline, names: LearnerNames, not_entered: int = 0
    ):
        self._names = names
        place = {name: number for number, name in enumerate(outline.titles)}
        cells = sorted(cells, key=lambda cell: place.get(cell.name, len(place)))
        self.title = outline.title
        self.hidden = names.hidden
        self.exercises = [ExerciseTally(c, outline.titles.get(c.name, "")) for c in cells]
        self.submissions = self.unread = self.late = self.penalised = 0
        self.not_entered = not_entered
        self.automatic, self.total = array("d"), array("d")
        self.people: dict[str, list[Person]] = {}
        self.needing: Counter[str] = Counter()
        self.sandbox: Counter[bool | None] = Counter()
        self.versions: Counter[str] = Counter()
        self._newest = 0.0, ""  # when the last submission was graded, and by which version
        self.graded_at: tuple[float, ...] = ()
        self.seconds = 0.0
        self.longest = 0.0, ""

    @property
    def graded(self) -> int:
        """Number of submissions that have all their automatic scores."""
        return len(self.automatic)

    @property
    def waiting(self) -> int:
        """Number of answers that a person still has to mark."""
        return sum(exercise.waiting for exercise in self.exercises)

    @property
    def outdated(self) -> int:
        """Number of submissions that another version graded than the one graded last."""
        return self.versions.total() - self.versions[self._newest[1]]

    @property
    def counted(self) -> tuple[array, float]:
        """Each learner's points, and the points that could be earned.

        They include all exercises when all are marked, and only the automatic ones until then.
        """
        cells = [exercise.cell for exercise in self.exercises]
        if self.waiting:
            most = sum(cell.points for cell in cells if not cell.manual)
            return self.automatic, most
        return self.total, sum(cell.points for cell in cells)

    def anchor(self, one: ExerciseTally) -> str:
        """Return the anchor of an exercise on the page."""
        return f"exercise-{self.exercises.index(one) + 1}"

    def add(self, graded: Graded) -> None:
        """Add one submission."""
        self.submissions += 1
        self._attend(graded)
        self.late += bool(graded.late)
        self.penalised += graded.penalty > 0
        run = graded.run
        self.sandbox[run.sandbox] += not run.problem
        if run.graded_by:
            self.versions[run.graded_by] += 1
            self._newest = max(self._newest, (run.graded_at or 0.0, run.graded_by))
        if run.graded_at is not None:
            times = *self.graded_at, run.graded_at
            self.graded_at = min(times), max(times)
        if run.seconds is not None:
            self.seconds += run.seconds
            self.longest = max(self.longest, (run.seconds, self._names.of(graded)))
        for exercise in self.exercises:
            exercise.waiting += exercise.name in graded.waiting
        if graded.unmarked:
            self.unread += graded.unread
            return
        automatic = (graded.scores.get(e.name) for e in self.exercises if not e.cell.manual)
        self.automatic.append(sum(score or 0.0 for score in automatic))
        self.total.append(graded.points)
        for exercise in self.exercises:
            exercise.add(graded, self._names)

    def _attend(self, graded: Graded) -> None:
        reasons = graded.reasons()
        if not reasons:
            return
        kind = min((reason.kind for reason in reasons), key=KINDS.index)
        self.needing[kind] += 1
        listed = self.people.setdefault(kind, [])
        if len(listed) < SHOWN:
            said = tuple(self._names.reason(reason, graded) for reason in reasons)
            marked = any(score is not None for score in graded.scores.values())
            points = graded.points if marked else None
            student = "" if self.hidden else graded.student
            listed.append(Person(student, self._names.of(graded), points, said))
