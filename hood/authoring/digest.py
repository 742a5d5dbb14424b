"""What a lesson's outputs rest on: its text, what it imports of the course, the packages."""

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

SHOWN = "getsource"  # by this a lesson prints a function with its comments


def lesson_digest(text: Text, root: Path, others: Iterable[str] = ()) -> str:
    """Return 16 hex digits of a hash of all that the outputs depend on, `others` included.

    The versions of packages are no part of it (:func:`hood.manifest.versions`).
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
    """Return 16 hex digits of a hash of the outputs, as somebody's run changes them."""
    outputs = [node.get("outputs", []) for node in notebook.cells]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()[:16]


def other_versions(executed: Mapping[str, str], root: Path) -> list[tuple[str, str]]:
    """Return each package of which a lesson was executed with another version than is here.

    Python is none of them: a course supports several of its series, with the same packages. Nor is
    a package that can't be installed on every system, such as Triton, where it is not installed.
    """
    here = {name: version for name, version in versions(root).items() if version != ABSENT}
    before = {name: version for name, version in executed.items() if name in here}
    return differing({**before, PYTHON: here[PYTHON]}, here)


def used_files(text: Text, root: Path) -> list[Path]:
    """Return the modules of the course that the lesson imports, and the data that they read."""
    modules = _modules(text, root)
    return sorted({*modules, *data_of(modules, root)})


def shows_code(text: Text, root: Path) -> bool:
    """Return whether the outputs may hold code with its comments.

    So they may where a cell reads source code, or names a module that does.
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
