"""Find how far a learner has read a lesson, from the cells that ran and the answered drills.

The lesson's notebook has the cells and drills; the journal says which of them ran or were answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hood.course import Phase
from hood.learner import journal
from hood.learner.contents import ROOT, lesson_of
from hood.learner.lab_file import HEADING, UNREADABLE, Cell, cells_of, text_of

DRILL = 'data-drill="'  # once in each drill's HTML, see utils/notebook/drills.py


@dataclass(frozen=True)
class Reading:
    """The progress in one lesson."""

    title: str  # the heading of the section where reading stopped
    section: str  # the id of the cell with that heading
    share: float  # the share of cells down to the lowest cell that ran, from 0 to 1
    at: float  # when the last cell ran, in seconds since 1970
    drills: tuple[int, int]  # how many drills have a right answer, and how many drills there are
    predictions: tuple[int, int]  # how many predictions' cells ran, and how many there are

    @property
    def whole(self) -> bool:
        return self.share == 1

    def __str__(self) -> str:
        kinds = (("drills", *self.drills), ("predictions", *self.predictions))
        return ", ".join(f"{done} of {most} {kind}" for kind, done, most in kinds if most)


def read_lesson(phase: Phase, root: Path = ROOT) -> Reading | None:
    """Return how far a phase's lesson was read; None if no run of a cell is known."""
    path = lesson_of(phase, root)
    done = journal.read(f"lesson_{phase.name}", root)
    if path is None or not done.cells:
        return None
    # Read the original, because a copy does not record which outputs were folded.
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
