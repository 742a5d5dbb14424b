"""The page of limits, from the constants that set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from hood.authoring import execute, lint
from hood.authoring.reference.layout import code, table
from hood.authoring.reference.sentences import (
    of_names,
    summary,
)
from hood.classroom.formats import tables
from hood.classroom.hand_ins import store, zip_collect
from hood.classroom.marking import book
from hood.classroom.rules import schema, standing
from hood.classroom.service import app
from hood.grader.execution import execute as execution
from hood.grader.inside import confinement, usage
from hood.grader.sandbox import limits
from hood.grader.submission import bounds, files, names, notebook
from hood.judge import verify
from hood.judge.connection import codec
from hood.judge.examples import example as examples
from hood.learner import service, whole_lab

# Modules with constants that are limits for users, in addition to the limits of a lab's sandbox.
BOUNDS: Mapping[str, Sequence[tuple[ModuleType, str]]] = {
    "Submissions": (
        (notebook, "MAX_BYTES"),
        (notebook, "MAX_CELLS"),
        (notebook, "MAX_TEXT"),
        (notebook, "MAX_VALUES"),
        (files, "MAX_FILES"),
        (files, "MAX_DEPTH"),
        (zip_collect, "SECONDS"),
        (bounds, "SECONDS"),
        (bounds, "MEMORY"),
    ),
    "Verdicts": (
        (confinement, "FILES"),
        (usage, "WAITS"),
        (codec, "MAX_DEPTH"),
        (codec, "MAX_ITEMS"),
        (codec, "MAX_RANK"),
        (codec, "MAX_BYTES"),
        (verify, "EXAMPLE_SECONDS"),
        (execution, "ALL_EXAMPLES_SECONDS"),
        (examples, "PARTS"),
        (whole_lab, "CELL_SECONDS"),
    ),
    "The service": (
        (service, "PATIENCE"),
        (app, "MAX_BODY"),
        (app, "MAX_CELLS"),
        (app, "LONGEST_WAIT"),
        (app, "MAX_NOTEBOOK"),
        (app, "MOST_ARRIVING"),
        (store, "MOST_A_DAY"),
        (store, "MOST_BYTES_A_DAY"),
    ),
    "A class": (
        (store, "MOST"),
        (store, "MOST_BYTES"),
        (standing, "MOST"),
        (schema, "MOST_DAYS"),
        (names, "LONGEST_ID"),
        (tables, "MAX_BYTES"),
        (tables, "MAX_COLUMNS"),
        (book, "MAX_REMARK"),
    ),
    "Lessons": (
        (execute, "CELL_SECONDS"),
        (execute, "LARGEST"),
        (lint, "WIDEST"),
        (lint, "MOST_WORDS"),
    ),
}


def fixed_limits(_root: Path) -> Iterator[str]:
    default = limits.Limits()
    yield "# Limits"
    yield "## The sandbox of a notebook"
    yield summary(limits.Limits)
    yield (
        f"A cell has {default.cell_seconds} seconds, unless the lab's header sets `cell_seconds`. "
        f"An interrupted cell has {default.grace} seconds to end before its kernel is killed. A "
        "lab can change the limits in the table below, with the key `limits` in "
        "[its header](lab.md#the-header-of-a-lab)."
    )
    yield from of_sandbox()
    yield "The limits in the tables below are fixed."
    for heading, bounded in BOUNDS.items():
        yield f"## {heading}"
        yield table(["at most", "what is limited", "constant"], map(bound, bounded))


def of_sandbox() -> Iterator[str]:
    said, default = of_names(limits, "UNITS"), limits.Limits()
    rows = (
        [code(name), f"{getattr(default, field) // unit:,}", said[name]]
        for name, (field, unit) in limits.UNITS.items()
    )
    yield table(["key of `limits`", "default", "meaning"], rows)


def bound(one: tuple[ModuleType, str]) -> list[str]:
    module, name = one
    place = module.__name__.replace(".", "/")
    return [f"{getattr(module, name):,.0f}", of_names(module)[name], f"`{name}` in `{place}.py`"]
