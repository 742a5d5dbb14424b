"""Read the results of a graded lab, one learner at a time.

Scores come from nbgrader's gradebook, with a few queries for hundreds of learners. All other data
come from the autograded notebooks; each notebook is read once. If a notebook was graded without a
sandbox, the learner's code may have written anything into the notebook. So a value of an unexpected
type is treated as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import (
    Assignment,
    Grade,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select
from sqlalchemy.orm import Session

from hood import UserError
from hood.classroom.gradebook.database import engine_of, errors_in_words, marks_of
from hood.classroom.gradebook.exercises import code_by_exercise
from hood.classroom.gradebook.marks import graded_cells, handed_in, missing_marks, seconds_late
from hood.classroom.gradebook.regrade import may_ask, requests_of, verdict_in_words
from hood.classroom.rules.class_list import class_list
from hood.classroom.rules.reading import deadlines
from hood.grader.course import Course
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.run_record import RunRecord
from hood.grader.submission.names import nfc
from hood.grader.submission.notes import NoteKind
from hood.verdict import TRIED, Cause, Status, Verdict

AT_ONCE = 250  # learners per query
NOT_RUN = f'"{Status.NOT_RUN}"'.encode()  # in the JSON of a verdict


class ReasonKind(StrEnum):
    """Kinds of reasons to look at a submission, with the most severe kind first."""

    UNGRADED = "ungraded"
    UNREAD = "unread"
    FOREIGN = "foreign"  # the notebook answers another lab
    COPIES = "copies"  # there are copies beside the notebook
    TIME = "time"  # the submission's time can't be read
    REGRADE = "regrade"  # the learner asks for a regrade
    TOUCHED = "touched"
    STOPPED = "stopped"
    NEWER_PYTHON = "newer python"  # the notebook was written with a newer Python
    UNJUDGED = "unjudged"
    UNDEFINED = "undefined"


# Kinds of notes that are a reason to look at a submission, with the reason's kind and text.
TELLING = {
    NoteKind.UNREADABLE: (ReasonKind.UNREAD, "not readable"),
    NoteKind.FOREIGN: (ReasonKind.FOREIGN, "another notebook"),
    NoteKind.CHANGED: (ReasonKind.TOUCHED, "a graded cell was edited"),
    NoteKind.SETTINGS: (ReasonKind.TOUCHED, "grading settings were changed"),
    NoteKind.TAGS: (ReasonKind.TOUCHED, "cell tags were set"),
    NoteKind.ANOTHER: (ReasonKind.COPIES, "there are copies of the notebook beside it"),
    NoteKind.TIMESTAMP: (ReasonKind.TIME, "the time of the submission can't be read"),
}
# The kind of reason for each cause of a missing verdict. For other causes, it is UNJUDGED.
STOPS = {
    Cause.TIMEOUT: ReasonKind.STOPPED,
    Cause.KERNEL_DIED: ReasonKind.STOPPED,
    Cause.KERNEL_STOPPED: ReasonKind.STOPPED,
    Cause.UNDEFINED_NAME: ReasonKind.UNDEFINED,
    Cause.NEWER_PYTHON: ReasonKind.NEWER_PYTHON,
}


@dataclass(frozen=True)
class Reason:
    """Why a person should look at a submission, or at one of its cells.

    Attributes:
        anonymous: the text of the reason without the learner's own words.
    """

    kind: ReasonKind
    text: str
    cell: str = ""
    anonymous: str = ""

    def __str__(self) -> str:
        return f"{self.text} (`{self.cell}`)" if self.cell else self.text


@dataclass(frozen=True)
class Request:
    """A learner's request for a regrade of an exercise.

    Attributes:
        why: the reason, in the learner's own words.
        earlier: the points of the verdict before the request, as text; empty if unknown.
        now: the points of the present verdict, as text; empty if unknown.
        asks_alone: whether only the request is new in the submission. If so, the time of the
            earlier hand-in counts.
        answered: whether a person has marked the exercise since the request.
    """

    exercise: str
    why: str
    earlier: str = ""
    now: str = ""
    asks_alone: bool = False
    answered: bool = False

    @property
    def gave(self) -> str:
        """The points of both verdicts, as a clause that ends a sentence."""
        both = f"; {self.earlier} before, {self.now} now" if self.earlier and self.now else ""
        return both or (f"; {self.now}" if self.now else "")


@dataclass(frozen=True)
class GradedNotebook(RunRecord):
    """One learner's notebook after grading, with the record of the grading run.

    Attributes:
        problem: why the file could not be read; empty if it was read.
        requests: the learner's reasons for a regrade, keyed by exercise.
        code: the code of the learner's answers, keyed by exercise.
        graded_at: when the file was written; seconds since the epoch.
    """

    problem: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    graded_at: float | None = None


def read_graded(path: Path) -> GradedNotebook:
    """Read one notebook in ``autograded/``, without validation, because nbgrader wrote it."""
    try:
        nb = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        found = GradedNotebook.of(nb.metadata)
        verdicts, requests = read_verdicts(nb), requests_of(nb)
        written = path.stat().st_mtime
        code = code_by_exercise(nb)
        return replace(found, verdicts=verdicts, requests=requests, code=code, graded_at=written)
    except FileNotFoundError:
        return GradedNotebook(problem="there is no graded notebook")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return GradedNotebook(problem="the graded notebook could not be read")


@dataclass(frozen=True)
class GradedCell:
    """A cell with points.

    If the lab has several notebooks, the cell's name starts with the name of its notebook.
    """

    name: str
    points: float
    manual: bool


@dataclass(frozen=True)
class Graded:
    """One graded submission.

    Attributes:
        name: the learner's first and last name, or the id if the gradebook has no name.
        scores: the points, keyed by graded cell; None for a cell without a score.
        waiting: cells that a person has to mark, or to review.
        lost: cells without a mark, because their notebook could not be read or graded.
        unmarked: automatic cells without a score, because grading did not finish.
        by_person: cells to which a person gave a mark.
        extra: the extra credit that the scores include, keyed by graded cell.
        late: how many seconds late the submission came; None if its time is unknown.
        penalty: the points that nbgrader subtracts for lateness.
    """

    student: str
    name: str
    scores: dict[str, float | None]
    cells: Mapping[str, GradedCell]
    waiting: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    unmarked: frozenset[str] = frozenset()
    by_person: frozenset[str] = frozenset()
    extra: Mapping[str, float] = field(default_factory=dict)
    run: GradedNotebook = GradedNotebook()
    late: float | None = None
    penalty: float = 0.0

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts, keyed by graded cell."""
        return self.run.verdicts

    @property
    def points(self) -> float:
        """The points earned so far, before any late penalty."""
        return sum(score or 0.0 for score in self.scores.values())

    @property
    def attempted(self) -> bool:
        """Whether the learner tried any exercise; true if that is unknown."""
        tried = [verdict.status in TRIED for verdict in self.verdicts.values()]
        return any(tried) if tried else not self.run.problem

    @property
    def unread(self) -> bool:
        """Whether a file of the submission has no mark because it could not be read."""
        return any(note.kind is NoteKind.UNREADABLE for note in self.run.notes)

    @property
    def asks_alone(self) -> bool:
        """Whether only a request for a regrade is new. If so, the earlier hand-in time counts."""
        return bool(self.run.only_asks)

    def reasons(self) -> list[Reason]:
        """Return the reasons why a person should look at this submission; usually none."""
        notes, verdicts = self.run.notes, self.verdicts
        newer = {name for name, one in verdicts.items() if one.cause is Cause.NEWER_PYTHON}
        why = [note.message for note in notes if note.kind is NoteKind.UNGRADED]
        if self.run.problem:
            why = [self.run.problem]
        elif self.unmarked - newer and not why and not self.unread:
            why = ["grading did not finish"]
        said = [Reason(ReasonKind.UNGRADED, text) for text in why]
        said += [Reason(*TELLING[n.kind], n.cell or "") for n in notes if n.kind in TELLING]
        for one in self.requests():
            if not one.answered:
                asks, gave = "the learner asks for a regrade", one.gave
                gave += "; nothing else is new, so the earlier time counts" * one.asks_alone
                words = f"{asks}: “{one.why}”{gave}"
                said.append(Reason(ReasonKind.REGRADE, words, one.exercise, f"{asks}{gave}"))
        for name, verdict in verdicts.items():
            if any(part.cause is Cause.TIMEOUT for part in verdict.parts):
                said.append(Reason(ReasonKind.STOPPED, "a call ran out of time", name))
            if any(part.cause is Cause.TOO_MUCH_OUTPUT for part in verdict.parts):
                said.append(Reason(ReasonKind.STOPPED, "its calls printed too much", name))
        attempted = any(verdict.status in TRIED for verdict in verdicts.values())
        stopped = False
        for name, verdict in verdicts.items():
            kind = STOPS.get(verdict.cause, ReasonKind.UNJUDGED)
            if verdict.status is not Status.NOT_RUN or (kind is ReasonKind.STOPPED and stopped):
                continue  # report only the cell that stopped the kernel, not the cells after it
            if kind is ReasonKind.UNDEFINED and not attempted:
                continue
            if name in newer and name in self.by_person and name not in self.waiting:
                continue  # a person has looked at the cell, and marked it
            stopped = stopped or kind is ReasonKind.STOPPED
            text = verdict.problem or "the check gave no verdict"
            said.append(Reason(kind, text, name, verdict.anonymous_problem))
        return list(dict.fromkeys(said))

    def requests(self) -> list[Request]:
        """Return the learner's requests. A mark that waits for review does not answer a request."""
        found = []
        for name, why in self.run.requests.items():
            verdict, earlier = self.verdicts.get(name), self.run.earlier.get(name, "")
            now = verdict_in_words(verdict) if verdict else ""
            answered = name in self.by_person and name not in self.waiting
            found.append(Request(name, why, earlier, now, self.asks_alone, answered))
        return found


class Results:
    """The results of one lab in a course folder.

    Args:
        student: read only this student's submissions, which saves most of the work.

    Raises:
        UserError: when there is no gradebook, when the file is not a gradebook, or when the
            gradebook does not have the lab.
    """

    def __init__(self, course: Course, lab: str, student: str = ""):
        self.course, self.lab, self._student = course, lab, student
        if course.database is not None and not course.database.exists():
            raise UserError(f"there is no gradebook {course.database}: grade the lab first")
        self._engine = engine_of(course.directory.db_url)
        with errors_in_words(course, ""):
            self._read_lab()

    def _read_lab(self) -> None:
        lab = self.lab
        with Session(self._engine) as session:
            notebooks = select(Notebook).join(Assignment).where(Assignment.name == lab)
            every = list(session.scalars(notebooks))
            # A notebook without cells does not belong to the lab: somebody only tried something out
            # in the lab's folder.
            own = [
                one for one in every if one.source_cells or one.grade_cells or one.task_cells
            ] or every
            names = {notebook.id: notebook.name for notebook in own}
            if not names:
                known = ", ".join(session.scalars(select(Assignment.name))) or "none"
                raise UserError(f"no lab {lab!r} in the gradebook; it has: {known}")
            self.notebooks = tuple(sorted(names.values()))
            self._notebook_names = names
            self._cells = {  # by their id in the database
                cell.id: GradedCell(self.cell_name(name, cell.name), cell.max_score, manual)
                for cell, name, manual in graded_cells(session, lab)
            }
            self._by_name = {cell.name: cell for cell in self._cells.values()}
            who = sorted(handed_in(session, lab, self._student))
            self._class = class_list(self.course.root)
            self._handed_in, self.students = who, self._class.without_others(who)
            self.late = seconds_late(session, lab, deadlines(self.course.root, lab))
            self._lost: dict[str, set[str]] = {}
            for mark in missing_marks(session, lab, self._student):
                if not mark.waits:
                    name = self.cell_name(mark.notebook, mark.cell)
                    self._lost.setdefault(mark.student, set()).add(name)

    @property
    def not_entered(self) -> list[str]:
        """The learners of the class who have a submission on disk, but none in the gradebook."""
        known = set(map(nfc, self.students))
        on_disk = set(self.course.students("submitted", self.lab))
        return sorted(self._class.without_others(on_disk - known))

    @property
    def passed_over(self) -> dict[str, str]:
        """The skipped learners who handed in, by id, each with the reason for skipping them."""
        every = {*self._handed_in, *self.course.students("submitted", self.lab)}
        return self._class.passed_over(every)

    @property
    def untimed(self) -> list[str]:
        """The learners whose submissions have no time in the gradebook."""
        return [student for student in self.students if student not in self.late]

    @property
    def cells(self) -> list[GradedCell]:
        """All graded cells of the lab."""
        return list(self._cells.values())

    def cell_name(self, notebook: str, name: str) -> str:
        """Return a cell's name, with the notebook's name if the lab has several notebooks."""
        return name if len(self.notebooks) == 1 else f"{notebook}/{name}"

    def read(
        self,
        order: Callable[[str], Any] | None = None,
        only: Collection[str] | None = None,
        runs: bool = True,
    ) -> Iterator[Graded]:
        """Yield the submissions of all or some students, sorted by id, or by the key ``order(id)``.

        Args:
            runs: whether to read the graded notebooks into ``Graded.run``. If not, ``run`` is
                empty.
        """
        among = self.students if only is None else set(self.students) & set(only)
        chosen = sorted(among, key=order)
        for start in range(0, len(chosen), AT_ONCE):
            # A new session for each group of learners, so that no lock exists while notebooks are
            # read.
            some = chosen[start : start + AT_ONCE]
            who = select(Student.id, Student.first_name, Student.last_name)
            with Session(self._engine) as session:
                names = session.execute(who.where(Student.id.in_(some))).all()
                marks = self._read_marks(session, some)
            shown = {one: " ".join(filter(None, parts)) or one for one, *parts in names}
            for student in some:
                run = self._read_run(student) if runs else GradedNotebook()
                yield self._graded(student, shown[student], marks.get(student, []), run)

    def requests(self, only: Collection[str] | None = None) -> Iterator[tuple[Graded, Request]]:
        """Yield the requests for a regrade of all or some students, each with its submission.

        Only notebooks that may contain a request are read.
        """
        among = self.students if only is None else set(self.students) & set(only)
        asking = [one for one in among if any(_passes(path, may_ask) for path in self._paths(one))]
        for graded in self.read(only=asking):
            yield from ((graded, request) for request in graded.requests())

    def withheld(self, student: str) -> dict[str, float]:
        """Return how many points each graded cell of a learner lacks because a check could not run.

        In most notebooks, no cell lacks points. To save time, this method parses a notebook only if
        a search in the notebook's bytes finds a check that was not run. Time is important here,
        because formgrader's list of submissions calls this method whenever the list is shown.
        """
        found: dict[str, float] = {}
        for name, path in zip(self.notebooks, self._paths(student), strict=True):
            if _passes(path, lambda data: NOT_RUN in data):
                verdicts = read_graded(path).verdicts
                found |= {
                    self.cell_name(name, cell): v for cell, v in withheld_by(verdicts).items()
                }
        return found

    def _read_marks(self, session: Session, students: Sequence[str]) -> dict[str, list]:
        # The conditions on cells and notebooks let the database use its existing indexes.
        rows = session.execute(
            marks_of(
                self.lab,
                SubmittedAssignment.student_id,
                SubmittedNotebook.id,
                SubmittedNotebook.late_submission_penalty,
                Grade.cell_id,
                Grade.auto_score,
                Grade.manual_score,
                Grade.extra_credit,
                Grade.needs_manual_grade,
            )
            .where(SubmittedAssignment.student_id.in_(students))
            .where(SubmittedNotebook.notebook_id.in_(self._notebook_names))
            .where(Grade.cell_id.in_(self._cells))
        )
        marks: dict[str, list] = {}
        for student, *mark in rows:
            marks.setdefault(student, []).append(mark)
        return marks

    def _graded(self, student: str, name: str, marks: list, run: GradedNotebook) -> Graded:
        scores: dict[str, float | None] = {}
        waiting, by_person, credit, penalties = set(), set(), {}, {}
        lost = frozenset(self._lost.get(student, ()))
        unmarked = {cell.name for cell in self._cells.values() if not cell.manual}
        for notebook, penalty, cell_id, auto, manual, extra, needs_person in marks:
            cell = self._cells[cell_id]
            score = auto if manual is None else manual
            credit[cell.name] = extra or 0.0
            scores[cell.name] = score if score is None else score + credit[cell.name]
            if score is not None:
                unmarked.discard(cell.name)
            if manual is not None:
                by_person.add(cell.name)
            if needs_person and cell.name not in lost and (cell.manual or score is not None):
                waiting.add(cell.name)
            penalties[notebook] = penalty or 0.0
        return Graded(
            student,
            name,
            scores,
            self._by_name,
            frozenset(waiting),
            lost,
            frozenset(unmarked),
            frozenset(by_person),
            credit,
            run,
            self.late.get(student),
            sum(penalties.values()),
        )

    def _paths(self, student: str) -> list[Path]:
        """Return the paths of a student's graded notebooks, in the same order as ``notebooks``."""
        folder = self.course.folder("autograded", student, self.lab)
        return [folder / f"{name}.ipynb" for name in self.notebooks]

    def _read_run(self, student: str) -> GradedNotebook:
        named, paths = self.cell_name, self._paths(student)
        runs = {n: read_graded(path) for n, path in zip(self.notebooks, paths, strict=True)}
        every = list(runs.values())
        sandboxes = {run.sandbox for run in every}
        times = [run.seconds for run in every if run.seconds is not None]
        notes = [(name, note) for name, run in runs.items() for note in run.notes]
        return GradedNotebook(
            problem=next((run.problem for run in every if run.problem), ""),
            verdicts={named(n, c): v for n, run in runs.items() for c, v in run.verdicts.items()},
            requests={named(n, c): v for n, run in runs.items() for c, v in run.requests.items()},
            code={named(n, c): v for n, run in runs.items() for c, v in run.code.items()},
            earlier={named(n, c): v for n, run in runs.items() for c, v in run.earlier.items()},
            notes=tuple(replace(o, cell=named(n, o.cell) if o.cell else None) for n, o in notes),
            only_asks=any(run.only_asks for run in every),
            seed=" ".join(run.seed for run in every if run.seed),
            job_id=" ".join(dict.fromkeys(run.job_id for run in every if run.job_id)),
            sandbox=False if False in sandboxes else None if None in sandboxes else True,
            seconds=sum(times) if times else None,
            graded_at=max((run.graded_at for run in every if run.graded_at), default=None),
        )


def withheld_by(verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    """Return how many points each graded cell lacks because a check could not run."""
    found = {name: verdict.points - verdict.most for name, verdict in verdicts.items()}
    return {name: points for name, points in found.items() if points > 0}


def _passes(path: Path, test: Callable[[bytes], bool]) -> bool:
    try:
        return test(path.read_bytes())
    except OSError:  # `read_graded` reports it
        return False


def read_class(course: Course, lab: str, only: Collection[str] | None = None) -> list[Graded]:
    """Return the graded submissions of all or some students to a lab."""
    return list(Results(course, lab).read(only=only))
