"""Digest of everything that a lesson's outputs depend on: its text and the utils it imports."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from modulefinder import ModuleFinder
from pathlib import Path

from nbformat import NotebookNode

from hood.authoring.text import Text


def lesson_digest(text: Text, root: Path, others: Iterable[str] = ()) -> str:
    """Return 16 hex digits of a hash of all that the outputs depend on, `others` included."""
    digest = hashlib.sha256("\n".join(others).encode())
    for cell in text.cells:
        digest.update(cell.fingerprint.encode())
    for path in used_files(text, root):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def outputs_digest(notebook: NotebookNode) -> str:
    """Return 16 hex digits of a hash of the outputs, as somebody's run changes them."""
    outputs = [node.get("outputs", []) for node in notebook.cells]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()[:16]


def used_files(text: Text, root: Path) -> list[Path]:
    """Return the modules of utils that the lesson imports, and the data beside them."""
    finder = ModuleFinder([str(root)])  # so that it follows no other package
    for number, cell in enumerate(cell for cell in text.cells if cell.kind == "code"):
        lines = cell.source.split("\n")
        plain = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
        with contextlib.suppress(SyntaxError):
            code = compile(plain, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            finder.scan_code(code, finder.add_module(f"cell {number}"))
    found = [vars(module)["__file__"] for module in finder.modules.values()]
    files = map(Path, filter(None, found))
    modules = {path for path in files if path.is_relative_to(root / "utils")}
    data = {path for folder in {module.parent for module in modules} for path in data_in(folder)}
    return sorted(modules | data)


def data_in(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not any(path.glob("*.py")):
            yield from data_in(path)
        elif path.is_file() and path.suffix != ".py":
            yield path
