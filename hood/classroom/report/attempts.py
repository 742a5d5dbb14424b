"""Count how many of the service's verdicts learners needed before an answer was right."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import inspect, not_, select

from hood.classroom.gradebook.database import engine_of
from hood.classroom.gradebook.service_jobs import JOBS, State
from hood.classroom.rules.class_list import EVERYBODY, ClassList

# Groups of learners, by how many verdicts a learner needed until the first verdict with all points.
AT_ONCE, SOME, MANY, NOT_YET = "at once", "after 2 or 3", "after more", "not yet"
FEW = 3


@dataclass
class Attempts:
    """The attempts at one exercise: how many verdicts learners needed, and their misconceptions.

    Attributes:
        needed: the number of learners in each group: ``AT_ONCE``, ``SOME``, ``MANY`` and
            ``NOT_YET``.
        misconceptions: how many learners had a verdict that names a misconception, keyed by
            misconception.
    """

    needed: Counter[str] = field(default_factory=Counter)
    misconceptions: Counter[str] = field(default_factory=Counter)

    @property
    def learners(self) -> int:
        """How many learners have asked for a verdict on this exercise."""
        return self.needed.total()


def attempts_of(db_url: str, lab: str, belong: ClassList = EVERYBODY) -> dict[str, Attempts]:
    """Return the attempts at each exercise of a lab; empty if the class used no service.

    After a learner's first verdict with all points, their later verdicts are ignored. Verdicts for
    teachers are always ignored.

    Args:
        belong: the learners of the class; other people's verdicts are ignored.
    """
    engine = engine_of(db_url)
    if JOBS.name not in inspect(engine).get_table_names():
        return {}
    columns = (JOBS.c.exercise, JOBS.c.learner, JOBS.c.verdict)
    asked = select(*columns).where(JOBS.c.lab == lab, JOBS.c.state == State.DONE)
    asked = asked.where(not_(JOBS.c.teaches)).order_by(JOBS.c.ended)
    had: Counter[tuple[str, str]] = Counter()
    right: set[tuple[str, str]] = set()
    named: dict[str, set[tuple[str, str]]] = {}
    with engine.connect() as db:
        for exercise, learner, data in db.execute(asked):
            who = exercise, learner
            if who in right or belong.why_not(learner):
                continue
            verdict = json.loads(data)
            had[who] += 1
            if verdict["earned"] >= verdict["most"]:
                right.add(who)
            for name in verdict["explanations"]:
                named.setdefault(exercise, set()).add((name, learner))
    attempts: dict[str, Attempts] = {}
    for who, many in had.items():
        one = attempts.setdefault(who[0], Attempts())
        one.needed[_words(many) if who in right else NOT_YET] += 1
    for exercise, pairs in named.items():
        attempts[exercise].misconceptions.update(name for name, _ in pairs)
    return attempts


def _words(many: int) -> str:
    return AT_ONCE if many == 1 else SOME if many <= FEW else MANY
