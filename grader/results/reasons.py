"""Why a person should look at a submission, for ``grade``, ``demo`` and ``report`` alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from grader.submission.notes import Note, NoteKind
from grader.verdict import TRIED, Cause, Status, Verdict


class ReasonKind(StrEnum):
    """Kinds of reasons why a person should look at a submission, the most severe first."""

    UNGRADED = "ungraded"
    UNREAD = "unread"
    FOREIGN = "foreign"  # no answer to the lab in a notebook
    COPIES = "copies"  # of the notebook beside it
    TIME = "time"  # of the submission can't be read
    TOUCHED = "touched"
    STOPPED = "stopped"
    UNJUDGED = "unjudged"
    UNDEFINED = "undefined"


# Kinds of notes after which a person should look, with the kind of reason and its text.
TELLING = {
    NoteKind.UNREADABLE: (ReasonKind.UNREAD, "not readable"),
    NoteKind.FOREIGN: (ReasonKind.FOREIGN, "another notebook"),
    NoteKind.CHANGED: (ReasonKind.TOUCHED, "a graded cell was edited"),
    NoteKind.SETTINGS: (ReasonKind.TOUCHED, "grading settings were changed"),
    NoteKind.TAGS: (ReasonKind.TOUCHED, "cell tags were set"),
    NoteKind.ANOTHER: (ReasonKind.COPIES, "copies of the notebook lie beside it"),
    NoteKind.TIMESTAMP: (ReasonKind.TIME, "the time of the submission can't be read"),
}
# Causes of a missing verdict, with the kind of reason. All other causes are UNJUDGED.
STOPS = {
    Cause.TIMEOUT: ReasonKind.STOPPED,
    Cause.KERNEL_DIED: ReasonKind.STOPPED,
    Cause.KERNEL_STOPPED: ReasonKind.STOPPED,
    Cause.UNDEFINED_NAME: ReasonKind.UNDEFINED,
}


@dataclass(frozen=True)
class Reason:
    """Why a person should look at a submission, or a cell of it; programs decide by the kind.

    Attributes:
        anonymous: the text without the learner's own words.
    """

    kind: ReasonKind
    text: str
    cell: str = ""
    anonymous: str = ""

    def __str__(self) -> str:
        return f"{self.text} (`{self.cell}`)" if self.cell else self.text


def reasons(verdicts: Mapping[str, Verdict], notes: Iterable[Note], problem: str) -> list[Reason]:
    """Return the reasons why a person should look at a graded submission; usually none.

    Args:
        notes: what was put right before grading.
        problem: why grading did not get to its end, or empty.
    """
    notes = list(notes)
    ungraded = [note.message for note in notes if note.kind is NoteKind.UNGRADED]
    said = [Reason(ReasonKind.UNGRADED, why) for why in ungraded or filter(None, [problem])]
    said += [Reason(*TELLING[n.kind], n.cell or "") for n in notes if n.kind in TELLING]
    for name, verdict in verdicts.items():
        if any(part.cause is Cause.TIMEOUT for part in verdict.parts):
            said.append(Reason(ReasonKind.STOPPED, "a call ran out of time", name))
    attempted = any(verdict.status in TRIED for verdict in verdicts.values())
    stopped = False
    for name, verdict in verdicts.items():
        kind = STOPS.get(verdict.cause, ReasonKind.UNJUDGED)
        if verdict.status is not Status.NOT_RUN or (kind is ReasonKind.STOPPED and stopped):
            continue  # of those that did not run report only the cell that stopped the kernel
        if kind is ReasonKind.UNDEFINED and not attempted:
            continue
        stopped = stopped or kind is ReasonKind.STOPPED
        text = verdict.problem or "the check gave no verdict"
        said.append(Reason(kind, text, name, verdict.anonymous_problem))
    return list(dict.fromkeys(said))
