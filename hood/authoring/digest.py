"""Hash everything that a lesson's outputs depend on: its text, its imports and packages."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from nbformat import NotebookNode

from hood.authoring.notebooks.text import Text
from hood.course import course
from hood.manifest import (
    ABSENT,
    PYTHON,
    Modules,
    code_of,
    data_of,
    differing,
    imported,
    read_module,
    versions,
)

# A lesson that prints the code of functions, with comments, calls this function.
SHOWN = "getsource"


def lesson_digest(text: Text, root: Path, others: Iterable[str] = ()) -> str:
    """Return 16 hex digits of a hash of everything that the outputs depend on, and of `others`.

    The versions of packages are recorded elsewhere (:func:`hood.manifest.versions`).
    """
    digest = hashlib.sha256("\n".join(others).encode())
    for cell in text.cells:
        digest.update(cell.fingerprint.encode())
    exact = shows_code(text, root)
    for path in used_files(text, root):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes() if exact else code_of(path))
    return digest.hexdigest()[:16]


def outputs_digest(notebook: NotebookNode) -> str:
    """Return 16 hex digits of a hash of the outputs; a new run of the lesson changes the hash."""
    outputs = [node.get("outputs", []) for node in notebook.cells]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()[:16]


def other_versions(executed: Mapping[str, str], root: Path) -> list[tuple[str, str]]:
    """Return the packages that had another version when a lesson was executed.

    The version of Python is ignored, because a course supports several versions of Python with the
    same packages. A package that is not installed here is also ignored, because some packages, such
    as Triton, are not available on every system.
    """
    here = {name: version for name, version in versions(root).items() if version != ABSENT}
    before = {name: version for name, version in executed.items() if name in here}
    return differing({**before, PYTHON: here[PYTHON]}, here)


def used_files(text: Text, root: Path) -> list[Path]:
    """Return the modules of the course that the lesson imports, and the data that they read."""
    modules = _modules(text, root)
    return sorted({*modules, *data_of(modules, root)})


def shows_code(text: Text, root: Path) -> bool:
    """Return whether the outputs may contain code with its comments.

    This is so if a cell reads source code, or names a module that reads source code.
    """
    code = "\n".join(cell.source for cell in text.cells if cell.kind == "code")
    named = set(re.findall(r"\w+", code))
    return SHOWN in named or any(
        path.stem in named and SHOWN in path.read_text(encoding="utf-8")
        for path in _modules(text, root)
    )


def _modules(text: Text, root: Path) -> list[Path]:
    modules = Modules(dict.fromkeys(course(root).packages, root))
    names: set[str] = set()
    for cell in text.cells:
        if cell.kind == "code":
            lines = cell.source.split("\n")
            plain = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
            names |= imported(read_module(plain.encode()))
    return list(modules.reached(names).values())
