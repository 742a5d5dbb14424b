"""What is replaced in nbgrader, in this process, because nbgrader has no setting for it.

They are for the version of nbgrader below, which `pyproject.toml` pins. With another one a test
fails: compare what each of them replaces, then set the version here.
:mod:`hood.classroom.nbgrader.guard` replaces what needs a class to be known.
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
    """Replace what nbgrader's commands and formgrader need. Calling it again changes nothing."""
    find_version_here()
    find_literal_paths()
    watch_commands()


def find_version_here() -> None:
    """Let nbgrader find the version of a gradebook's tables in its own process.

    For each new gradebook nbgrader would start ``alembic``, which takes two seconds and has to be
    on PATH.
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
    """Let nbgrader find files below a folder whose name is a pattern to ``glob``.

    It joins folders' names with patterns, so in a course in ``ML [2026]`` it would find nothing.
    """
    for name in SEARCHING:
        module = importlib.import_module(f"nbgrader.{name}")
        module.glob = SimpleNamespace(glob=found)  # type: ignore[attr-defined]


def watch_commands() -> None:
    """Gather what nbgrader's commands log from here on in this process.

    It writes some five lines for each learner, among which nobody finds the one that matters.
    """
    from nbgrader.apps.baseapp import NbGrader

    original = NbGrader.start
    if getattr(original, "gathers", False):
        return

    def start(app: NbGrader) -> None:
        gather_log(app)
        original(app)

    start.gathers = True  # type: ignore[attr-defined]
    NbGrader.start = start
