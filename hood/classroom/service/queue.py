"""Keep the waiting jobs in the gradebook's database, so that a restarted service loses no job.

A learner has at most one waiting job; a newer job replaces it. Learners who have used less of the
workers' time lately come first. If two learners have used equal time, the learner who has waited
longer comes first.

A job gets a short turn first. If the short turn was not enough, the job waits for a long turn.
Separate workers run the long turns. If a learner's last job needed a long turn, the learner's next
job gets a long turn at once. All learners without a recent verdict share half of the short turns.
So if many new learners arrive at once, they do not delay learners who are already at work.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from nbgrader.api import Gradebook
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    Subquery,
    cast,
    false,
    func,
    inspect,
    not_,
    or_,
    select,
)

from hood.classroom.gradebook.database import engine_of, writing
from hood.classroom.gradebook.service_jobs import JOBS, State
from hood.grader.nbgrader.patches import find_version_here

LATELY = 600.0  # seconds for which a learner's used time counts
SHORT_TURN = 1  # seconds of the sandbox's time; most checks take half of this
QUICK = 3.0  # seconds by the clock: a faster long turn could have been a short turn
USUAL = 1.0  # assumed seconds of a job, until a job has been measured


@dataclass(frozen=True)
class QueuedJob:
    """A learner's request for a verdict, with what a worker needs to know."""

    id: str
    learner: str
    lab: str
    exercise: str
    cells: Sequence[tuple[str, str]]  # id and source of each cell, in the order of their last runs
    long: bool = False  # whether its turn is long


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job, as its learner sees it.

    Attributes:
        place: how many jobs are ahead of this job, while it waits.
        seconds: the estimated number of seconds until the verdict.
    """

    state: State
    place: int = 0
    seconds: float = 0.0
    card: Mapping[str, Any] = field(default_factory=dict)


class Queue:
    """The queue of one course.

    Args:
        db_url: the gradebook's database. The queue makes its own tables in this database.
        workers: how many short turns run at once, for estimates of the time until a verdict.
    """

    def __init__(self, db_url: str, workers: int = 1):
        self._engine = engine_of(db_url)
        self._workers = workers
        self._turn = threading.Lock()  # one thread of this process writes at a time
        if not inspect(self._engine).get_table_names():
            # nbgrader writes its version only into a database without tables, and `grade` reads it
            find_version_here()
            Gradebook(db_url).close()
        JOBS.metadata.create_all(self._engine)
        with self._writing() as db:  # jobs of a killed service
            again = JOBS.update().where(JOBS.c.state == State.RUNNING)
            db.execute(again.values(state=State.WAITING, began=None))

    def put(
        self,
        learner: str,
        lab: str,
        exercise: str,
        cells: Sequence[tuple[str, str]],
        teaches: bool = False,
    ) -> str:
        """Queue a learner's new job in place of an older waiting job; return the new job's id.

        ``teaches`` marks the job of a teacher.

        The queue has no limit. If it had a limit, somebody could fill the queue and lock out all
        other people.
        """
        new = secrets.token_hex(16)
        with self._writing() as db:
            older = (JOBS.c.state == State.WAITING, JOBS.c.learner == learner)
            # without this, somebody who asks again and again would fill the disk
            replaced = (JOBS.c.state == State.REPLACED, JOBS.c.ended < time.time() - LATELY)
            db.execute(JOBS.delete().where(JOBS.c.learner == learner, *replaced))
            # without this, somebody who asks again and again would get only short turns
            long = bool(db.scalar(select(func.max(cast(JOBS.c.long, Integer))).where(*older)))
            db.execute(
                JOBS.update()
                .where(*older)
                .values(state=State.REPLACED, ended=time.time(), cells="")
            )
            db.execute(
                JOBS.insert().values(
                    id=new,
                    learner=learner,
                    teaches=teaches,
                    lab=lab,
                    exercise=exercise,
                    state=State.WAITING,
                    long=long,
                    cells=json.dumps(cells),
                    received=time.time(),
                )
            )
        return new

    def since(self, learner: str, exercise: str, moment: float) -> int:
        """Return how many verdicts on an exercise a learner has had since a given time.

        A running job is counted too, because otherwise a check during that job could exceed the
        limit.
        """
        mine = (JOBS.c.learner == learner, JOBS.c.exercise == exercise)
        had = (JOBS.c.state.in_([State.DONE, State.RUNNING]), JOBS.c.received >= moment)
        with self._engine.connect() as db:
            return db.scalar(select(func.count()).select_from(JOBS).where(*mine, *had)) or 0

    def of(self, learner: str, most: int = 50) -> list[dict[str, Any]]:
        """Return a learner's last jobs, the newest first."""
        columns = (JOBS.c.id, JOBS.c.exercise, JOBS.c.state, JOBS.c.received)
        mine = select(*columns, JOBS.c.verdict).where(JOBS.c.learner == learner)
        with self._engine.connect() as db:
            rows = db.execute(mine.order_by(JOBS.c.received.desc()).limit(most)).mappings().all()
        found = []
        for row in rows:
            one = dict(row)
            verdict = json.loads(one.pop("verdict") or "{}")
            one["received"] = datetime.fromtimestamp(one["received"], UTC)
            found.append(one | {key: verdict.get(key) for key in ("earned", "most")})
        return found

    def load(self) -> dict[str, int]:
        """Return how many jobs wait, how many run, and how many were done in the last hour."""
        counted = select(JOBS.c.state, func.count()).group_by(JOBS.c.state)
        lately = (JOBS.c.state == State.DONE, JOBS.c.ended > time.time() - 3600)
        with self._engine.connect() as db:
            now = {str(state): int(many) for state, many in db.execute(counted)}
            done = db.scalar(select(func.count()).select_from(JOBS).where(*lately)) or 0
        return {
            "waiting": now.get(State.WAITING, 0),
            "running": now.get(State.RUNNING, 0),
            "done_in_last_hour": done,
        }

    def take(self, long: bool = False) -> QueuedJob | None:
        """Mark the next job as running and return it; None if no job waits.

        Only one of a learner's jobs runs at a time.

        Args:
            long: whether the job is for a long turn.
        """
        last = _last_was_long()
        needs_long = or_(JOBS.c.long, func.coalesce(last, false()))
        with self._writing() as db:
            which = [needs_long if long else not_(needs_long)]
            if not long:
                new = (JOBS.c.state == State.RUNNING, last.is_(None), not_(JOBS.c.long))
                many = db.scalar(select(func.count()).select_from(JOBS).where(*new)) or 0
                which += [last.is_not(None)] if many >= max(1, self._workers // 2) else []
            first = db.scalar(_in_order(*which).limit(1))
            if first is None:
                return None
            row = db.execute(select(JOBS).where(JOBS.c.id == first)).one()
            chosen = JOBS.update().where(JOBS.c.id == first)
            db.execute(chosen.values(state=State.RUNNING, began=time.time()))
        cells = [(str(name), str(source)) for name, source in json.loads(row.cells)]
        return QueuedJob(row.id, row.learner, row.lab, row.exercise, cells, long)

    def again(self, job: QueuedJob) -> None:
        """After a short turn, queue the job for a long turn, unless the learner has a newer job."""
        with self._writing() as db:
            newer = (JOBS.c.learner == job.learner, JOBS.c.state == State.WAITING)
            this = JOBS.update().where(JOBS.c.id == job.id)
            if db.scalar(select(func.count()).where(*newer)):
                db.execute(
                    this.values(state=State.REPLACED, ended=time.time(), cells="", long=True)
                )
            else:
                db.execute(this.values(state=State.WAITING, began=None, long=True))

    def done(self, job: QueuedJob, verdict: Mapping[str, Any], card: Mapping[str, Any]) -> None:
        """Store a job's verdict, and the card that shows it to the learner."""
        self._end(job, State.DONE, json.dumps(verdict), card)

    def failed(self, job: QueuedJob, card: Mapping[str, Any]) -> None:
        """Mark a job as failed, and store the card that tells the learner so."""
        self._end(job, State.FAILED, None, card)

    def progress(self, job_id: str, learner: str) -> JobProgress | None:
        """Return a job's progress; None if this learner has no job with this id."""
        asked = select(JOBS).where(JOBS.c.id == job_id, JOBS.c.learner == learner)
        with self._engine.connect() as db:
            row = db.execute(asked).one_or_none()
            if row is None:
                return None
            state, usual = State(row.state), self._usual(db)
            if state is State.WAITING:
                order = list(db.scalars(_in_order()))
                place = order.index(job_id) if job_id in order else len(order)
                return JobProgress(state, place, (place // self._workers + 1) * usual)
        return JobProgress(state, seconds=usual, card=json.loads(row.card or "{}"))

    def _end(
        self, job: QueuedJob, state: State, verdict: str | None, card: Mapping[str, Any]
    ) -> None:
        now = time.time()
        values: dict[str, Any] = {"state": state, "ended": now, "verdict": verdict, "cells": ""}
        values["long"] = JOBS.c.began < now - QUICK if job.long else False
        with self._writing() as db:
            this = JOBS.update().where(JOBS.c.id == job.id)
            db.execute(this.values(**values, card=json.dumps(card)))

    def _usual(self, db: Connection) -> float:
        last = (
            select((JOBS.c.ended - JOBS.c.began).label("seconds"))
            .where(JOBS.c.state == State.DONE, not_(JOBS.c.long))
            .order_by(JOBS.c.ended.desc())
            .limit(20)
            .subquery()
        )
        return db.scalar(select(func.avg(last.c.seconds))) or USUAL

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._turn, writing(self._engine) as db:
            yield db


def _used() -> Subquery:
    """A query: how many seconds of the workers' time each learner has used lately."""
    return (
        select(JOBS.c.learner, func.sum(JOBS.c.ended - JOBS.c.began).label("seconds"))
        .where(JOBS.c.ended > time.time() - LATELY, JOBS.c.began.is_not(None))
        .group_by(JOBS.c.learner)
        .subquery()
    )


def _last_was_long() -> ScalarSelect[bool]:
    """A query: whether the learner's last job needed a long turn; NULL if there is no last job."""
    last = JOBS.alias()
    return (
        select(last.c.long)
        .where(last.c.learner == JOBS.c.learner, last.c.ended > time.time() - LATELY)
        .where(last.c.began.is_not(None))
        .order_by(last.c.ended.desc())
        .limit(1)
        .scalar_subquery()
    )


def _in_order(*which: ColumnElement[bool]) -> Select[str]:
    """A query: the ids of the jobs that a worker may take now, the next one first."""
    used = _used()
    seconds = func.coalesce(used.c.seconds, 0.0)
    running = select(JOBS.c.learner).where(JOBS.c.state == State.RUNNING)
    return (
        select(JOBS.c.id)
        .outerjoin(used, used.c.learner == JOBS.c.learner)
        .where(JOBS.c.state == State.WAITING, JOBS.c.learner.not_in(running), *which)
        .order_by(seconds, JOBS.c.received)
    )
