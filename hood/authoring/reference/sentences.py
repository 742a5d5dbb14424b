"""Take the descriptions of names from the code, and return them as Markdown.

The description of a name is the comment in the name's line or above it, or the name's entry under
``Attributes`` in the docstring of the class.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType

ROLE = re.compile(r":\w+:`(?:~[\w.]*\.)?\.?([^`]+)`")
ENTRY = re.compile(r"^    (\w+): (.*(?:\n {6,}.*)*)", re.MULTILINE)
SECTION = re.compile(r"^(?:Attributes|Args|Raises|Example):.*", re.MULTILINE | re.DOTALL)
FIELDS = (ast.Assign, ast.AnnAssign)
BLOCK = re.compile(r"::\n\n((?: {4}.*\n|\n)+)")


def markdown(text: str) -> str:
    """Return a comment, or a paragraph of a docstring, as a line of Markdown in whole sentences."""
    line = " ".join(ROLE.sub(r"`\1`", text).replace("``", "`").split())
    end = "" if not line or line.endswith((".", "?", ":", "!")) else "."
    return f"{line[:1].upper()}{line[1:]}{end}"


def summary(thing: object) -> str:
    """Return the docstring of an object, without its sections, as Markdown."""
    text = SECTION.sub("", inspect.getdoc(thing) or "")
    return "\n\n".join(markdown(one) for one in re.split(r"\n{2,}", text.strip()))


def example(thing: object) -> str:
    """Return the first block of code in the docstring of an object; "" if there is no block."""
    found = BLOCK.search(f"{inspect.getdoc(thing)}\n")
    return textwrap.dedent(found[1]).strip() if found else ""


def attributes(text: str) -> dict[str, str]:
    """Return the entries under ``Attributes`` of a docstring: name -> text."""
    said = inspect.cleandoc(text).partition("Attributes:\n")[2].partition("Example::")[0]
    return {name: markdown(words) for name, words in ENTRY.findall(said)}


def of_fields(kind: type) -> dict[str, str]:
    """Return a description for each field or member of a class and of its base classes."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("hood."):
            module = inspect.getmodule(one)
            assert module is not None
            found |= of_names(module, one.__name__) | attributes(one.__doc__ or "")
    return found


def of_names(module: ModuleType, name: str = "") -> dict[str, str]:
    """Return the comments about the names in a module, or in one of its definitions.

    The names are variables and fields, keys of a dict and texts of a tuple. A key of a nested dict
    has a dot: ``wrong.says``.
    """
    source = inspect.getsource(module)
    tree: ast.AST = ast.parse(source)
    if name:
        tree = next(node for node in ast.iter_child_nodes(tree) if name in _names(node))
    lines = source.splitlines()
    beside: dict[int, str] = {}
    above: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            place = above if lines[token.start[0] - 1].lstrip().startswith("#") else beside
            place[token.start[0]] = token.string.lstrip("# ")
    found = {}
    for key, start, end in _entries(tree):
        said, line = beside.get(end, ""), start
        while not beside.get(end) and (line := line - 1) in above:
            said = f"{above[line]} {said}"
        if said:
            found[key] = markdown(said)
    return found


@cache
def types_of(kind: type) -> Mapping[str, str]:
    """Return the types of a class's fields as they are written in its source."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    return {
        one.target.id: ast.unparse(one.annotation)
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [one.id for one in targets if isinstance(one, ast.Name)]


def _entries(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield each name below a node, and the lines in which its definition starts and ends."""
    if isinstance(tree, ast.Dict):
        for key, value in zip(tree.keys, tree.values, strict=True):
            if isinstance(key, ast.Constant):
                inside = isinstance(value, ast.Dict)
                end = key.lineno if inside else value.end_lineno or value.lineno
                yield f"{prefix}{key.value!s}", key.lineno, end
                yield from _entries(value, f"{prefix}{key.value!s}.") if inside else ()
        return
    if isinstance(tree, ast.Tuple):
        for one in tree.elts:
            if isinstance(one, ast.Constant):
                yield f"{prefix}{one.value!s}", one.lineno, one.end_lineno or one.lineno
        return
    for node in ast.iter_child_nodes(tree):
        if isinstance(tree, ast.Module | ast.ClassDef) and isinstance(node, FIELDS):
            for name in _names(node):
                yield name, node.lineno, node.end_lineno or node.lineno
        if not isinstance(tree, ast.Module | ast.ClassDef):
            yield from _entries(node, prefix)
