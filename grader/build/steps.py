"""Build phases: read the texts, write the notebooks, copy edits back into the texts."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from grader.build import home
from grader.build.agreement import check_problems, name_problems
from grader.build.digest import lesson_digest, outputs_digest
from grader.build.execute import output_problems, run_page, size_problems
from grader.build.notebook import read, stamp, to_bytes, to_notebook
from grader.build.predictions import fold_answers, without_blank
from grader.build.problems import Problem, Refused, refuse_if_any
from grader.build.release import generate, holds_work
from grader.build.rules import lab_problems, page_problems
from grader.build.run_above import add_buttons
from grader.build.text import Text, parse
from grader.metadata import EXECUTED, KEY, OUTPUTS
from grader.phase_paths import START, PhasePaths, pages, phases
from grader.whole_file import write_whole

Say = Callable[[str], None]
# the marker of a test cell, of which the exercise's name is wanted
TEST = re.compile(r'^# %%.*\btest="([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Texts:
    """A phase and its parsed texts."""

    phase: PhasePaths
    lesson: Text | None
    lab: Text | None

    def pairs(self) -> Iterator[tuple[Text, Path]]:
        """Yield each text with its notebook that an instructor may have edited."""
        if self.lesson:
            yield self.lesson, self.phase.page
        if self.lab:
            yield self.lab, self.phase.source


def read_texts(phase: PhasePaths) -> Texts:
    """Parse the texts of a phase."""

    def text_of(path: Path) -> Text | None:
        if not path.exists():
            return None
        return parse(phase.relative(path), path.read_text(encoding="utf-8"))

    return Texts(
        phase,
        text_of(phase.lesson),
        None if phase.name == START or phase.language else text_of(phase.lab),
    )


def text_problems(texts: Texts) -> Iterator[Problem]:
    """Yield everything that is wrong with a phase's texts, and where they do not fit its checks."""
    if texts.lesson:
        yield from page_problems(texts.lesson)
    if not texts.lab:
        return
    from grader.judging.catalogue import load_checks  # here, because it imports torch

    yield from lab_problems(texts.lab)
    yield from name_problems(texts.lab, exercises_elsewhere(texts.phase))
    shown = {str(path): texts.phase.relative(path) for path in texts.phase.checks}
    try:
        checks = load_checks(texts.phase.folder)
    except Exception as error:  # a file of checks may raise any error
        frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError):
            frames.append((str(error.filename), error.lineno))
        first = (next(iter(shown)), 1)
        path, line = next((f for f in reversed(frames) if f[0] in shown), first)
        message = f"can't be loaded: {type(error).__name__}: {error}"
        yield Problem(shown[path], line or 1, message)
        return
    code = {shown[str(path)]: path.read_text(encoding="utf-8") for path in texts.phase.checks}
    yield from check_problems(texts.lab, texts.lesson, checks, code)


def exercises_elsewhere(phase: PhasePaths) -> dict[str, str]:
    """Return the names of the other labs' exercises, with the name of the phase."""
    return {
        name: other.name
        for other in phases(phase.root)
        if other.name != phase.name and other.lab.exists()
        for name in TEST.findall(other.lab.read_text(encoding="utf-8"))
    }


def build(chosen: Iterable[PhasePaths], say: Say, force: bool = False) -> None:
    """Build the phases' notebooks.

    All texts are checked first; when one is refused, nothing is written. A notebook with edits that
    its text does not have is not overwritten unless `force` is set.

    Args:
        force: whether to execute every lesson, and to overwrite edits and answers.

    Raises:
        Refused: with every problem that was found.
    """
    every = [read_texts(phase) for phase in chosen]
    refuse_if_any(p for texts in every for p in text_problems(texts))
    if not force:
        refuse_if_any(p for texts in every for p in edit_problems(texts))
    build_labs([texts for texts in every if texts.lab], say, force)
    problems: list[Problem] = []
    for texts in every:
        if texts.lesson:
            try:
                build_page(texts.phase, texts.lesson, say, force)
            except Refused as refused:
                problems += refused.problems
    refuse_if_any(problems)


def edit_problems(texts: Texts) -> Iterator[Problem]:
    """Yield a problem for each built notebook whose edits a build would lose."""
    for text, path in texts.pairs():
        shown = texts.phase.relative(path)
        try:
            notebook = read(path)
        except ValueError as error:
            yield Problem(shown, 0, f"{error}; delete it, or build --force")
            continue
        if notebook is not None and home.is_edited(notebook, shown, text):
            yield Problem(
                shown,
                0,
                f"holds edits that {text.path} does not: copy them into the text with "
                "`build --from-notebooks`, or drop them with `build --force`",
            )


def build_labs(labs: list[Texts], say: Say, force: bool = False) -> None:
    """Write the instructor's and the learner's notebook of every lab.

    A release in which a learner has begun to answer is kept unless `force` is set, because learner
    and instructor may share a folder.
    """
    if not labs:
        return
    root = labs[0].phase.root
    sources = {texts.phase.name: to_bytes(to_notebook(texts.lab)) for texts in labs if texts.lab}
    releases = generate(sources, root)
    for texts in labs:
        phase = texts.phase
        say(write(phase, phase.source, sources[phase.name]))
        if holds_work(phase.release) and not force:
            shown = phase.relative(phase.release)
            say(f"{shown}: kept, somebody has been working in it (`build --force` replaces it)")
        else:
            say(write(phase, phase.release, releases[phase.name]))


def build_page(phase: PhasePaths, text: Text, say: Say, force: bool) -> None:
    """Write the executed notebook of a lesson; execute it only if its outputs may have changed."""
    notebook = to_notebook(text)
    digest = page_digest(phase, text)
    built = None if force else read(phase.page)
    if built is not None and is_current(built, notebook, digest):
        keep_outputs(notebook, built)
    else:
        say(f"{phase.relative(phase.page)}: executing")
        run_page(notebook, text, phase.root)
    fold_answers(notebook)
    if phase.name != START:
        add_buttons(notebook)
    notebook.metadata[KEY] |= {EXECUTED: digest, OUTPUTS: outputs_digest(notebook)}
    content = to_bytes(notebook)
    refuse_if_any([*output_problems(text, notebook), *size_problems(text, len(content))])
    say(write(phase, phase.page, content))


def page_digest(phase: PhasePaths, text: Text) -> str:
    """Return a digest of everything that the page's outputs depend on.

    The start page lists every phase, so its digest covers the list of phases, too.
    """
    others = []
    if phase.name == START:
        others = [" ".join([other.name, *other.texts()]) for other in pages(phase.root)]
    return lesson_digest(text, phase.root, others)


def is_current(built: NotebookNode, expected: NotebookNode, digest: str) -> bool:
    """Return whether a built lesson has the build's own outputs, made from the same sources."""
    said = stamp(built)
    return (
        same_cells(expected, built)
        and said.get(EXECUTED) == digest
        and said.get(OUTPUTS) == outputs_digest(built)
    )


def same_cells(expected: NotebookNode, found: NotebookNode) -> bool:
    """Return whether cell types and sources are equal, so that outputs can be copied."""
    return [(c.cell_type, c.source) for c in expected.cells] == [
        (c.cell_type, c.source) for c in found.cells
    ]


def keep_outputs(notebook: NotebookNode, built: NotebookNode) -> None:
    """Copy outputs and execution counts from the notebook that was executed before."""
    for mine, theirs in zip(notebook.cells, built.cells, strict=True):
        if mine.cell_type == "code":
            mine.outputs = without_blank(theirs.outputs)
            mine.execution_count = theirs.execution_count


def write(phase: PhasePaths, path: Path, content: bytes) -> str:
    """Write a file if its bytes change, and return a message about it."""
    done = "written" if write_whole(path, content) else "up to date"
    return f"{phase.relative(path)}: {done}"


def bring_home(chosen: Iterable[PhasePaths], say: Say) -> None:
    """Write edits of built notebooks into the texts: all of them, or none when one is refused."""
    problems: list[Problem] = []
    changed: list[tuple[PhasePaths, Path, str, Path, NotebookNode]] = []
    for phase in chosen:
        for text, path in read_texts(phase).pairs():
            try:
                problems += text.problems
                notebook = read(path)
                content = notebook and home.bring_home(text, notebook, phase.relative(path))
            except Refused as refused:
                problems += refused.problems
            except ValueError as error:
                problems.append(Problem(phase.relative(path), 0, str(error)))
            else:
                if content and notebook:
                    changed.append((phase, phase.root / text.path, content, path, notebook))
    refuse_if_any(problems)
    for phase, text_path, content, path, notebook in changed:
        say(write(phase, text_path, content.encode()))
        stamped = home.restamped(notebook, parse(phase.relative(text_path), content))
        write(phase, path, to_bytes(stamped))
    if not changed:
        say("no notebook holds an edit that its text does not")
