"""Jobs and results: what is sent to a worker and what comes back, without slow imports."""

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
# The parts of a job's id that stand before the submission's, in their order, and in words.
FACTORS = (
    "the lab in source/",
    PACKAGES,
    "the grader",
    "the lab's checks or what they import",
    "nbgrader's settings for running notebooks",
    "whether what it compiles can be compiled",
    "whether a sandbox is used",
)
DIGITS = 9  # of each part's hash; a job's id has to fit into 64 characters
ANOTHER = "the program that gave them"


def changes(before: str, now: str) -> list[str]:
    """Return in words what decides verdicts and is not the same in two jobs' ids.

    ``before`` is the recorded id, perhaps of an earlier form; ``now`` is a job's id, or its part
    that all submissions share.
    """
    old, new = before.split("-"), now.split("-")
    if len(old) <= len(FACTORS):  # the last is the submission's
        return [ANOTHER]
    return [part for part, one, other in zip(FACTORS, old, new, strict=False) if one != other]


@dataclass(frozen=True)
class LabFiles:
    """What all submissions of an assignment have in common."""

    name: str
    notebooks: Mapping[str, bytes]  # the instructor's version of each, by name without ``.ipynb``
    files: Mapping[str, bytes]  # the lab's other files, by relative path
    not_overwriting: tuple[str, ...]  # those of them that replace none of a learner's
    config: Config  # those of nbgrader's settings that decide a verdict, among them the steps
    manifest: Manifest  # the packages, the grader and the checks, where the lab was read
    digest: str  # hashes of what decides a verdict, as :data:`FACTORS` names it
    # Notebooks beside its own that are none of the lab's, and why, in words
    left_out: tuple[str, ...] = ()
    can_compile: bool = True  # what :func:`can_compile` said where the lab was read
    # By notebook, the texts of earlier releases, which decide no verdict on an answer
    earlier: Mapping[str, Texts] = field(default_factory=dict)

    def digest_in(self, sandbox: bool) -> str:
        """Return the digest of all that decides a verdict beside a submission."""
        return f"{self.digest}-{self.can_compile:d}-{sandbox:d}"


@dataclass(frozen=True)
class Submission:
    """What one learner handed in for a lab."""

    notebooks: Mapping[str, bytes | Unreadable]  # the bytes of each, or why there are none
    # The other files by relative path, without nbgrader's own
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    # By notebook, the note on one that was found under another name, or beside others
    renamed: Mapping[str, Note] = field(default_factory=dict)
    timestamp: str | None = None  # when it was handed in, in ISO format; None when that is unknown
    # nbgrader's own, timestamp.txt and submission_secret.txt, for ``autograded/``; sandboxes do not
    # get them, and no two hand-ins have the same
    of_nbgrader: Mapping[str, bytes] = field(default_factory=dict)

    @cached_property
    def bytes(self) -> int:
        """How many bytes its notebooks and files have."""
        read = [data for data in self.notebooks.values() if isinstance(data, bytes)]
        return sum(map(len, [*read, *self.files.values()]))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that a sandbox can see of it.

        Earlier cases are asked again only of the same submission: another could hold code that
        knows their answers, which the first had printed.
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
        """Return hashes of all that decides a verdict, for :func:`changes`."""
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
    # The seed that its cases are drawn from; the same for everyone in a run
    seed: str = field(default_factory=lambda: secrets.token_hex(16))
    # By notebook, the seed of an earlier grading that is to be repeated
    seeds: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = True
    # Seconds of its sandbox's own time after which each of its notebooks is given up for now,
    # because others wait (:mod:`hood.grader.batch.turns`); 0 where it has all the time of its lab
    turn: int = 0
    whole: bool = False  # whether it has that even where others wait

    def beside(self) -> dict[str, bytes]:
        """Return the files that lie beside the notebooks when they run."""
        return merged(self.submission.files, self._given())

    def shown(self) -> dict[str, bytes]:
        """Return those of them that are kept beside the graded notebooks."""
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
    scores: Mapping[str, float | None]  # by graded cell; None where none is known
    unanswered: Mapping[str, bool]  # whether a cell that the learner writes is as released
    ended: tuple[str, ...] = ()  # what was ended at a limit, and at which, in words
    seconds: float = 0.0  # of the sandbox's own time


@dataclass(frozen=True)
class Result:
    """The outcome of one submission."""

    notebooks: tuple[NotebookResult, ...]
    problem: str = ""  # why it was not graded, or empty
    retryable: bool = False  # whether the grader failed, so that another try may succeed
    hopeless: bool = False  # whether every submission would probably fail, as without a sandbox
    turn_over: bool = False  # whether its turn was too short: it is graded anew, after others

    @property
    def judged(self) -> bool:
        """Whether this is a verdict, if only on a part, or on a submission that can't be read."""
        scores = [score for notebook in self.notebooks for score in notebook.scores.values()]
        failed = self.retryable or self.hopeless
        return not failed and (not self.problem or any(score is not None for score in scores))


def failed(job: Job, problem: str) -> Result:
    """Return the result of a failure of the grader: the lab as released, without scores."""
    message = f"This could not be graded: {problem}. A person will look at it."
    return Result(_as_released(job, Note(NoteKind.UNGRADED, message)), problem, retryable=True)


def given_up(job: Job, problem: str) -> Result:
    """Return the result of a submission that cannot be graded: the lab as released, no marks."""
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
    """Return whether what a lab compiles can be compiled on this machine.

    Where it can't, points are withheld. So that a lab is worth the same for everybody, all machines
    that grade it must give the same answer.
    """
    sources = map(read_source, notebooks.values())
    needed = any(nb.metadata.get(KEY, {}).get("compile") is True for nb in sources)
    return not (needed and compiler_lacks())


@lru_cache(maxsize=8)
def read_source(data: bytes) -> NotebookNode:
    """Return the instructor's notebook. The callers do not change it, so it can be cached."""
    return nbformat.reads(data.decode(), as_version=4)


def as_file(nb: NotebookNode) -> bytes:
    """Return the bytes of a notebook's file in ``autograded/``."""
    return (nbformat.writes(nb) + "\n").encode()


def digest_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, each followed by a zero byte."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return found.hexdigest()
