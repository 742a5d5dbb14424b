"""Find a learner's copy that was renamed or moved to another folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hood.phase_paths import ROOT, WORK, copy_of

ALIKE = 0.5  # a copy has more than this share of the original's cells
MOST_FILES = 200  # at most this many notebooks in work/ are read
MOST_BYTES = 20_000_000  # the largest size of a notebook that is read


def looks_like(original: Path, root: Path = ROOT) -> Path | None:
    """Return the notebook in `work/` with more than half of an original's cells, or None.

    A notebook with the path of a copy is that copy, and doesn't count here. If several notebooks
    qualify, choose the notebook with the most of these cells. If several have the most, choose the
    notebook that was saved last.
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
    """Return a sentence about a notebook that looks like the copy of an original."""
    place = copy_of(original.relative_to(root))
    assert place is not None  # no search looks for originals without a copy
    name, copied = other.relative_to(root).as_posix(), place.as_posix()
    if (root / place).exists():
        return (
            f"`{name}` looks like a copy, too, but only `{copied}` counts. If your answers are in "
            f"`{name}`, swap the two names."
        )
    return (
        f"`{copied}` is missing, but `{name}` looks like it. If `{name}` is your copy, give that "
        f"notebook its old name again. To begin anew, move `{name}` out of `{WORK}/` and run "
        "`python -m hood.learner.copies` in the course's folder."
    )


def _originals(root: Path) -> list[Path]:
    return sorted([*root.glob("notebooks/*.ipynb"), *root.glob("release/*/*.ipynb")])


def _notebooks(folder: Path) -> Iterator[Path]:
    """Yield the notebooks below a folder, except hidden ones."""
    paths = (path for path in sorted(folder.rglob("*.ipynb")) if path.is_file())
    shown = (p for p in paths if not any(n.startswith(".") for n in p.relative_to(folder).parts))
    for _, path in zip(range(MOST_FILES), shown, strict=False):
        if path.stat().st_size <= MOST_BYTES:
            yield path


def _names(path: Path) -> frozenset[str]:
    """Return the names or ids of a notebook's cells; empty for any other file."""
    try:
        return _names_at(path, path.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=MOST_FILES)  # the same files are read for each lab that is not begun
def _names_at(path: Path, changed: int) -> frozenset[str]:
    """Return the result of :func:`_names`; ``changed`` is the time of the file's last change."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
        marked = [(c.get("metadata", {}).get("nbgrader", {}), c.get("id", "")) for c in cells]
        return frozenset(str(marks.get("grade_id") or cell) for marks, cell in marked) - {""}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return frozenset()
