"""Digest of everything that a lesson's outputs depend on: its text and the utils it imports."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from nbformat import NotebookNode

from grader.authoring.text import Text


def lesson_digest(text: Text, root: Path, others: Iterable[str] = ()) -> str:
    """Return 16 hex digits of a hash of all that the lesson's outputs depend on.

    Args:
        others: further texts that the outputs depend on.
    """
    digest = hashlib.sha256("\n".join(others).encode())
    for cell in text.cells:
        digest.update(cell.fingerprint.encode())
    for path in used_files(text, root):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def outputs_digest(notebook: NotebookNode) -> str:
    """Return 16 hex digits of a hash of a notebook's outputs.

    It changes when someone runs a cell in JupyterLab.
    """
    outputs = [node.get("outputs", []) for node in notebook.cells]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()[:16]


def used_files(text: Text, root: Path) -> list[Path]:
    """Return the modules of utils that the lesson imports, and the data beside them."""
    code = [cell.source for cell in text.cells if cell.kind == "code"]
    waiting = [path for source in code for path in imported_files(source, root, None)]
    modules: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in modules:
            modules.add(path)
            waiting += imported_files(path.read_text(encoding="utf-8"), root, path)
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


def imported_files(code: str, root: Path, importer: Path | None) -> Iterator[Path]:
    """Yield the files of utils that this code imports; `importer` resolves relative imports."""
    plain = "\n".join(line for line in code.split("\n") if not line.lstrip().startswith(("%", "!")))
    try:
        tree = ast.parse(plain)
    except SyntaxError:
        return
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            if node.level and importer is not None:
                base = [*importer.parents[node.level - 1].relative_to(root).parts, *base]
            names += [".".join([*base, alias.name]) for alias in node.names]
    for parts in (name.split(".") for name in names):
        for size in range(1, len(parts) + 1 if parts[0] == "utils" else 0):
            stem = root.joinpath(*parts[:size])
            yield from filter(Path.is_file, (stem.with_suffix(".py"), stem / "__init__.py"))
