"""The jobs that wait, in the gradebook's database: a service that is restarted loses none.

A learner has at most one job that waits; a newer one takes its place. Who has used less of the
workers' time lately comes first, and of those alike who has waited longest.

A job begins with a short turn. If that was not enough, it waits for a long one, and workers of
their own make those. A learner whose last job needed a long turn begins with one. All learners who
have had no verdict lately have half of the short turns, so that many who come at once, whatever
they send, hold up nobody who is at work.
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

LATELY = 600.0  # seconds for which used time is held against a learner
SHORT_TURN = 1  # seconds of the sandbox's own time; most checks take half of it
QUICK = 3.0  # seconds by the clock: a long turn that took less could have been a short one
USUAL = 1.0  # seconds that a job takes, as long as none has been measured


@dataclass(frozen=True)
class QueuedJob:
    """What a learner asked to have checked, which a worker is to judge."""

    id: str
    learner: str
    lab: str
    exercise: str
    cells: Sequence[tuple[str, str]]  # id and source of each cell, as they were run last
    long: bool = False  # whether its turn is a long one


@dataclass(frozen=True)
class JobProgress:
    """What its learner is told of a job.

    Attributes:
        place: how many are before it, where it waits.
        seconds: how long it will probably take until there is a verdict.
    """

    state: State
    place: int = 0
    seconds: float = 0.0
    card: Mapping[str, Any] = field(default_factory=dict)


class Queue:
    """The queue of one course.

    Args:
        db_url: the gradebook's database. Tables of the queue's own are made in it.
        workers: how many short turns there are at once, for estimates.
    """

    def __init__(self, db_url: str, workers: int = 1):
        self._engine = engine_of(db_url)
        self._workers = workers
        self._turn = threading.Lock()  # one thread of this process writes at a time
        if not inspect(self._engine).get_table_names():
            # nbgrader writes its version into a database without tables alone, and `grade` reads it
            find_version_here()
            Gradebook(db_url).close()
        JOBS.metadata.create_all(self._engine)
        with self._writing() as db:  # of a service that was killed
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
        """Let a learner's new job wait, in place of an older one of theirs; return its id.

        One who teaches asks as a learner does, and ``teaches`` says so.

        However many wait, there is a place: else who fills the queue would lock out the others.
        """
        new = secrets.token_hex(16)
        with self._writing() as db:
            older = (JOBS.c.state == State.WAITING, JOBS.c.learner == learner)
            # else who asks again and again would fill the disk
            replaced = (JOBS.c.state == State.REPLACED, JOBS.c.ended < time.time() - LATELY)
            db.execute(JOBS.delete().where(JOBS.c.learner == learner, *replaced))
            # else who asks again and again would have short turns alone
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
        """Return how many verdicts on an exercise a learner has had since a moment.

        One that is being made counts: else a check that is sent meanwhile would be one too many.
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
        """Return how many jobs wait, run, and were done in the last hour."""
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
        """Return the job whose turn is next, which from now on runs; None where none waits.

        Of one learner's jobs one runs at a time.

        Args:
            long: which turns are asked for.
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
        """Let a job whose short turn was not enough wait for a long one, if no newer one waits."""
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
        """Store a verdict, and what its learner sees of it."""
        self._end(job, State.DONE, json.dumps(verdict), card)

    def failed(self, job: QueuedJob, card: Mapping[str, Any]) -> None:
        """Store that the grader had no verdict, and what the learner is told."""
        self._end(job, State.FAILED, None, card)

    def progress(self, job_id: str, learner: str) -> JobProgress | None:
        """Return how far a job is; None when this learner has none of this id."""
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
    """The seconds of workers that each learner has used lately."""
    return (
        select(JOBS.c.learner, func.sum(JOBS.c.ended - JOBS.c.began).label("seconds"))
        .where(JOBS.c.ended > time.time() - LATELY, JOBS.c.began.is_not(None))
        .group_by(JOBS.c.learner)
        .subquery()
    )


def _last_was_long() -> ScalarSelect[bool]:
    """Whether the last job of a job's learner needed a long turn; NULL where there was none."""
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
    """Ask for the ids of the jobs that may be taken now, the next one first."""
    used = _used()
    seconds = func.coalesce(used.c.seconds, 0.0)
    running = select(JOBS.c.learner).where(JOBS.c.state == State.RUNNING)
    return (
        select(JOBS.c.id)
        .outerjoin(used, used.c.learner == JOBS.c.learner)
        .where(JOBS.c.state == State.WAITING, JOBS.c.learner.not_in(running), *which)
        .order_by(seconds, JOBS.c.received)
    )
