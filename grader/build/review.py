"""`build --check`: report where texts and committed notebooks differ, without changing anything.

No lesson is executed and no file is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grader.build.compare import differences
from grader.build.execute import output_problems, size_problems
from grader.build.notebook import read, stamp, to_bytes, to_notebook
from grader.build.problems import Problem, Refused
from grader.build.release import generate
from grader.build.steps import (
    Texts,
    page_digest,
    read_texts,
    same_cells,
    text_problems,
)
from grader.build.text import Text
from grader.metadata import EXECUTED
from grader.phase_paths import PhasePaths

REBUILD = "run `python -m grader build`"


def problems(chosen: Iterable[PhasePaths], whole: bool = False) -> list[Problem]:
    """Return a problem for each difference between texts and committed notebooks.

    Args:
        whole: whether to look for built notebooks without a text, too.
    """
    every: list[Problem] = []
    sound: list[Texts] = []
    chosen = list(chosen)
    for phase in chosen:
        texts = read_texts(phase)
        found = list(text_problems(texts))
        every += found
        if texts.lesson:
            every += page_problems_of(phase, phase.page, to_notebook(texts.lesson), texts.lesson)
        if texts.lab and not found:
            sound.append(texts)
    every += lab_differences(sound)
    if whole and chosen:
        every += orphans(chosen)
    return sorted(set(every))


def lab_differences(labs: list[Texts]) -> Iterator[Problem]:
    """Yield where committed labs and releases differ from what the texts and nbgrader make."""
    if not labs:
        return
    expected = {texts.phase.name: to_notebook(texts.lab) for texts in labs if texts.lab}
    sources = {name: to_bytes(notebook) for name, notebook in expected.items()}
    for texts in labs:
        yield from page_problems_of(texts.phase, texts.phase.source, expected[texts.phase.name])
    try:
        releases = generate(sources, labs[0].phase.root)
    except Refused as refused:
        yield from refused.problems
        return
    for texts in labs:
        released = nbformat.reads(releases[texts.phase.name].decode(), as_version=4)
        yield from page_problems_of(texts.phase, texts.phase.release, released)


def page_problems_of(
    phase: PhasePaths, path: Path, expected: NotebookNode, lesson: Text | None = None
) -> Iterator[Problem]:
    """Compare a committed notebook with what its text builds, and check the outputs of a lesson."""
    shown = phase.relative(path)
    try:
        found = read(path)
    except ValueError as error:
        yield Problem(shown, 0, str(error))
        return
    if found is None:
        yield Problem(shown, 0, f"is missing: {REBUILD}")
        return
    for sentence in differences(expected, found, outputs=lesson is not None):
        yield Problem(shown, 0, sentence)
    if lesson is None or not same_cells(expected, found):
        return
    yield from output_problems(lesson, found)
    yield from size_problems(lesson, path.stat().st_size)
    if stamp(found).get(EXECUTED) != page_digest(phase, lesson):
        yield Problem(shown, 0, f"was executed before its text or its utils changed: {REBUILD}")


def orphans(known: list[PhasePaths]) -> Iterator[Problem]:
    """Yield a problem for each notebook with the build's stamp that no text builds."""
    root = known[0].root
    expected = {path for phase in known for path in (phase.page, phase.source, phase.release)}
    for pattern in ("notebooks/*.ipynb", "source/*/*.ipynb", "release/*/*.ipynb"):
        for path in sorted(root.glob(pattern)):
            if path in expected:
                continue
            try:
                notebook = read(path)
                built = notebook and stamp(notebook)
            except ValueError:
                continue
            if built:
                yield Problem(known[0].relative(path), 0, "no text builds it any more: delete it")
