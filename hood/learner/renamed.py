"""Find a learner's copy whose name or folder is not the one that the course gave it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hood.phase_paths import ROOT, WORK, copy_of

ALIKE = 0.5  # of the original's cells, the share that a copy of it has more than
MOST_FILES = 200  # in work/ that are looked at
MOST_BYTES = 20_000_000  # of such a file


def looks_like(original: Path, root: Path = ROOT) -> Path | None:
    """Return the notebook in `work/` with more than half of an original's cells; None if none has.

    What is in the place of a copy is that copy. Of several others it is the one with most of the
    cells, and of these the one that was saved last.
    """
    places = (copy_of(one.relative_to(root)) for one in _originals(root))
    taken = {root / place for place in places if place}
    others = [path for path in _notebooks(root / WORK) if path not in taken]
    wanted = _names(original) if others else frozenset()
    candidates = []
    for path in others if wanted else ():
        share = len(wanted & _names(path)) / len(wanted)
        candidates.append((share, path.stat().st_mtime, path))
    share, _, path = max(candidates, default=(0.0, 0.0, original))
    return path if share > ALIKE else None


def what_to_do(original: Path, other: Path, root: Path = ROOT) -> str:
    """Return a sentence on a notebook that looks like the copy of an original."""
    place = copy_of(original.relative_to(root))
    assert place is not None  # only what is copied is looked for
    name, copied = other.relative_to(root).as_posix(), place.as_posix()
    if (root / place).exists():
        return (
            f"`{name}` looks like a copy, too, but what counts is `{copied}`. If your answers are "
            "in the other, exchange the two names."
        )
    return (
        f"`{copied}` is not there, but `{name}` looks like it. If that is your copy, give it its "
        f"name back. To begin anew, move it out of `{WORK}/` and run "
        "`python -m hood.learner.copies` in the course's folder."
    )


def _originals(root: Path) -> list[Path]:
    return sorted([*root.glob("notebooks/*.ipynb"), *root.glob("release/*/*.ipynb")])


def _notebooks(folder: Path) -> Iterator[Path]:
    """Yield the notebooks below a folder, hidden ones left out."""
    paths = (path for path in sorted(folder.rglob("*.ipynb")) if path.is_file())
    shown = (p for p in paths if not any(n.startswith(".") for n in p.relative_to(folder).parts))
    for _, path in zip(range(MOST_FILES), shown, strict=False):
        if path.stat().st_size <= MOST_BYTES:
            yield path


def _names(path: Path) -> frozenset[str]:
    """Return what a notebook's cells are known by; nothing of a file that is no notebook."""
    try:
        return _names_at(path, path.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=MOST_FILES)  # each lab that is not begun asks about the same files
def _names_at(path: Path, changed: int) -> frozenset[str]:
    """Return the names of the cells of a file that was changed last at this time."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
        marked = [(c.get("metadata", {}).get("nbgrader", {}), c.get("id", "")) for c in cells]
        return frozenset(str(marks.get("grade_id") or cell) for marks, cell in marked) - {""}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return frozenset()
