"""Jobs for workers, and the results of jobs. This module imports nothing that loads slowly."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade
from traitlets.config import Config

from hood.grader.course_sandbox import compiler_lacks
from hood.grader.submission.companions import merged, shown
from hood.grader.submission.notebook import Unreadable
from hood.grader.submission.notes import Note, NoteKind, record, unreadable
from hood.grader.submission.rebuild import rebuild
from hood.grader.submission.released import Texts
from hood.manifest import Manifest
from hood.metadata import KEY

PACKAGES = "the versions of packages"
# Words for the parts of a job's id, in order. The last part is about the submission; it has no
# words here.
FACTORS = (
    "the lab in source/",
    PACKAGES,
    "the grader",
    "the lab's checks or what they import",
    "nbgrader's settings for running notebooks",
    "whether the lab's code can be compiled",
    "whether a sandbox is used",
)
DIGITS = 9  # digits of each part's hash, because a job's id must fit into 64 characters
ANOTHER = "the program that gave them"


def changes(before: str, now: str) -> list[str]:
    """Return in words the factors that differ between two jobs' ids.

    ``before`` is the recorded id, perhaps in an earlier format. ``now`` is a job's id, or the part
    of this id that is the same for all submissions.
    """
    old, new = before.split("-"), now.split("-")
    if len(old) <= len(FACTORS):  # the last part is the submission's
        return [ANOTHER]
    return [part for part, one, other in zip(FACTORS, old, new, strict=False) if one != other]


@dataclass(frozen=True)
class LabFiles:
    """The data shared by all submissions of an assignment."""

    name: str
    notebooks: Mapping[str, bytes]  # the instructor's versions, by name without ``.ipynb``
    files: Mapping[str, bytes]  # the lab's other files, by relative path
    not_overwriting: tuple[str, ...]  # files that do not replace a learner's file
    config: Config  # nbgrader's settings that decide a verdict, including the steps
    manifest: Manifest  # the packages, the grader and the checks on the machine that read the lab
    digest: str  # hashes of the :data:`FACTORS` of a verdict
    # For each notebook that is in the folder but does not belong to the lab: the reason, in words
    left_out: tuple[str, ...] = ()
    can_compile: bool = True  # :func:`can_compile` on the machine that read the lab
    # By notebook, the texts of earlier releases; these texts decide no verdict on an answer
    earlier: Mapping[str, Texts] = field(default_factory=dict)

    def digest_in(self, sandbox: bool) -> str:
        """Return the digest of all factors of a verdict, without the submission."""
        return f"{self.digest}-{self.can_compile:d}-{sandbox:d}"


@dataclass(frozen=True)
class Submission:
    """One learner's submission to a lab."""

    notebooks: Mapping[str, bytes | Unreadable]  # each notebook's bytes, or why it is unreadable
    # The other files by relative path, without nbgrader's own files
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    # By notebook, a note if the notebook had another name, or if it had several versions
    renamed: Mapping[str, Note] = field(default_factory=dict)
    timestamp: str | None = None  # when it was handed in, in ISO format; None when that is unknown
    # nbgrader's own files, timestamp.txt and submission_secret.txt, for ``autograded/``. These
    # files differ in every hand-in, and sandboxes do not get them
    of_nbgrader: Mapping[str, bytes] = field(default_factory=dict)

    @cached_property
    def bytes(self) -> int:
        """The size of the submission's notebooks and files together."""
        read = [data for data in self.notebooks.values() if isinstance(data, bytes)]
        return sum(map(len, [*read, *self.files.values()]))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all parts of the submission that a sandbox can see.

        The cases of an earlier run are used again only for an unchanged submission: a changed
        submission could contain answers that the earlier submission printed.
        """
        parts = []
        for name, data in self.notebooks.items():
            seen = hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else str(data)
            parts.append(f"notebook {name} {seen}")
        for name, data in sorted(self.files.items()):
            parts.append(f"file {name} {hashlib.sha256(data).hexdigest()}")
        notes = (note for note in self.notes if note.kind is not NoteKind.TIMESTAMP)
        return digest_of([*parts, *(note.message for note in (*notes, *self.renamed.values()))])

    def job_id(self, lab: LabFiles, sandbox: bool) -> str:
        """Return hashes of all factors of a verdict, for :func:`changes`."""
        said = [note.message for note in self.notes]
        own = digest_of([self.digest, str(self.timestamp), *said])
        return f"{lab.digest_in(sandbox)}-{own[:8]}"


@dataclass(frozen=True)
class Job:
    """One submission to be graded."""

    lab: LabFiles
    student: str
    submission: Submission
    id: str
    # The seed of its cases; the same for everyone in a run
    seed: str = field(default_factory=lambda: secrets.token_hex(16))
    # By notebook, the seed of an earlier grading to repeat
    seeds: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = True
    # Seconds of the sandbox's own time. After this time, each notebook is stopped for now, because
    # other jobs wait (:mod:`hood.grader.batch.turns`). 0 means that the job has all the time of its
    # lab
    turn: int = 0
    whole: bool = False  # whether it has all the time of its lab even if other jobs wait

    def beside(self) -> dict[str, bytes]:
        """Return the files that lie beside the notebooks while the notebooks run."""
        return merged(self.submission.files, self._given())

    def shown(self) -> dict[str, bytes]:
        """Return the files that are kept beside the graded notebooks."""
        return shown(self.beside(), self._given())

    def _given(self) -> dict[str, bytes]:
        theirs = set(self.lab.not_overwriting) & set(self.submission.files)
        return {name: data for name, data in self.lab.files.items() if name not in theirs}


@dataclass(frozen=True)
class NotebookResult:
    """A graded notebook."""

    name: str
    data: bytes  # the bytes of the file in ``autograded/``
    seed: str
    scores: Mapping[str, float | None]  # by graded cell; None without a score
    unanswered: Mapping[str, bool]  # whether a learner's cell is unchanged since the release
    ended: tuple[str, ...] = ()  # cells stopped at a limit, in words
    seconds: float = 0.0  # of the sandbox's own time


@dataclass(frozen=True)
class Result:
    """The outcome of one submission."""

    notebooks: tuple[NotebookResult, ...]
    problem: str = ""  # why it was not graded, or empty
    retryable: bool = False  # whether the grader failed, so that another try may succeed
    # whether every submission would probably fail, for example without a sandbox
    hopeless: bool = False
    turn_over: bool = False  # whether its turn was too short; then it is graded again later

    @property
    def judged(self) -> bool:
        """Whether there is a verdict.

        A verdict on one exercise, or on an unreadable submission, is enough.
        """
        scores = [score for notebook in self.notebooks for score in notebook.scores.values()]
        failed = self.retryable or self.hopeless
        return not failed and (not self.problem or any(score is not None for score in scores))


def failed(job: Job, problem: str) -> Result:
    """Return the result of a failure of the grader: the lab as released, without scores."""
    message = f"This could not be graded: {problem}. A person will look at it."
    return Result(_as_released(job, Note(NoteKind.UNGRADED, message)), problem, retryable=True)


def given_up(job: Job, problem: str) -> Result:
    """Return the result for a submission that can't be graded: the released lab, without marks."""
    return Result(_as_released(job, unreadable(f"{problem.capitalize()}.")), problem)


def _as_released(job: Job, note: Note) -> tuple[NotebookResult, ...]:
    notebooks = []
    for name, source in job.lab.notebooks.items():
        nb = rebuild(Unreadable(note.message), read_source(source), job.lab.config).nb
        nb.cells[0].source = note.message
        record(nb, notes=[note])
        scores = {c.metadata.nbgrader.grade_id: None for c in nb.cells if is_grade(c)}
        notebooks.append(NotebookResult(name, as_file(nb), "", scores, {}))
    return tuple(notebooks)


def can_compile(notebooks: Mapping[str, bytes]) -> bool:
    """Return whether this machine can compile what the lab's checks compile.

    If this machine can't, points are withheld. The result must be the same on all machines that
    grade a lab, so that everybody can earn the same number of points.
    """
    sources = map(read_source, notebooks.values())
    needed = any(nb.metadata.get(KEY, {}).get("compile") is True for nb in sources)
    return not (needed and compiler_lacks())


@lru_cache(maxsize=8)
def read_source(data: bytes) -> NotebookNode:
    """Return the instructor's notebook. The callers do not change it, so it can be cached."""
    return nbformat.reads(data.decode(), as_version=4)


def as_file(nb: NotebookNode) -> bytes:
    """Return a notebook as the bytes of its file in ``autograded/``."""
    return (nbformat.writes(nb) + "\n").encode()


def digest_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, each followed by a zero byte."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return found.hexdigest()
