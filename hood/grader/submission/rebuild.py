"""Rebuild a submission from the lab's source and the learner's answers.

The result is always a complete, valid notebook of the lab, for any submission:

- Owned cells (graded, locked, task, solution) are the cells that nbgrader keeps in its gradebook.
  Each owned cell occurs once, in the source's order, with the source's text, type, metadata and
  points.
- The text of a solution cell is the learner's text in the cell with the same ``grade_id``.
- If a learner adds text to a cell that is not an answer, such as a question or the imports, the
  added text moves to a separate cell beside it. The separate cell belongs to the learner; the
  lab's cell is not changed.
- The learner's other cells keep their place after the owned cell that they followed.
- Text from an earlier release counts as the lab's text too
  (:mod:`hood.grader.submission.released`). If a question has an earlier text, it gets the current
  text.
- The learner's metadata, tags and outputs are left out.
- For a submission that cannot be read at all, the result is the lab as released, and a message.

Each repair is described in a note and in a cell at the top of the notebook.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import (
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from nbgrader.utils import is_grade, is_solution
from traitlets.config import Config

from hood.grader.submission.additions import additions, names_in
from hood.grader.submission.notebook import SubmittedCell, Unreadable, read_submission
from hood.grader.submission.notes import Note, NoteKind, quoted, record, some, unreadable
from hood.grader.submission.released import Ours, Texts, is_owned, texts_of
from hood.learner.cell_matching import added, in_words, normal
from hood.metadata import KEY, MAY_RAISE

# nbgrader's steps from a source to the gradebook's version, and from there to the learners'
# version.
RECORDED = (LockCells, ClearSolutions, ClearOutput, ComputeChecksums)
RELEASED = (ClearHiddenTests, ClearMarkScheme)
STEPS = (*RECORDED, *RELEASED)
LEARNERS = (*RELEASED, ComputeChecksums)
# Points are not compared. Points come from the source; an earlier release may have had other
# points.
SETTINGS = ("grade", "solution", "locked", "task")
FOREIGN = Note(
    NoteKind.FOREIGN,
    "No answer to this lab was found in the notebook, so the lab was graded as it was "
    "released. Did you hand in the wrong notebook?",
)
UNMARKED = Note(
    NoteKind.UNMARKED,
    "The cells of this lab had lost their ids. Your code was used wherever it defines the "
    "name that an exercise requires.",
)
WRITTEN_ELSEWHERE = "# This cell was missing; its answer is in another cell."


class Rebuilt(NamedTuple):
    """A notebook ready for grading, and notes on repairs."""

    nb: NotebookNode
    notes: list[Note]


def rebuild(
    submitted: bytes | Unreadable,
    source_nb: NotebookNode,
    config: Config | None = None,
    notes: Sequence[Note] = (),
    earlier: Texts | None = None,
) -> Rebuilt:
    """Return the lab with the learner's answers in it.

    ``submitted`` has the file's bytes, or the reason why it is unreadable. ``source_nb`` is the
    instructor's version, with solutions and hidden tests. ``config`` has nbgrader's settings, and
    its ``ClearSolutions`` decides what a stub looks like. ``notes`` are earlier notes on the
    submission, which come first in the result. ``earlier`` has the texts of earlier releases.
    """
    master = as_recorded(source_nb, config)
    python = ""
    try:
        if isinstance(submitted, Unreadable):
            raise submitted
        theirs = read_submission(submitted)
        python = theirs.python
        ours = Ours(texts_of(_after(LEARNERS, master, config)), earlier or {})
        cells, found = _answers(theirs, master, ours)
    except Unreadable as reason:
        cells = copy.deepcopy(master.cells)
        found = [unreadable(str(reason))]
    found = [*notes, *found]
    nb = _notebook(master, cells, found)
    record(nb, notes=found, python=python)
    return Rebuilt(nb, found)


def as_recorded(source_nb: NotebookNode, config: Config | None = None) -> NotebookNode:
    """Return the source in the form of nbgrader's gradebook: with stubs and hidden tests."""
    return _after(RECORDED, source_nb, config)


def _after(steps: Sequence[Any], nb: NotebookNode, config: Config | None) -> NotebookNode:
    nb = copy.deepcopy(nb)
    resources: dict[str, Any] = {}
    for step in steps:
        nb, resources = step(config=config).preprocess(nb, resources)
    return nb


def released_texts(source_nb: NotebookNode, config: Config | None = None) -> Texts:
    """Return the texts of the learners' version of the lab."""
    return texts_of(_after((*RECORDED, *LEARNERS), source_nb, config))


def _answers(
    submitted: list[SubmittedCell], master: NotebookNode, ours: Ours
) -> tuple[list[NotebookNode], list[Note]]:
    owned = {c.metadata.nbgrader.grade_id: c for c in master.cells if is_owned(c)}
    chosen, found = _choose(submitted, owned, ours)
    theirs = {i for i, cell in owned.items() if is_grade(cell) or is_solution(cell)}
    foreign = not chosen.keys() & theirs if theirs else not chosen
    if foreign and owned:  # some names, such as `setup`, are in all labs
        chosen, found = {}, [FOREIGN]
    place = {position: grade_id for grade_id, position in chosen.items()}
    following = _own_cells(submitted, place, master, ours)
    edited = {
        grade_id: _edits(submitted[position], owned[grade_id], ours)
        for grade_id, position in chosen.items()
        if not is_solution(owned[grade_id])
    }
    defined = set[str]()  # names from learners' own cells, for missing answer cells
    if any(is_solution(cell) for grade_id, cell in owned.items() if grade_id not in chosen):
        own = [_own_cell(cell) for i, cell in enumerate(submitted) if i not in place]
        own += [cell for edits in edited.values() for cell in (*edits.above, *edits.below)]
        defined = defined.union(*(names_in(c.source) for c in own if c.cell_type == "code"))
    cells = following.pop(None, [])
    for grade_id, cell in owned.items():
        cell, above, below = copy.deepcopy(cell), [], following.pop(grade_id, [])
        if grade_id in chosen:
            answer = submitted[chosen[grade_id]]
            if is_solution(cell):
                # An older release's stub is not an answer. In a cell that a person marks, the stub
                # is not used. In other cells, a check finds out that the stub is not an answer.
                if not (is_grade(cell) and ours.has(grade_id, answer.source)):
                    cell.source = answer.source
                    _attach(answer, cell)
            else:
                above, below = edited[grade_id].above, [*edited[grade_id].below, *below]
                found += edited[grade_id].notes
            found += _metadata_notes(grade_id, answer, cell)
        else:
            elsewhere = is_solution(cell) and not defined.isdisjoint(names_in(cell.source))
            if elsewhere:
                cell.source = WRITTEN_ELSEWHERE
                found = [UNMARKED if note is FOREIGN else note for note in found]
            if chosen:
                used = "the code in your other cells was used"
                what = used if elsewhere else "it was put back as released"
                found.append(_note(NoteKind.MISSING, grade_id, f"was missing; {what}"))
        cells += [*above, cell, *below]
    return cells, found


class _Edits(NamedTuple):
    """Cells with the text that a learner added to a cell of the lab, and notes on that text."""

    above: list[NotebookNode]
    below: list[NotebookNode]
    notes: list[Note]


def _edits(answer: SubmittedCell, cell: NotebookNode, ours: Ours) -> _Edits:
    grade_id, notes = cell.metadata.nbgrader.grade_id, []
    above, below, intact = "", "", ours.is_untouched(grade_id, answer)
    released = "" if intact else ours.start_of(grade_id, answer.source)
    if cell.cell_type == "code" and not intact:
        above, below, intact = additions(answer.source, released)
        if not is_grade(cell):  # only a test may need code above it
            above, below = "", "\n".join(filter(None, [above, below]))
    elif cell.cell_type == "markdown" and not intact:
        answer, below = (
            replace(answer, kind="markdown"),
            added(in_words(answer.source), in_words(released)),
        )
        intact = bool(below)
    if not intact:
        notes.append(_note(NoteKind.CHANGED, grade_id, "was edited; the original was used"))
    where = " and ".join(word for word, kept in (("above", above), ("below", below)) if kept)
    if where:
        said = f"The text that you added to the cell `{grade_id}` is now in a cell {where} it."
        notes.append(Note(NoteKind.MOVED, said, grade_id))

    def own(code: str) -> list[NotebookNode]:
        return [_own_cell(replace(answer, source=code))] if code else []

    return _Edits(own(above), own(below), notes)


def _choose(
    submitted: list[SubmittedCell], owned: dict[str, NotebookNode], ours: Ours
) -> tuple[dict[str, int], list[Note]]:
    """Choose a submitted cell for each owned cell: return ``{grade_id: position}``, and notes."""
    found: dict[str, list[int]] = {}
    notes = []
    for position, cell in enumerate(submitted):
        if cell.grade_id in owned:
            found.setdefault(cell.grade_id, []).append(position)
        elif cell.grade_id:
            said = (
                f"A cell has the id {quoted(cell.grade_id)}, but this lab has no such id. The cell "
                "was kept as an ordinary cell."
            )
            notes.append(Note(NoteKind.UNKNOWN, said))
    chosen = {grade_id: positions[0] for grade_id, positions in found.items()}
    order = list(owned)
    for grade_id, positions in found.items():
        if len(positions) == 1:
            continue
        if is_solution(owned[grade_id]):
            after = [
                chosen[later]
                for later in order[order.index(grade_id) :]
                if later in chosen and not is_solution(owned[later]) and is_grade(owned[later])
            ]
            test = after[0] if after else len(submitted)
            # The learner's test used the copy that was defined last: the last copy above the test.
            worked_on = [p for p in positions if not ours.has(grade_id, submitted[p].source)]
            above = [p for p in worked_on if p < test]
            chosen[grade_id] = (above or worked_on or positions)[-1]
            used = (
                "The last changed copy above the exercise's graded cell was graded. Other changed "
                "copies were kept as ordinary cells, and untouched copies were left out"
            )
        else:
            used = "The graded notebook has the original once"
        what = f"occurred {len(positions)} times. {used}"
        notes.append(_note(NoteKind.COPIED, grade_id, what))
    return chosen, notes


def _note(kind: NoteKind, grade_id: str, what: str) -> Note:
    return Note(kind, f"The cell `{grade_id}` {what}.", grade_id)


def _metadata_notes(grade_id: str, came: SubmittedCell, cell: NotebookNode) -> list[Note]:
    """Return notes on a learner's changes to the type, settings or tags of an owned cell."""
    notes = []
    if came.kind != cell.cell_type:
        what = f"had become a {came.kind} cell; it was read as a {cell.cell_type} cell"
        notes.append(_note(NoteKind.RETYPED, grade_id, what))
    ours, theirs = cell.metadata.nbgrader, came.settings
    if any(theirs.get(key) != ours.get(key) for key in SETTINGS if key in theirs):
        said = f"The grading settings of the cell `{grade_id}` were changed; the original settings"
        notes.append(Note(NoteKind.SETTINGS, f"{said} were used.", grade_id))
    released = {*cell.metadata.get("tags", []), MAY_RAISE}  # every release has MAY_RAISE
    tags = [tag for tag in came.tags if tag not in released]
    if tags:
        said = f"Tags of the cell `{grade_id}` were removed: {some(tags)}."
        notes.append(Note(NoteKind.TAGS, said, grade_id))
    return notes


def _own_cells(
    submitted: list[SubmittedCell],
    place: dict[int, str],
    master: NotebookNode,
    ours: Ours,
) -> dict[str | None, list[NotebookNode]]:
    """Return the other cells; the key is the owned cell that they follow, or None if there is none.

    The lab's cells are not marked as a learner's cells. Code of an earlier release stays, because a
    learner's code may need it. Text of an earlier release is replaced by the current text.
    """
    answers = {c.metadata.nbgrader.grade_id for c in master.cells if is_solution(c)}
    of_source: dict[str, tuple[NotebookNode, str | None]] = {}  # each with the owned cell before it
    words: dict[str | None, list[NotebookNode]] = {}  # the lab's texts, by the owned cell before
    after: str | None = None
    for cell in master.cells:
        if is_owned(cell):
            after = cell.metadata.nbgrader.grade_id
        else:
            of_source.setdefault(normal(cell.source), (cell, after))
            if cell.cell_type != "code":
                words.setdefault(after, []).append(cell)
    present = set(place.values())
    following: dict[str | None, list[NotebookNode]] = {}
    gaps: dict[str | None, int] = {}  # position of an earlier release's first text
    after = None
    for position, cell in enumerate(submitted):
        if position in place:
            after = place[position]
            continue
        if cell.grade_id and cell.grade_id in answers and ours.has(cell.grade_id, cell.source):
            continue  # an untouched copy: below the answer, it would overwrite the answer
        original, follows = of_source.get(normal(cell.source), (None, None))
        if follows is not None and follows not in present:
            after = follows  # the owned cell above this cell was deleted; it is restored
        here = following.setdefault(after, [])
        if original is None and ours.was_another(cell.source):
            if cell.kind == "code":
                here.append(nbformat.v4.new_code_cell(cell.source))
            else:
                gaps.setdefault(after, len(here))
            continue
        here.append(_own_cell(cell) if original is None else copy.deepcopy(original))
    for gap, index in gaps.items():
        there = {normal(cell.source) for cell in following[gap]}
        missing = [cell for cell in words.get(gap, ()) if normal(cell.source) not in there]
        following[gap][index:index] = copy.deepcopy(missing)
    return following


def _own_cell(cell: SubmittedCell) -> NotebookNode:
    metadata = {KEY: {"by": "learner"}}
    if cell.kind == "code":
        return nbformat.v4.new_code_cell(cell.source, metadata=metadata)
    if cell.kind == "raw":
        return nbformat.v4.new_raw_cell(cell.source, metadata=metadata)
    new = nbformat.v4.new_markdown_cell(cell.source, metadata=metadata)
    _attach(cell, new)
    return new


def _attach(answer: SubmittedCell, cell: NotebookNode) -> None:
    if cell.cell_type == "markdown" and answer.attachments:
        cell.attachments = nbformat.from_dict(answer.attachments)


def _notebook(master: NotebookNode, cells: list[NotebookNode], notes: list[Note]) -> NotebookNode:
    nb = nbformat.v4.new_notebook(metadata=copy.deepcopy(master.metadata))
    nb.metadata.setdefault(KEY, NotebookNode())
    if notes:
        lines = "\n".join(f"- {note.message}" for note in notes)
        text = f"**Changes to this notebook before grading:**\n\n{lines}"
        top = nbformat.v4.new_markdown_cell(text, metadata={KEY: {"by": "grader"}})
        cells = [top, *cells]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    nb.cells = cells
    return nb


def answer_cells(nb: NotebookNode, name: str) -> list[NotebookNode]:
    """Return the cells that answer a question: its solution cell, or a learner's cells below it.

    The learner's cells below a question count only up to the next nbgrader cell, or up to the lab's
    next cell with a heading.
    """
    found: list[NotebookNode] = []
    below = False
    for cell in nb.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade_id") == name:
            if about.get("solution"):
                return [cell]
            below = True
        elif below and cell.metadata.get(KEY, {}).get("by") == "learner":
            found.append(cell)
        elif below and (about.get("grade_id") or cell.source.startswith("#")):
            break
    return found


def is_blank(cells: Iterable[NotebookNode]) -> bool:
    """Return whether the cells that answer a question are empty."""
    return not any(cell.source.strip() or cell.get("attachments") for cell in cells)
