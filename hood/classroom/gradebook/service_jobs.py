"""The table of the service's jobs, in the gradebook's database: what learners had checked."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import Boolean, Column, Float, Index, MetaData, String, Table, Text


class State(StrEnum):
    """How far a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    REPLACED = "replaced"  # by a newer one of the same learner
    FAILED = "failed"  # the grader did, not the learner


ENDED = (State.DONE, State.REPLACED, State.FAILED)

JOBS = Table(
    "service_job",
    MetaData(),
    Column("id", String(32), primary_key=True),
    Column("learner", String(255), nullable=False),
    Column("teaches", Boolean, nullable=False),  # then the class report does not count it
    Column("lab", String(255), nullable=False),
    Column("exercise", String(255), nullable=False),
    Column("state", String(16), nullable=False),
    Column("cells", Text, nullable=False),  # JSON; empty when the job has ended
    Column("long", Boolean, nullable=False),  # whether a short turn was not enough
    Column("received", Float, nullable=False),  # this and the next two by `time.time`
    Column("began", Float),
    Column("ended", Float),
    Column("verdict", Text),  # JSON, whole, for whoever teaches
    Column("card", Text),  # JSON: a MIME bundle, with what the learner may see
    Index("service_job_state", "state"),
    Index("service_job_learner", "learner", "exercise", "received"),
)
