"""Add up the points that count in one lab, for the class report and ``counts.csv``."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hood.classroom.gradebook.graded import Graded
from hood.classroom.gradebook.pseudonyms import LearnerNames
from hood.classroom.results.counted_marks import CountedMarks
from hood.classroom.rules.class_list import class_list_of
from hood.classroom.rules.counting import Counted, Lateness
from hood.classroom.rules.reading import exercises_of
from hood.classroom.rules.roster import read_roster
from hood.classroom.rules.sentences import (
    counted_sentences,
    days,
    lab_sentences,
    no_time_sentence,
    rounded,
)
from hood.classroom.rules.standing import hand_ins_sentence

ASKS = "Only a request for a regrade is new, so the time of the earlier hand-in counts."
COLUMNS = (
    *("learner", "section", "raw_score", "counts", "counts_of"),
    *("days_late", "free_days", "share_kept", "final", "why"),
)
LISTED = 40  # learners named on the page; the CSV has all learners


@dataclass
class Reached:
    """Which share of the counted points the learners of a section have reached."""

    graders: str = ""
    learners: int = 0
    shares: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.shares) if self.shares else None


class ClassCounts:
    """Adds up the points that count in a lab, one learner at a time.

    Attributes:
        title: the title of the course; empty if it has none.
        rules: sentences on the rules of the lab. If names are hidden, extensions are left out.
        sections: the shares that learners have reached, keyed by section; empty without sections.
        late: sentences that say how many submissions came late, and how many points they lost.
        without: the learners in the roster who have no graded submission.
    """

    def __init__(self, marks: CountedMarks, lab: str, names: LearnerNames):
        self._marks, self._lab, self._names = marks, lab, names
        file, root = marks.file, marks.course.root
        self.title = file.course.title
        self.rules = list(
            lab_sentences(file, lab, exercises_of(root, lab) or {}, people=not names.hidden)
        )
        belong = class_list_of(root, file)
        every = read_roster(root, file)
        self._members = {who: one for who, one in every.items() if not belong.why_not(who)}
        self._seen: set[str] = set()
        self._late: list[Counted] = []
        self._lateness: list[Lateness] = []
        # Learners with several hand-ins, and learners whose last hand-in does not count.
        self._several = self._earlier = 0
        self.whole = Reached()
        self.sections: dict[str, Reached] = {
            name: Reached(", ".join(section.graders)) for name, section in file.sections.items()
        }
        self.rows: list[list[Any]] = []

    def add(self, graded: Graded) -> None:
        """Add one learner's submission."""
        counted = self._marks.of(self._lab, graded)
        member = self._members.get(graded.student)
        section = member.section if member else ""
        self._seen.add(graded.student)
        groups = [self.whole, *([self.sections[section]] if section in self.sections else [])]
        for group in groups:
            group.learners += 1
            if counted.is_final and counted.most:
                group.shares.append(counted.counts / counted.most)
        if counted.lateness.days:
            self._late.append(counted)
        late = counted.lateness
        self._lateness.append(late)
        row = [self._names.of(graded), section, rounded(graded.points), rounded(counted.counts)]
        row += [rounded(counted.most), late.days if late.known else "", late.free, late.kept]
        hand_ins = self._marks.hand_ins(self._lab, graded)
        self._several += len(hand_ins) > 1
        self._earlier += bool(hand_ins) and hand_ins[-1].seen and not hand_ins[-1].stands
        which = hand_ins_sentence(hand_ins, self._marks.file.hand_in_rule(self._lab), you=False)
        why = filter(None, [*counted_sentences(counted), which, ASKS if graded.asks_alone else ""])
        row += ["yes" if counted.is_final else "", " ".join(why)]
        self.rows.append(row if self._names.hidden else [graded.student, *row])

    @property
    def late(self) -> str:
        """Sentences on submissions that came late or have no time; empty if all came in time."""
        without = sum(not late.known for late in self._lateness)
        said = no_time_sentence(self._marks.file, self._lab, without, len(self._lateness))
        return " ".join(filter(None, (self._came_late, f"{said}." if said else "")))

    @property
    def _came_late(self) -> str:
        if not self._late:
            return ""
        lateness = [one.lateness for one in self._late]
        lost = sum(one.kept < 1 for one in lateness)
        nothing = sum(one.kept == 0 for one in lateness)
        said = [f"{len(lateness)} came late, by up to {days(max(one.days for one in lateness))}"]
        said.append(f"{lost} lost points for it" if lost else "nobody lost points for it")
        if nothing:
            said.append(f"{nothing} came too late to count")
        return "; ".join(said) + "."

    @property
    def several(self) -> str:
        """A sentence on how many learners handed in more than once; empty if nobody did."""
        if not self._several:
            return ""
        of = f"for {self._earlier} of them an earlier hand-in counts" if self._earlier else ""
        return f"{self._several} handed in more than once{of and f'; {of}'}."

    @property
    def without(self) -> list[str]:
        """The ids of the learners in the roster who have no graded submission."""
        return [student for student in self._members if student not in self._seen]

    @property
    def missing(self) -> str:
        """A sentence on the learners in ``without``; empty if ``without`` is empty."""
        ids = self.without
        if not ids:
            return ""
        named = "" if self._names.hidden else f": {', '.join(ids[:LISTED])}"
        more = f" and {len(ids) - LISTED} more" if named and len(ids) > LISTED else ""
        have = "learner in the roster has" if len(ids) == 1 else "learners in the roster have"
        return f"{len(ids)} {have} no graded submission{named}{more}."

    def table(self) -> Iterator[Iterable[Any]]:
        """Yield the rows of ``counts.csv``: the headings, then one row for each learner."""
        yield COLUMNS if self._names.hidden else ("student", *COLUMNS)
        yield from self.rows
