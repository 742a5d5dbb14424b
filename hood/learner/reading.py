"""How far a learner has read a lesson: by the cells that ran and the drills that were answered.

A lesson's notebook says what there is to read; what was done is known from the journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hood.course import Phase
from hood.learner import journal
from hood.learner.contents import ROOT, lesson_of
from hood.learner.lab_file import HEADING, UNREADABLE, Cell, cells_of, text_of

DRILL = 'data-drill="'  # once in the page of each drill, see utils/notebook/drills.py


@dataclass(frozen=True)
class Reading:
    """How far one lesson was read."""

    title: str  # of the section where reading stopped
    section: str  # the id of the cell with that heading
    share: float  # of the lesson's cells, those down to the lowest one that ran; 0 to 1
    at: float  # when a cell ran last, in seconds since 1970
    drills: tuple[int, int]  # answered rightly, and there are
    predictions: tuple[int, int]  # whose cell ran, and there are

    @property
    def whole(self) -> bool:
        return self.share == 1

    def __str__(self) -> str:
        kinds = (("drills", *self.drills), ("predictions", *self.predictions))
        return ", ".join(f"{done} of {most} {kind}" for kind, done, most in kinds if most)


def read_lesson(phase: Phase, root: Path = ROOT) -> Reading | None:
    """Return how far a phase's lesson was read; None where no cell is known to have run."""
    path = lesson_of(phase, root)
    done = journal.read(f"lesson_{phase.name}", root)
    if path is None or not done.cells:
        return None
    # A copy forgets which outputs were folded.
    original = root / "notebooks" / f"{phase.name}.ipynb"
    try:
        return _reading(cells_of(original if original.is_file() else path), done)
    except (OSError, *UNREADABLE):
        return None


def _reading(cells: list[Cell], done: journal.Journal) -> Reading:
    title, section, lowest = "", "", 0
    stopped = ("", "")
    drills = predictions = predicted = 0
    code = [number for number, cell in enumerate(cells) if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        cell_id = str(cell.get("id", ""))
        if cell["cell_type"] != "code":
            if heading := HEADING.match(text_of(cell)):
                title, section = heading[1].strip(), cell_id
            continue
        if cell_id in done.cells:
            lowest = number
        if cell_id == done.last:
            stopped = title, section
        pages = (one.get("data", {}).get("text/html", "") for one in cell.get("outputs", []))
        drills += sum("".join(page).count(DRILL) for page in pages)
        if cell.get("metadata", {}).get("jupyter", {}).get("outputs_hidden"):
            predictions += 1
            predicted += cell_id in done.cells
    share = 1.0 if lowest >= max(code, default=0) else (lowest + 1) / len(cells)
    answered = min(sum(done.drills.values()), drills)
    return Reading(*stopped, share, done.at, (answered, drills), (predicted, predictions))
