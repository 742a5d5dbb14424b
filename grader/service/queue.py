"""The checks that wait, in the gradebook's database: a service that is restarted loses none.

A learner has at most one check that waits; a newer one takes its place. Who has used less of the
workers' time lately comes first, and of those alike who has waited longest.
"""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    MetaData,
    Select,
    String,
    Subquery,
    Table,
    Text,
    create_engine,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.pool import NullPool

MOST_WAITING = 1000  # checks of all learners together
LATELY = 600.0  # seconds for which used time is held against a learner
# Checks of learners who have used more, and those that run longer, have half of the workers.
MUCH = 5.0  # seconds
USUAL = 1.0  # seconds that a check takes, as long as none has been measured
WAIT_FOR_DATABASE = 30.0  # seconds


class State(StrEnum):
    """How far a check is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    REPLACED = "replaced"  # by a newer one of the same learner
    FAILED = "failed"  # the grader did, not the learner


ENDED = (State.DONE, State.REPLACED, State.FAILED)

CHECKS = Table(
    "service_check",
    MetaData(),
    Column("id", String(32), primary_key=True),
    Column("learner", String(255), nullable=False),
    Column("lab", String(255), nullable=False),
    Column("exercise", String(255), nullable=False),
    Column("state", String(16), nullable=False),
    Column("cells", Text, nullable=False),  # JSON; empty when the check has ended
    Column("received", Float, nullable=False),  # this and the next two by `time.time`
    Column("began", Float),
    Column("ended", Float),
    Column("verdict", Text),  # JSON, whole, for whoever teaches
    Column("card", Text),  # JSON: a MIME bundle, with what the learner may see
    Index("service_check_state", "state"),
    Index("service_check_learner", "learner", "exercise", "received"),
)


class Busy(Exception):
    """Too many checks wait. ``seconds``: when it may be worth while to ask again."""

    def __init__(self, seconds: float):
        super().__init__(f"too many checks wait; ask again in {seconds:.0f} s")
        self.seconds = seconds


@dataclass(frozen=True)
class Check:
    """A check that a worker is to make."""

    id: str
    learner: str
    lab: str
    exercise: str
    cells: Sequence[tuple[str, str]]  # id and source of each cell, as they were run last


@dataclass(frozen=True)
class Look:
    """What its learner is told of a check.

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
        workers: how many checks are made at once, for estimates.
    """

    def __init__(self, db_url: str, workers: int = 1):
        waiting = {"timeout": WAIT_FOR_DATABASE} if db_url.startswith("sqlite") else {}
        self._engine = create_engine(db_url, poolclass=NullPool, connect_args=waiting)
        self._workers = workers
        self._turn = threading.Lock()  # one thread of this process writes at a time
        CHECKS.metadata.create_all(self._engine)
        with self._writing() as db:  # of a service that was killed
            again = CHECKS.update().where(CHECKS.c.state == State.RUNNING)
            db.execute(again.values(state=State.WAITING, began=None))

    def put(self, learner: str, lab: str, exercise: str, cells: Sequence[tuple[str, str]]) -> str:
        """Let a learner's check wait, in place of an older one of theirs; return its id.

        Raises Busy when too many wait.
        """
        new = secrets.token_hex(16)
        with self._writing() as db:
            waits = CHECKS.c.state == State.WAITING
            db.execute(
                CHECKS.update()
                .where(waits, CHECKS.c.learner == learner)
                .values(state=State.REPLACED, ended=time.time(), cells="")
            )
            many = db.scalar(select(func.count()).where(waits)) or 0
            if many >= MOST_WAITING:
                raise Busy(many * self._usual(db) / self._workers)
            db.execute(
                CHECKS.insert().values(
                    id=new,
                    learner=learner,
                    lab=lab,
                    exercise=exercise,
                    state=State.WAITING,
                    cells=json.dumps(cells),
                    received=time.time(),
                )
            )
        return new

    def since(self, learner: str, exercise: str, moment: float) -> int:
        """Return how many verdicts on an exercise a learner has had since a moment."""
        mine = (CHECKS.c.learner == learner, CHECKS.c.exercise == exercise)
        had = (CHECKS.c.state == State.DONE, CHECKS.c.received >= moment)
        with self._engine.connect() as db:
            return db.scalar(select(func.count()).select_from(CHECKS).where(*mine, *had)) or 0

    def of(self, learner: str, most: int = 50) -> list[dict[str, Any]]:
        """Return a learner's last checks, the newest first."""
        columns = (CHECKS.c.id, CHECKS.c.exercise, CHECKS.c.state, CHECKS.c.received)
        mine = select(*columns, CHECKS.c.verdict).where(CHECKS.c.learner == learner)
        with self._engine.connect() as db:
            rows = db.execute(mine.order_by(CHECKS.c.received.desc()).limit(most)).mappings().all()
        found = []
        for row in rows:
            one = dict(row)
            verdict = json.loads(one.pop("verdict") or "{}")
            one["received"] = datetime.fromtimestamp(one["received"], UTC)
            found.append(one | {key: verdict.get(key) for key in ("earned", "most")})
        return found

    def load(self) -> dict[str, int]:
        """Return how many checks wait, run, and were done in the last hour."""
        counted = select(CHECKS.c.state, func.count()).group_by(CHECKS.c.state)
        lately = (CHECKS.c.state == State.DONE, CHECKS.c.ended > time.time() - 3600)
        with self._engine.connect() as db:
            now = {str(state): int(many) for state, many in db.execute(counted)}
            done = db.scalar(select(func.count()).select_from(CHECKS).where(*lately)) or 0
        return {
            "waiting": now.get(State.WAITING, 0),
            "running": now.get(State.RUNNING, 0),
            "done_in_last_hour": done,
        }

    def take(self) -> Check | None:
        """Return the check that is next, which from now on runs; None where none waits.

        Of one learner's checks one runs at a time.
        """
        with self._writing() as db:
            first = db.scalar(self._order(db).limit(1))
            if first is None:
                return None
            row = db.execute(select(CHECKS).where(CHECKS.c.id == first)).one()
            chosen = CHECKS.update().where(CHECKS.c.id == first)
            db.execute(chosen.values(state=State.RUNNING, began=time.time()))
        cells = [(str(name), str(source)) for name, source in json.loads(row.cells)]
        return Check(row.id, row.learner, row.lab, row.exercise, cells)

    def done(self, check: Check, verdict: Mapping[str, Any], card: Mapping[str, Any]) -> None:
        """Store a verdict, and what its learner sees of it."""
        self._end(check, State.DONE, json.dumps(verdict), card)

    def failed(self, check: Check, card: Mapping[str, Any]) -> None:
        """Store that the grader had no verdict, and what the learner is told."""
        self._end(check, State.FAILED, None, card)

    def look(self, check_id: str, learner: str) -> Look | None:
        """Return how far a check is; None when this learner has none of this id."""
        asked = select(CHECKS).where(CHECKS.c.id == check_id, CHECKS.c.learner == learner)
        with self._engine.connect() as db:
            row = db.execute(asked).one_or_none()
            if row is None:
                return None
            state, usual = State(row.state), self._usual(db)
            if state is State.WAITING:
                order = list(db.scalars(_in_order(math.inf)))
                place = order.index(check_id) if check_id in order else len(order)
                return Look(state, place, (place // self._workers + 1) * usual)
        return Look(state, seconds=usual, card=json.loads(row.card or "{}"))

    def _end(
        self, check: Check, state: State, verdict: str | None, card: Mapping[str, Any]
    ) -> None:
        values = {"state": state, "ended": time.time(), "verdict": verdict, "cells": ""}
        with self._writing() as db:
            this = CHECKS.update().where(CHECKS.c.id == check.id)
            db.execute(this.values(**values, card=json.dumps(card)))

    def _order(self, db: Connection) -> Select[str]:
        """Ask for the ids of the checks that can be taken now, the next one first."""
        began, now = CHECKS.c.began, time.time()
        long = select(func.count()).where(CHECKS.c.state == State.RUNNING)
        used = _used()
        long = long.outerjoin_from(CHECKS, used, used.c.learner == CHECKS.c.learner)
        long = long.where(or_(began < now - MUCH, used.c.seconds > MUCH))
        half = max(1, self._workers // 2)
        return _in_order(MUCH if (db.scalar(long) or 0) >= half else math.inf)

    def _usual(self, db: Connection) -> float:
        last = (
            select((CHECKS.c.ended - CHECKS.c.began).label("seconds"))
            .where(CHECKS.c.state == State.DONE)
            .order_by(CHECKS.c.ended.desc())
            .limit(20)
            .subquery()
        )
        return db.scalar(select(func.avg(last.c.seconds))) or USUAL

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._turn, self._engine.begin() as db:
            yield db


def _used() -> Subquery:
    """The seconds of workers that each learner has used lately."""
    return (
        select(CHECKS.c.learner, func.sum(CHECKS.c.ended - CHECKS.c.began).label("seconds"))
        .where(CHECKS.c.ended > time.time() - LATELY, CHECKS.c.began.is_not(None))
        .group_by(CHECKS.c.learner)
        .subquery()
    )


def _in_order(most: float) -> Select[str]:
    """Ask for the ids of checks of learners who have used no more than ``most`` seconds lately."""
    used = _used()
    seconds = func.coalesce(used.c.seconds, 0.0)
    running = select(CHECKS.c.learner).where(CHECKS.c.state == State.RUNNING)
    return (
        select(CHECKS.c.id)
        .outerjoin(used, used.c.learner == CHECKS.c.learner)
        .where(CHECKS.c.state == State.WAITING, CHECKS.c.learner.not_in(running))
        .where(true() if math.isinf(most) else seconds <= most)
        .order_by(seconds, CHECKS.c.received)
    )
