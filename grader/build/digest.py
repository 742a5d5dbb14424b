"""Digest of everything that a lesson's outputs depend on: its text and the utils it imports."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from nbformat import NotebookNode

from grader.build.text import Text

PACKAGE = "utils"


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
    """Return the modules of utils that the lesson imports, and the data beside them.

    Data are the files beside a module, and those in folders beside it that hold no modules.
    """
    modules: set[Path] = set()
    waiting = [
        path
        for cell in text.cells
        if cell.kind == "code"
        for path in imported_files(cell.source, root, None)
    ]
    while waiting:
        path = waiting.pop()
        if path not in modules:
            modules.add(path)
            waiting += imported_files(path.read_text(encoding="utf-8"), root, path)
    data = {path for folder in {module.parent for module in modules} for path in data_in(folder)}
    return sorted(modules | data)


def data_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that are no modules, and those of its folders without modules."""
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not any(path.glob("*.py")):
            yield from data_in(path)
        elif path.is_file() and path.suffix != ".py":
            yield path


def imported_files(code: str, root: Path, importer: Path | None) -> Iterator[Path]:
    """Yield the files of utils that this code imports; `importer` resolves relative imports."""
    for name in imported_names(code, root, importer):
        parts = name.split(".")
        for size in range(1, len(parts) + 1):
            stem = root.joinpath(*parts[:size])
            for path in (stem.with_suffix(".py"), stem / "__init__.py"):
                if path.is_file():
                    yield path


def imported_names(code: str, root: Path, importer: Path | None) -> Iterator[str]:
    """Yield the dotted names under utils in import statements; `from a import b` gives a.b."""
    plain = "\n".join(line for line in code.split("\n") if not line.lstrip().startswith(("%", "!")))
    try:
        tree = ast.parse(plain)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level and importer is not None:
                folder = importer.parents[node.level - 1].relative_to(root)
                base = ".".join([*folder.parts, *filter(None, [base])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == PACKAGE)
