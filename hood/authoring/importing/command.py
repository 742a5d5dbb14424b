"""`python -m hood import nbgrader|otter NOTEBOOK`: draft a phase from another grader's notebook."""

from __future__ import annotations

import argparse
from pathlib import Path

from hood import UserError
from hood.atomic_files import write_whole
from hood.authoring.importing import nbgrader, otter
from hood.authoring.importing.cells import read_cells
from hood.course import FILE, course
from hood.phase_paths import PHASE, PhasePaths, phases, slug

READERS = {"nbgrader": nbgrader.read, "otter": otter.read}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "form",
        choices=READERS,
        metavar="nbgrader|otter",
        help="the grader for which the notebook was written",
    )
    parser.add_argument(
        "notebook",
        type=Path,
        help="the notebook with the solutions: from nbgrader's source/, or the master notebook for "
        "Otter Assign",
    )
    parser.add_argument(
        "--phase",
        metavar="NN_NAME",
        help="the new phase (default: the next number and the notebook's name)",
    )


def run(args: argparse.Namespace, root: Path) -> int:
    """Write the draft, and print what a person must decide."""
    from hood.authoring.importing.draft import draft, refusals, todo_page  # they import much

    phase = new_phase(root, args.phase, args.notebook)
    title = args.notebook.stem.replace("_", " ").replace("-", " ").strip().capitalize()
    try:
        found = READERS[args.form](read_cells(args.notebook), title or "Imported")
        made = draft(found, phase, args.notebook.name)
    except (RecursionError, MemoryError):  # Python's parser raises both
        raise UserError(f"{args.notebook}: its code is nested too deeply") from None
    for name, content in made.files.items():
        write_whole(phase.folder / name, content.encode())
    if phase.name not in [one.name for one in course(root).phases]:  # it may be announced
        before = (root / FILE).read_text(encoding="utf-8").rstrip("\n")
        write_whole(root / FILE, f"{before}\n\n{made.listed}".encode())
    todo = [*made.open, *refusals(phase)]
    page = phase.folder / "TODO.md"
    write_whole(page, todo_page(phase, args.notebook.name, todo).encode())
    print(f"{phase.relative(phase.folder)}: {len(made.files) + 1} files")
    print(f"Decide, and change the draft ({phase.relative(page)} has this list, too):")
    for one in todo:
        print(f"- {one}")
    return 0


def new_phase(root: Path, name: str | None, notebook: Path) -> PhasePaths:
    """Return the phase to write. Raises UserError if the name is wrong, or if the phase exists."""
    if not (root / FILE).is_file():
        raise UserError(f"expected a course's folder, and {root} has no {FILE}")
    if name is None:
        used = [int(one.number) for one in phases(root)]
        words = slug(notebook.stem).replace("-", "_").strip("_") or "imported"
        name = f"{max(used, default=0) + 1:02}_{words}"
    if not PHASE.fullmatch(name):
        raise UserError(f"--phase: expected a name such as 02_sums, got {name!r}")
    phase = PhasePaths(root, name)
    if phase.folder.exists():
        shown = phase.relative(phase.folder)
        raise UserError(f"{shown} exists, and is not changed: choose another name with --phase")
    return phase
