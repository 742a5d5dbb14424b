"""A lesson, a section of a lesson, a lab or a file must exist if a text names it.

Only prose is read. `stated` checks references to exercises of the same lab.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hood.authoring.notebooks.text import Problem, Text, at, parse
from hood.authoring.stated import EXERCISES, numbers, sections
from hood.course import course
from hood.phase_paths import PhasePaths, anchor, pages

LINK = re.compile(r"\]\((?P<path>[^()\s#]*\b(?P<name>\w+)\.ipynb)(?:#(?P<place>[^()\s]+))?\)")
NAMED = re.compile(r"\b(lab|lesson)s?\s+(\d\d(?:(?:,| and| to)\s+\d\d)*)(?![\d.])", re.IGNORECASE)
FILE = re.compile(r"`(([\w-]+)/[\w./-]*\w\.\w+)`")
Fault = tuple[str, int]  # a message, and the place of the fault in the cell's source


def mention_problems(phase: PhasePaths, text: Text) -> Iterator[Problem]:
    """Yield a problem for each missing lesson, section, lab or file that a text names."""
    rules: list[Callable[[PhasePaths, str], Iterator[Fault]]] = [link_faults, named_faults]
    rules += [file_faults, *([exercise_faults] if text.path.endswith("lesson.py") else [])]
    for cell in text.cells:
        for rule in rules if cell.kind == "markdown" else ():
            for message, start in rule(phase, cell.source):
                yield at(text, cell, message, cell.source.count("\n", 0, start))


def link_faults(phase: PhasePaths, prose: str) -> Iterator[Fault]:
    """A link to a notebook must lead to a lesson or a lab, and to an existing heading."""
    known = {page.name: page for page in pages(phase.root)}
    for match in LINK.finditer(prose):
        page, place = known.get(match["name"]), match["place"]
        of_lab = "release/" in match["path"]
        if page is None or not (page.lab if of_lab else page.lesson).exists():
            there = ", ".join(known)
            yield f"the link {match['path']} leads nowhere: expected one of {there}", match.start()
        elif place and place not in anchors(page, page.lab if of_lab else page.lesson):
            message = (
                f"{match['name']} has no heading with the link #{place}: expected the words of a "
                "heading at the start of a cell, as in #cell-id=the-first-step"
            )
            yield message, match.start()


def anchors(page: PhasePaths, path: Path) -> set[str]:
    """Return the link fragments of the headings that are at the start of a text's cells."""
    cells = parse(page.relative(path), path.read_text(encoding="utf-8")).cells
    heads = [re.match(r"#+ (.+)", cell.source) for cell in cells if cell.kind == "markdown"]
    return {anchor(head[1]) for head in heads if head}


def named_faults(phase: PhasePaths, prose: str) -> Iterator[Fault]:
    """A lab or lesson that a text names, as in "lab 07" or "lessons 02 and 05", must exist."""
    every = pages(phase.root)
    for match in NAMED.finditer(prose):
        kind = match[1].lower()
        texts = {int(p.number): getattr(p, kind) for p in every if p.number.isdigit()}
        for lost in sorted(numbers(match[2]) - {n for n, path in texts.items() if path.exists()}):
            yield f"names {kind} {lost:02}, which the course does not have", match.start()


def file_faults(phase: PhasePaths, prose: str) -> Iterator[Fault]:
    """A named file in a folder of the course, such as `phases/01_means/lab.py`, must exist."""
    for match in FILE.finditer(prose):
        if match[2] in folders_with_texts(phase.root) and not (phase.root / match[1]).exists():
            yield f"names the file {match[1]}, which the course does not have", match.start()


def folders_with_texts(root: Path) -> set[str]:
    """Return the folders of a course whose files must exist if prose names them."""
    about = course(root)
    return {
        "phases",
        "hood",
        *(name.partition("/")[0] for name in (*about.packages, *about.records)),
    }


def exercise_faults(phase: PhasePaths, prose: str) -> Iterator[Fault]:
    """If a lesson names an exercise of its lab by number, the exercise must exist."""
    if not phase.lab.exists():
        return
    lab = parse(phase.relative(phase.lab), phase.lab.read_text(encoding="utf-8"))
    there = {part.number for part in sections(lab) if part.number}
    for match in EXERCISES.finditer(prose):
        elsewhere = re.match(r"\s+of\s+(?:lab|lesson)", prose[match.end() :])
        for lost in sorted(numbers(match[1]) - there) if there and not elsewhere else ():
            message = f"names exercise {lost}, but the lab's last exercise is {max(there)}"
            yield message, match.start()
