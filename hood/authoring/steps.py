"""Build phases: read the texts, write the notebooks, copy edits back into the texts.

No edit in JupyterLab is lost silently. A built notebook has the fingerprints of its original cells.
These fingerprints show whether the text or the notebook has changed since the build. If only the
notebook changed, its cells are written into the text. If both the text and the notebook changed,
there is a conflict, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from hood.atomic_files import write_whole
from hood.authoring.digest import lesson_digest, other_versions, outputs_digest
from hood.authoring.execute import output_problems, run_page
from hood.authoring.lint import check_problems, lab_problems, page_problems
from hood.authoring.mentions import mention_problems
from hood.authoring.notebooks.folds import add_buttons, fold_answers, without_blank
from hood.authoring.notebooks.notebook import fingerprints, read, stamp, to_cells, to_notebook
from hood.authoring.notebooks.release import generate, holds_work
from hood.authoring.notebooks.text import (
    Problem,
    Refused,
    Text,
    TextCell,
    assemble,
    at,
    parse,
    refuse_if_any,
)
from hood.authoring.spelled_out import spelled_out
from hood.authoring.stated import lesson_problems, stated_problems, table_problems
from hood.course import course
from hood.lab_words import GRADED
from hood.manifest import versions
from hood.metadata import CELLS, EXECUTED, JUDGED, KEY, OUTPUTS, VERSIONS
from hood.notebook_file import to_bytes
from hood.phase_paths import START, PhasePaths, pages, phases
from hood.untrusted import mapping

Say = Callable[[str], None]


@dataclass(frozen=True)
class Texts:
    phase: PhasePaths
    lesson: Text | None
    lab: Text | None

    def pairs(self) -> Iterator[tuple[Text, Path]]:
        """Yield each text with the notebook that an instructor may have edited."""
        if self.lesson:
            yield self.lesson, self.phase.page
        if self.lab:
            yield self.lab, self.phase.source


def read_texts(phase: PhasePaths) -> Texts:
    lesson, lab = (
        parse(phase.relative(path), path.read_text(encoding="utf-8")) if path.exists() else None
        for path in (phase.lesson, phase.lab)
    )
    return Texts(phase, lesson, lab)


def text_problems(texts: Texts) -> Iterator[Problem]:
    """Yield all problems of a phase's texts, also of the texts together with the checks."""
    if texts.lesson:
        yield from page_problems(texts.lesson)
        yield from lesson_problems(texts.lesson, texts.phase.name)
        yield from mention_problems(texts.phase, texts.lesson)
    if not texts.lab:
        return
    yield from lab_problems(texts.lab)
    yield from stated_problems(texts.lab)
    yield from table_problems(texts.lab, texts.phase.name)
    yield from mention_problems(texts.phase, texts.lab)
    for text in filter(None, (texts.lesson, texts.lab)):
        yield from spelled_out(texts.lab, text)
    taken = exercises_elsewhere(texts.phase)
    for cell in texts.lab.cells:
        if (name := str(cell.header.get("test"))) in taken:
            yield at(
                texts.lab,
                cell,
                f"{taken[name]} has an exercise {name!r}, too: rename one of the two",
            )
    yield from checks_problems(texts, texts.lab)


def checks_problems(texts: Texts, lab: Text) -> Iterator[Problem]:
    """Yield the problems of a lab's checks and of their answers, without judging an answer."""
    from hood.authoring.answer_rules import answer_problems  # here, because it imports torch
    from hood.judge.catalogue import load_checks, place_of

    files = texts.phase.checks
    try:
        checks = load_checks(texts.phase.folder)
    except Exception as error:  # a file of checks may raise any error
        path, line = place_of(error, files)
        said = str(error).replace(f"{texts.phase.root}/", "")
        message = f"can't be loaded: {type(error).__name__}: {said}"
        yield Problem(texts.phase.relative(path), line, message)
        return
    yield from answer_problems(texts.phase, lab, texts.lesson, checks)
    code = {texts.phase.relative(path): path.read_text(encoding="utf-8") for path in files}
    yield from check_problems(lab, texts.lesson, checks, code)


def exercises_elsewhere(phase: PhasePaths) -> dict[str, str]:
    # exercises' names must be unique, because `check` finds an exercise only by name
    return {
        name: other.name
        for other in phases(phase.root)
        if other.name != phase.name and other.lab.exists()
        for name in GRADED.findall(other.lab.read_text(encoding="utf-8"))
    }


def build(chosen: Iterable[PhasePaths], say: Say, force: bool = False) -> None:
    """Build the phases' notebooks, or raise Refused with every problem of the texts.

    Notebooks are written only if all texts are right, and if the answers of each changed exercise
    earn the stated points. If a notebook has edits that its text lacks, the notebook is overwritten
    only with `force`. `force` also executes every lesson.
    """
    every = [read_texts(phase) for phase in chosen]
    refuse_if_any(p for texts in every for p in text_problems(texts))
    if not force:
        refuse_if_any(p for texts in every for p in edit_problems(texts))
    refuse_if_any(p for texts in every for p in exercise_problems(texts, say))
    build_labs([texts for texts in every if texts.lab], say, force)
    problems: list[Problem] = []
    for texts in every:
        if texts.lesson:
            try:
                build_page(texts.phase, texts.lesson, say, force)
            except Refused as refused:
                problems += refused.problems
    refuse_if_any(problems)


def exercise_problems(texts: Texts, say: Say) -> Iterator[Problem]:
    """Judge the answers of changed exercises; yield a problem for each unexpected result."""
    if texts.lab:
        from hood.authoring.judged import judged_problems  # here, because it imports torch

        yield from judged_problems(texts.phase, texts.lab, say)


def edit_problems(texts: Texts) -> Iterator[Problem]:
    for text, path in texts.pairs():
        shown = texts.phase.relative(path)
        try:
            notebook = read(path)
            lost = notebook is not None and edited(text, notebook, shown) is not None
        except Refused:
            lost = True
        except ValueError as error:
            yield Problem(shown, 0, f"{error}; delete it, or build --force")
            continue
        if lost:
            message = (
                f"has edits that {text.path} does not have: copy them into the text with "
                "`build --from-notebooks`, or drop them with `build --force`"
            )
            yield Problem(shown, 0, message)


def build_labs(labs: list[Texts], say: Say, force: bool = False) -> None:
    """Write the instructor's and the learner's notebook of every lab.

    A release with answers is kept unless `force` is set, because a learner and an instructor may
    share a folder.
    """
    if not labs:
        return
    from hood.authoring.judged import digests  # here, because it imports torch

    sources: dict[str, bytes] = {}
    for texts in labs:
        if texts.lab:
            notebook = to_notebook(texts.lab)
            notebook.metadata[KEY] |= {JUDGED: digests(texts.phase)}
            sources[texts.phase.name] = to_bytes(notebook)
    releases = generate(sources, labs[0].phase.root)
    for texts in labs:
        phase = texts.phase
        say(write(phase, phase.source, sources[phase.name]))
        if holds_work(phase.release) and not force:
            shown = phase.relative(phase.release)
            say(f"{shown}: kept, because somebody has worked in it (`build --force` replaces it)")
        else:
            say(write(phase, phase.release, releases[phase.name]))


def build_page(phase: PhasePaths, text: Text, say: Say, force: bool) -> None:
    """Write the executed notebook of a lesson; execute it only if its outputs may have changed."""
    notebook = to_notebook(text)
    digest, executed = page_digest(phase, text), versions(phase.root)
    built = None if force else read(phase.page)
    said = {} if built is None else stamp(built)
    if (
        built is not None
        and same_cells(notebook, built)
        and (said.get(EXECUTED), said.get(OUTPUTS)) == (digest, outputs_digest(built))
        and not other_versions(mapping(said.get(VERSIONS)), phase.root)
    ):
        executed = said[VERSIONS]
        for mine, theirs in zip(notebook.cells, built.cells, strict=True):
            if mine.cell_type == "code":
                mine.outputs = without_blank(theirs.outputs)
                mine.execution_count = theirs.execution_count
    else:
        say(f"{phase.relative(phase.page)}: executing")
        run_page(notebook, text, phase.root)
    fold_answers(notebook)
    if phase.name != START:
        add_buttons(notebook)
    notebook.metadata[KEY] |= {
        EXECUTED: digest,
        OUTPUTS: outputs_digest(notebook),
        VERSIONS: executed,
    }
    content = to_bytes(notebook)
    refuse_if_any(output_problems(text, notebook, len(content)))
    say(write(phase, phase.page, content))


def page_digest(phase: PhasePaths, text: Text) -> str:
    others = []
    if phase.name == START:  # it lists every phase with its hours, and which notebooks there are
        others = [" ".join([other.name, *other.texts()]) for other in pages(phase.root)]
        others += map(repr, course(phase.root).phases)
    return lesson_digest(text, phase.root, others)


def same_cells(expected: NotebookNode, found: NotebookNode) -> bool:
    wanted, got = ([(c.cell_type, c.source) for c in nb.cells] for nb in (expected, found))
    return wanted == got


def write(phase: PhasePaths, path: Path, content: bytes) -> str:
    done = "written" if write_whole(path, content) else "up to date"
    return f"{phase.relative(path)}: {done}"


def bring_home(chosen: Iterable[PhasePaths], say: Say) -> None:
    """Write edits of built notebooks into the texts; if an edit is refused, write nothing."""
    problems: list[Problem] = []
    changed: list[tuple[PhasePaths, Path, str, Path, NotebookNode]] = []
    for phase in chosen:
        for text, path in read_texts(phase).pairs():
            problems += text.problems
            try:
                notebook = read(path)
                content = notebook and edited(text, notebook, phase.relative(path))
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
        # so that the next build recognises later edits of the notebook
        notebook.metadata[KEY][CELLS] = fingerprints(parse(str(text_path), content).cells)
        write(phase, path, to_bytes(notebook))
    if not changed:
        say("no notebook has edits that are missing in its text")


def edited(text: Text, notebook: NotebookNode, path: str) -> str | None:
    """Return the text with the notebook's edits; None when there is no edit to copy.

    Raises Refused on a conflict, for a notebook that was not built from this text, and for cells
    that a text cannot have.
    """
    cells, problems = to_cells(path, notebook)
    base = str(stamp(notebook).get(CELLS, ""))
    now, said = fingerprints(cells), fingerprints(text.cells)
    if not problems and now in (base, said):
        return None
    if not base:
        message = "was not built from a text, so its edits cannot be found"
        problems.append(Problem(path, 0, message))
    refuse_if_any(problems)
    if said != base:
        message = (
            f"this text and {path} both changed since the last build; nothing was written\n"
            f"    {text.path}: {changes(base, text.cells)}\n"
            f"    {path}: {changes(base, cells)}\n"
            "    copy the changes of one file into the other file, or drop the notebook's changes: "
            "build --force"
        )
        raise Refused([Problem(text.path, 0, message)])
    content = assemble(text, cells)
    again = parse(text.path, content).cells
    if fingerprints(again) != now:
        message = f"the text can't store these cells unchanged: {changes(now, again)}"
        raise Refused([Problem(path, 0, message)])
    return content


def changes(base: str, cells: Sequence[TextCell]) -> str:
    """Describe in a few words the cells with a fingerprint that is not in `base`."""
    new = [
        f"cell {number} {cell.source[:50].partition(chr(10))[0]!r}"
        for number, cell in enumerate(cells, start=1)
        if cell.fingerprint not in base.split()
    ]
    return f"changed: {', '.join(new)}" if new else "cells were removed or moved"
