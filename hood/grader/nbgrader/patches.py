"""Patch nbgrader in this process where no setting of nbgrader helps.

The patches are for the version of nbgrader below, which `pyproject.toml` pins. With another version
a test fails. Then compare the code that each patch replaces, and set the version here.
:mod:`hood.classroom.nbgrader.guard` has the patches that need a class's rules.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace

from hood.grader.nbgrader.gathered_log import gather_log
from hood.grader.nbgrader.literal_paths import found

VERSION = "0.9.6"
# nbgrader's modules that look for files.
SEARCHING = (
    "apps.api",
    "converters.base",
    "exchange.default.collect",
    "exchange.default.exchange",
    "exchange.default.fetch_feedback",
    "exchange.default.list",
    "exchange.default.release_feedback",
    "utils",
)


def patch_commands() -> None:
    """Patch nbgrader's commands and formgrader. Calling it again changes nothing."""
    find_version_here()
    find_literal_paths()
    watch_commands()


def find_version_here() -> None:
    """Make nbgrader find the version of a gradebook's tables in its own process.

    Otherwise nbgrader starts ``alembic`` for each new gradebook. This takes two seconds, and
    ``alembic`` must be on PATH.
    """
    from nbgrader import api

    api.get_alembic_version = newest_tables


def newest_tables() -> str:
    """Return the version of the tables that this nbgrader makes."""
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    assert head is not None
    return head


def find_literal_paths() -> None:
    """Make nbgrader find files below a folder with a name that ``glob`` reads as a pattern.

    nbgrader joins folders' names with patterns, so it would find nothing for a course in ``ML
    [2026]``.
    """
    for name in SEARCHING:
        module = importlib.import_module(f"nbgrader.{name}")
        module.glob = SimpleNamespace(glob=found)  # type: ignore[attr-defined]


def watch_commands() -> None:
    """Gather the log of nbgrader's commands in this process from now on (:mod:`.gathered_log`)."""
    from nbgrader.apps.baseapp import NbGrader

    original = NbGrader.start
    if getattr(original, "gathers", False):
        return

    def start(app: NbGrader) -> None:
        gather_log(app)
        original(app)

    start.gathers = True  # type: ignore[attr-defined]
    NbGrader.start = start
