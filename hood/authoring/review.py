"""`build --check`: report where texts and committed notebooks differ, without changing anything.

No lesson is executed and no file is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from hood.authoring.digest import other_versions
from hood.authoring.execute import output_problems
from hood.authoring.notebooks.notebook import read, stamp, to_notebook
from hood.authoring.notebooks.release import generate
from hood.authoring.notebooks.text import Problem, Refused, Text
from hood.authoring.steps import page_digest, read_texts, same_cells, text_problems
from hood.metadata import CELLS, EXECUTED, JUDGED, KEY, OUTPUTS, VERSIONS
from hood.notebook_file import to_bytes
from hood.phase_paths import PhasePaths
from hood.untrusted import mapping

REBUILD = "run `python -m hood build`"
FEW = 12  # lines of a difference are shown
# The keys of a cell's metadata that the build writes. JupyterLab writes other keys there.
METADATA = ("nbgrader", "tags", "deletable", "editable")


def problems(chosen: Iterable[PhasePaths], whole: bool = False) -> list[Problem]:
    """Return a problem for each difference between texts and committed notebooks.

    With `whole`, a built notebook without a text is also a problem.
    """
    found: list[Problem] = []
    sources: dict[PhasePaths, NotebookNode] = {}
    chosen = list(chosen)
    for phase in chosen:
        texts = read_texts(phase)
        wrong = list(text_problems(texts))
        found += wrong
        if texts.lesson:
            found += differences(phase, phase.page, to_notebook(texts.lesson), texts.lesson)
        if texts.lab and not wrong:
            from hood.authoring.judged import unjudged_problems  # here, because it imports torch

            found += unjudged_problems(phase, texts.lab)
            sources[phase] = to_notebook(texts.lab)
            found += differences(phase, phase.source, sources[phase])
    try:
        if sources:
            made = {phase.name: to_bytes(notebook) for phase, notebook in sources.items()}
            releases = generate(made, chosen[0].root)
            for phase in sources:
                released = nbformat.reads(releases[phase.name].decode(), as_version=4)
                found += differences(phase, phase.release, released)
    except Refused as refused:
        found += refused.problems
    if whole and chosen:
        found += orphans(chosen)
    return sorted(set(found))


def differences(
    phase: PhasePaths, path: Path, expected: NotebookNode, lesson: Text | None = None
) -> Iterator[Problem]:
    """Compare a committed notebook with a new build of its text. Check a lesson's outputs, too."""
    shown = phase.relative(path)
    try:
        found = read(path)
    except ValueError as error:
        yield Problem(shown, 0, str(error))
        return
    if found is None:
        yield Problem(shown, 0, f"is missing: {REBUILD}")
        return
    wanted, got = (as_lines(notebook, lesson is None) for notebook in (expected, found))
    mine, theirs = ([line for _, line in lines] for lines in (wanted, got))
    diff: list[str] = []
    for same, start, end, got_start, got_end in SequenceMatcher(None, mine, theirs).get_opcodes():
        if same != "equal":
            diff += [f"-{cell}: {line}" for cell, line in wanted[start:end]]
            diff += [f"+{cell}: {line}" for cell, line in got[got_start:got_end]]
    if diff:
        message = (
            "is not what its text builds. Lines with - are in the text, and lines with + are in "
            "the notebook:"
        )
        yield Problem(shown, 0, "\n    ".join([message, *diff[:FEW]]))
    if lesson is None or not same_cells(expected, found):
        return
    yield from output_problems(lesson, found, path.stat().st_size)
    if stamp(found).get(EXECUTED) != page_digest(phase, lesson):
        yield Problem(shown, 0, f"was executed before its text or its imports changed: {REBUILD}")
    if not (before := mapping(stamp(found).get(VERSIONS))):
        yield Problem(shown, 0, f"does not say with which packages it was executed: {REBUILD}")
    elif other := other_versions(before, phase.root):
        named = ", ".join(f"{was} (now {now})" for was, now in other)
        yield Problem(shown, 0, f"was executed with {named}: {REBUILD}")


def as_lines(notebook: NotebookNode, with_outputs: bool) -> list[tuple[str, str]]:
    """Return the lines of a notebook's settings, and of each cell's metadata and source.

    Each line comes with its place.
    """
    kernel, course = notebook.metadata.get("kernelspec", {}), stamp(notebook)
    for key in (CELLS, EXECUTED, JUDGED, OUTPUTS, VERSIONS):
        course.pop(key, None)
    lines = [("metadata", json.dumps({"kernelspec": kernel, KEY: course}, sort_keys=True))]
    for number, cell in enumerate(notebook.cells, start=1):
        own: dict[str, Any] = {"id": cell.id, "type": cell.cell_type}
        own |= {
            key: cell.metadata[key] for key in METADATA if cell.metadata.get(key) not in (None, [])
        }
        if with_outputs and (cell.get("outputs") or cell.get("execution_count") is not None):
            own["holds"] = "outputs"
        said = [json.dumps(own, sort_keys=True), *cell.source.split("\n")]
        lines += [(f"cell {number}", line) for line in said]
    return lines


def orphans(known: list[PhasePaths]) -> Iterator[Problem]:
    """Yield a problem for each built notebook that no longer has a text."""
    root = known[0].root
    expected = {path for phase in known for path in (phase.page, phase.source, phase.release)}
    for pattern in ("notebooks/*.ipynb", "source/*/*.ipynb", "release/*/*.ipynb"):
        for path in set(root.glob(pattern)) - expected:
            try:
                notebook = read(path)
            except ValueError:
                continue
            if notebook is not None and stamp(notebook):
                yield Problem(known[0].relative(path), 0, "no text builds it any more: delete it")
