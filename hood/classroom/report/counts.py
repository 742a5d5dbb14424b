"""Add up what counts in one lab, for the class report: the page's section, and ``counts.csv``."""

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

ASKS = "Nothing but a request for a regrade is new in it, so the earlier time counts."
COLUMNS = (
    *("learner", "section", "raw_score", "counts", "counts_of"),
    *("days_late", "free_days", "share_kept", "final", "why"),
)
LISTED = 40  # learners named on the page; the CSV has them all


@dataclass
class Reached:
    """The shares that the learners of a section reached of what counts."""

    graders: str = ""
    learners: int = 0
    shares: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.shares) if self.shares else None


class ClassCounts:
    """What counts in a lab, one learner at a time.

    Attributes:
        title: the course's, or empty.
        rules: what the lab's rules mean, a sentence each; without extensions where names are
            hidden.
        sections: by name, if the roster has any.
        late: sentences on how many came late, and at what cost.
        without: who is in the roster and has handed nothing in.
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
        self._several = self._earlier = 0  # learners who handed in more than once; of whom not last
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
        """How many came late, and how many have no time, in sentences; empty if nobody."""
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
        said.append(f"{lost} lost points by it" if lost else "it cost nobody a point")
        if nothing:
            said.append(f"{nothing} came too late to count")
        return "; ".join(said) + "."

    @property
    def several(self) -> str:
        """How many handed in more than once, in a sentence; empty if nobody did."""
        if not self._several:
            return ""
        of = f"of {self._earlier} of them an earlier one counts" if self._earlier else ""
        return f"{self._several} handed in more than once{of and f'; {of}'}."

    @property
    def without(self) -> list[str]:
        """The ids of the roster of whom nothing was graded."""
        return [student for student in self._members if student not in self._seen]

    @property
    def missing(self) -> str:
        """Who has nothing graded, in a sentence; empty if the roster is complete, or none."""
        ids = self.without
        if not ids:
            return ""
        named = "" if self._names.hidden else f": {', '.join(ids[:LISTED])}"
        more = f" and {len(ids) - LISTED} more" if named and len(ids) > LISTED else ""
        have = "has" if len(ids) == 1 else "have"
        return f"{len(ids)} of the roster {have} nothing graded here{named}{more}."

    def table(self) -> Iterator[Iterable[Any]]:
        """Yield ``counts.csv``: the headings, then each learner's row, with how it came about."""
        yield COLUMNS if self._names.hidden else ("student", *COLUMNS)
        yield from self.rows
