"""Define the gradebook's table of jobs. A job is a learner's request for a verdict."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import Boolean, Column, Float, Index, MetaData, String, Table, Text, inspect
from sqlalchemy.orm import Session, scoped_session


class State(StrEnum):
    """The state of a job."""

    WAITING = "waiting"  # no worker has the job yet
    RUNNING = "running"  # a worker judges the answer
    DONE = "done"  # there is a verdict
    REPLACED = "replaced"  # a newer job of the same learner took its place
    FAILED = "failed"  # the grader failed; the learner's code is not the cause


ENDED = (State.DONE, State.REPLACED, State.FAILED)

JOBS = Table(
    "service_job",
    MetaData(),
    Column("id", String(32), primary_key=True),
    Column("learner", String(255), nullable=False),
    Column("teaches", Boolean, nullable=False),  # the class report does not count a teacher's job
    Column("lab", String(255), nullable=False),
    Column("exercise", String(255), nullable=False),
    Column("state", String(16), nullable=False),
    Column("cells", Text, nullable=False),  # JSON; empty when the job has ended
    Column("long", Boolean, nullable=False),  # whether the job needs a long turn
    Column("received", Float, nullable=False),  # these three: seconds since the epoch
    Column("began", Float),
    Column("ended", Float),
    Column("verdict", Text),  # JSON, complete, for teachers
    Column("card", Text),  # JSON: a MIME bundle, with what the learner may see
    Index("service_job_state", "state"),
    Index("service_job_learner", "learner", "exercise", "received"),
)


def forget(session: Session | scoped_session[Session], learner: str) -> None:
    """Delete all jobs of a learner."""
    if inspect(session.connection()).has_table(JOBS.name):
        session.execute(JOBS.delete().where(JOBS.c.learner == learner))
        session.commit()
