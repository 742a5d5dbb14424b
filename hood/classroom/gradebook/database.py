"""Open and write the gradebook's database, and turn its errors into messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nbgrader.api import Assignment, Grade, InvalidEntry, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import Connection, Engine, Select, create_engine, make_url, select
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool

from hood import UserError
from hood.atomic_files import why_not_written
from hood.grader.course import Course, no_gradebook

PATIENCE = 60.0  # seconds to wait for another program's lock
LOCKED = "55P03"  # PostgreSQL's code for a lock that can't be had; it is the same in all languages


def waiting(db_url: str, seconds: float) -> str:
    """Add to a database's address how many seconds to wait for another program's lock."""
    url = make_url(db_url)
    if url.get_backend_name() == "sqlite":
        url = url.update_query_dict({"timeout": str(seconds)})
    elif url.get_backend_name() == "postgresql":  # by default, it waits without a limit
        said = f"{url.query.get('options', '')} -c lock_timeout={int(seconds * 1000)}"
        url = url.update_query_dict({"options": said.strip()})
    return url.render_as_string(hide_password=False)


def engine_of(db_url: str, seconds: float = 0.0) -> Engine:
    """Return an engine that closes each connection after use.

    The engine waits ``seconds`` for a lock, or ``PATIENCE`` seconds if ``seconds`` is 0.
    """
    return create_engine(waiting(db_url, seconds or PATIENCE), poolclass=NullPool)


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Run the enclosed code in one transaction; in SQLite no other program can write then.

    The write lock is taken when the transaction begins. So nothing changes between reading and
    writing, and a locked database is noticed before any work is done.
    """
    with engine.connect() as connection, connection.begin():
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


@contextmanager
def errors_in_words(course: Course, then: str, seconds: float = 0.0) -> Iterator[None]:
    """Turn errors of the gradebook's database into a UserError that says what to do.

    Args:
        then: the end of the message: what was done, and what to do.
        seconds: how long the caller waited for a lock; by default ``PATIENCE``.
    """
    try:
        yield
    except (DatabaseError, InvalidEntry) as error:
        cause = cause_of(error)
        if not isinstance(cause, DatabaseError):
            raise
        why = no_gradebook(cause, course.directory.db_url)
        if not why:
            if not isinstance(cause, OperationalError):
                raise
            why = why_not_written(cause, course.database) or (
                "the gradebook can't be used: another program has kept it locked for "
                f"{seconds or PATIENCE:g} s; close that program"
                if _is_locked(cause)
                else f"the gradebook can't be used: {str(cause.orig).strip()}"
            )
        raise UserError(f"{why}. {then}" if then else why) from error


def submissions_of(lab: str, *columns: Any, student: str = "") -> Select[Any]:
    """Return a query for columns of the submissions to a lab, from one student or from all."""
    query = (
        select(*columns)
        .select_from(SubmittedAssignment)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .where(Assignment.name == lab)
    )
    return query.where(SubmittedAssignment.student_id == student) if student else query


def marks_of(lab: str, *columns: Any, student: str = "") -> Select[Any]:
    """Return a query for columns of the marks in a lab, like :func:`submissions_of`."""
    return (
        submissions_of(lab, *columns, student=student)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
    )


def cause_of(error: Exception) -> BaseException | None:
    """Return the database's error, which nbgrader's API hides behind an ``InvalidEntry``."""
    return error.__context__ if isinstance(error, InvalidEntry) else error


def state_of(error: BaseException | None) -> str:
    """Return PostgreSQL's code of an error; empty if the error has no such code."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


def _is_locked(error: OperationalError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", 0)
    primary = code & 0xFF  # the higher bits of an extended code say where SQLite found the lock
    return primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or state_of(error) == LOCKED
