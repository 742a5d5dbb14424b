"""The version of nbgrader's tables, which a new gradebook records."""

from __future__ import annotations

import sqlite3

from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.exc import DatabaseError


def find_version_here() -> None:
    """Let nbgrader find the version in its own process.

    ``nbgrader_config.py`` calls this, and whoever reads a course's settings. For each new gradebook
    nbgrader would start ``alembic``, which takes two seconds and has to be on PATH.
    """
    from nbgrader import api

    api.get_alembic_version = version


def version() -> str:
    """Return the newest version of nbgrader's tables."""
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    found = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    assert found is not None
    return found


def other_version(db_url: str) -> str:
    """Return what to do about a gradebook with the tables of another nbgrader; empty if none is.

    That of a file that is no database is said, too. Ask before nbgrader opens it, which adds the
    tables that are missing.
    """
    engine = create_engine(db_url)
    try:
        with engine.connect() as connection:
            tables = inspect(connection).get_table_names()
            if "assignment" not in tables:
                return ""
            asked = text("SELECT version_num FROM alembic_version")
            if "alembic_version" in tables and connection.scalar(asked) == version():
                return ""
    except DatabaseError as error:
        if not (why := no_gradebook(error, db_url)):
            raise
        return why
    finally:
        engine.dispose()
    return (
        f"the gradebook {_shown(db_url)} has the tables of another version of nbgrader. If that "
        "was an older one, run `nbgrader db upgrade`, which keeps a copy of a SQLite gradebook; "
        "then run this command again"
    )


def no_gradebook(error: DatabaseError, db_url: str) -> str:
    """Return that a database's file is none, or has none of nbgrader's tables; else nothing."""
    said = str(error.orig)
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if code not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) and "no such table" not in said:
        return ""
    return (
        f"{_shown(db_url)} is no gradebook: {said}. Put a copy of the gradebook in its place; or, "
        "if there is none, move this file away and grade the lab"
    )


def _shown(db_url: str) -> str:
    return make_url(db_url).set(query={}).render_as_string()
