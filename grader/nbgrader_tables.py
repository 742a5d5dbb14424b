"""The version of nbgrader's tables, which a new gradebook records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import create_engine, inspect, text

if TYPE_CHECKING:
    from sqlalchemy import Connection


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

    Ask before nbgrader opens it, which adds the tables that are missing.
    """
    engine = create_engine(db_url)
    try:
        with engine.connect() as connection:
            if "assignment" not in inspect(connection).get_table_names() or _current(connection):
                return ""
    finally:
        engine.dispose()
    return (
        f"the gradebook {engine.url.render_as_string()} has the tables of another version of "
        "nbgrader. If that was an older one, run `nbgrader db upgrade`, which keeps a copy of a "
        "SQLite gradebook; then run this command again"
    )


def _current(connection: Connection) -> bool:
    if "alembic_version" not in inspect(connection).get_table_names():
        return False
    return connection.scalar(text("SELECT version_num FROM alembic_version")) == version()
