"""Compute the numbers of a class, one learner at a time.

This takes little memory even for 10,000 learners. For each learner, only two numbers are stored.
For everything else, only counts and the first examples are stored.
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

SHOWN = 40  # learners listed under each reason; the CSV has all learners
MOST_TEXTS = 500  # different problem texts that are counted per exercise
KINDS = tuple(ReasonKind)  # the most severe first


@dataclass
class ExerciseTally:
    """The counts of one exercise in the whole class.

    Attributes:
        marked: the number of learners with a score, which is the sum of ``full``, ``some``,
            ``nothing`` and ``not_tried``.
        wrong: the number of learners who tried and did not get all points.
        unexplained: the number of learners in ``wrong`` who have a failed part that no
            misconception explains.
        problems: how often the check gave each problem text for the failed parts that no
            misconception explains.
        not_run: for each part and reason, how often the grading machine could not run the part.
        withheld: the points that learners could not earn because of ``not_run``. Only points in the
            lab's maximum are included: points that other learners could earn.
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
        """The share of the obtainable points that learners earned, 0 to 1; None without marks."""
        most = self.cell.points * self.marked - self.withheld
        return self.earned / most if most else None

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of learners, keyed by outcome: all points, some, none, or not tried."""
        counts = self.full, self.some, self.nothing, self.not_tried
        named = zip(("all", "some", "nothing", "not tried"), counts, strict=True)
        return {word: count for word, count in named if count}

    def add(self, graded: Graded, names: LearnerNames) -> None:
        """Add one learner's result."""
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
    """A submission that a person should look at.

    The id is empty if names are hidden. The points are None if there is no mark.
    """

    student: str
    name: str
    points: float | None
    reasons: tuple[Reason, ...]


class Tally:
    """The counts of the whole class.

    Attributes:
        submissions: the number of submissions in the gradebook, even if grading did not finish.
        unread: the number of submissions that have no mark because a file could not be read.
        automatic: each graded learner's points in automatic exercises.
        total: each graded learner's points in all exercises.
        people: the submissions that a person should look at, keyed by the most severe kind of
            reason.
        needing: the number of submissions that a person should look at, keyed by kind of reason.
        sandbox: the number of submissions, keyed by whether they ran in a sandbox: True, False, or
            None if there is no record of this.
        versions: the number of submissions, keyed by the version of lab, checks, settings and
            grader that graded them.
        graded_at: when the first and the last submission were graded, in seconds since the epoch;
            empty if that is not known.
        seconds: the sum of the grading times of all submissions.
        longest: the longest grading time of a submission, in seconds, and the learner's name.
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
        self._newest = 0.0, ""  # when and by which version the last submission was graded
        self.graded_at: tuple[float, ...] = ()
        self.seconds = 0.0
        self.longest = 0.0, ""

    @property
    def graded(self) -> int:
        """The number of submissions that have all their automatic scores."""
        return len(self.automatic)

    @property
    def waiting(self) -> int:
        """The number of answers that a person still has to mark."""
        return sum(exercise.waiting for exercise in self.exercises)

    @property
    def outdated(self) -> int:
        """The number of submissions graded with another version than the last graded submission."""
        return self.versions.total() - self.versions[self._newest[1]]

    @property
    def counted(self) -> tuple[array, float]:
        """Each learner's points, and the points that could be earned.

        While an answer waits for a mark, only the automatic exercises are included. After that, all
        exercises are included.
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
