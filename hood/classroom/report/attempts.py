"""What the service's jobs tell: how many verdicts an exercise took until it was right."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import inspect, not_, select

from hood.classroom.gradebook.database import engine_of
from hood.classroom.gradebook.service_jobs import JOBS, State
from hood.classroom.rules.class_list import EVERYBODY, ClassList

# By the number of verdicts until the first with all points.
AT_ONCE, SOME, MANY, NOT_YET = "at once", "after 2 or 3", "after more", "not yet"
FEW = 3


@dataclass
class Attempts:
    """The attempts at one exercise: learners by how many verdicts they needed, and what went wrong.

    Attributes:
        needed: how many learners had all points at once, after some verdicts, or not yet.
        misconceptions: how many learners were told each of them by its name.
    """

    needed: Counter[str] = field(default_factory=Counter)
    misconceptions: Counter[str] = field(default_factory=Counter)

    @property
    def learners(self) -> int:
        """How many learners asked."""
        return self.needed.total()


def attempts_of(db_url: str, lab: str, belong: ClassList = EVERYBODY) -> dict[str, Attempts]:
    """Return the attempts at each exercise of a lab; nothing where no service has been used.

    What a learner asks after all points does not count, nor what those who teach ask.

    Args:
        belong: the class; what others asked does not count, either.
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
