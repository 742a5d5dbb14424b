"""Turn a learner's code into an entry of a file of answers."""

from __future__ import annotations

import ast
import difflib
import json
import symtable
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hood import UserError
from hood.judge.checks.answers import with_edits
from hood.judge.checks.lab_solution import bare

FEW = 3  # the most lines that edits change; for more lines, the whole code is easier to read
TODO = "TODO"  # the build refuses a sentence that begins with this word
SAYS = (
    f"{TODO}: say in a sentence what the result is. The sentence must be true for all code with "
    "these results."
)
Definition = ast.FunctionDef | ast.ClassDef
Statement = ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign


def answer_code(cells: Iterable[ast.Module], names: Sequence[str], lab: Mapping[str, str]) -> str:
    """Return the functions that answer an exercise, with everything that they use, as one cell.

    An answer consists of functions and classes. If a function uses an import or a constant that the
    lab does not have, the import or constant moves into the function.

    Args:
        cells: the learner's code, in order. If a name is defined several times, the last definition
            counts.
        names: the functions of the exercise. The code must define at least one of them.
        lab: for each name that the lab defines: the import of the name, or an empty text.

    Raises UserError if the code can't be an answer.
    """
    bound = {name: node for cell in cells for node in cell.body for name in bound_by(node)}
    waiting = [name for name in names if isinstance(bound.get(name), Definition)]
    if not waiting:
        raise UserError(f"expected code that defines {' or '.join(names)}")
    kept: dict[str, Definition] = {}
    while waiting:
        node = bound[name := waiting.pop(0)]
        if name in kept or not isinstance(node, Definition):
            continue
        kept[name] = node
        moved: dict[str, str] = {}
        for used in _moved(ast.unparse(node), bound, lab, moved):
            waiting.append(used)
        if moved and isinstance(node, ast.ClassDef):
            raise UserError(
                f"the class {name} uses {', '.join(moved)} from outside the class: import or "
                "define this inside its methods"
            )
        if moved:
            lines = [ast.parse(line).body[0] for line in dict.fromkeys(moved.values())]
            start = 1 if ast.get_docstring(node) else 0
            assert isinstance(node, ast.FunctionDef)
            node.body[start:start] = lines
    code = "\n\n\n".join(bare("\n\n\n".join(map(ast.unparse, kept.values()))).values())
    try:
        compile(code, "<answer>", "exec")
    except SyntaxError as error:
        raise UserError(
            f"the code can't become an answer that has only functions: {error.msg}"
        ) from None
    return code


def bound_by(node: ast.stmt) -> list[str]:
    """Return the names that a statement at the outermost level binds."""
    if isinstance(node, Definition):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(one.asname or one.name).partition(".")[0] for one in node.names]
    targets = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return [one.id for one in targets if isinstance(one.ctx, ast.Store)]


def _moved(
    code: str, bound: Mapping[str, ast.stmt], lab: Mapping[str, str], moved: dict[str, str]
) -> Iterator[str]:
    """Yield the functions that some code uses, and collect the other statements that the code uses.

    The other statements are added to ``moved``, with the names that they bind as keys. A statement
    comes after the statements that it uses.
    """
    for name in free_names(code):
        node = bound.get(name)
        if node is None or name in moved:
            continue
        if isinstance(node, Definition):
            yield name
            continue
        if not isinstance(node, Statement):
            raise UserError(
                f"line {node.lineno} sets {name}, which the answer needs: write this statement "
                "into the function"
            )
        if isinstance(node, ast.Import | ast.ImportFrom):
            line = _import_of(name, node)
        else:
            line = ast.unparse(node)
            others = {other: one for other, one in bound.items() if other != name}
            yield from _moved(line, others, lab, moved)
        if lab.get(name) != line:
            moved[name] = line


def _import_of(name: str, node: ast.Import | ast.ImportFrom) -> str:
    """Return the import of a single name."""
    [one] = [one for one in node.names if (one.asname or one.name).partition(".")[0] == name][:1]
    if isinstance(node, ast.ImportFrom):
        return ast.unparse(ast.ImportFrom(node.module, [one], node.level))
    return ast.unparse(ast.Import([one]))


def imports(cells: Iterable[str]) -> dict[str, str]:
    """Return the import of each name that cells import at their outermost level."""
    nodes = (node for cell in cells for node in ast.parse(cell).body)
    found = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return {name: _import_of(name, node) for node in found for name in bound_by(node)}


def free_names(code: str) -> list[str]:
    """Return the names that code uses but does not define, names of outer scopes first."""
    top = symtable.symtable(code, "<answer>", "exec")
    own = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    found: dict[str, None] = {}
    tables = [top]
    while tables:
        table = tables.pop(0)
        tables += table.get_children()
        for symbol in table.get_symbols():
            outside = symbol.is_global() or table is top
            if outside and symbol.is_referenced() and symbol.get_name() not in own:
                found[symbol.get_name()] = None
    return list(found)


def edits_between(solution: Mapping[str, str], code: str) -> list[list[str]]:
    """Return the edits that turn the lab's solution into an answer; empty if there are too many.

    ``solution`` has the lab's functions as :func:`hood.judge.checks.lab_solution.bare` gives them.
    """
    answer = bare(code)
    if not answer.keys() <= solution.keys():
        return []
    target = {**solution, **answer}
    found = [
        pair for name in answer for pair in _line_edits(solution[name], answer[name], solution)
    ]
    lines = [
        sum(one.strip("\n").count("\n") + 1 for one in side) for side in zip(*found, strict=True)
    ]
    if not found or max(lines) > FEW:
        return []
    try:
        result = with_edits(solution, found)
    except ValueError:
        return []
    return found if result == target else []


def _line_edits(old: str, new: str, all_of: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the edits between two versions of a function, each as small as possible."""
    before, after = old.split("\n"), new.split("\n")
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        if kind == "replace" and b - a == d - c:
            for was, now in zip(before[a:b], after[c:d], strict=True):
                yield _smallest(was, now, all_of)
        else:
            end = "\n" if kind == "delete" else ""
            yield ["\n".join(before[a:b]) + end, "\n".join(after[c:d])]


def _smallest(old: str, new: str, all_of: Mapping[str, str]) -> list[str]:
    """Return a line's smallest changed expression that occurs only once in the solution."""
    every = "\n".join(all_of.values())
    for was, now in reversed(list(_within(_head(old), _head(new)))):
        if every.count(was) == 1 and old.replace(was, now) == new:
            return [was, now]
    if (
        every.count(old.strip()) == 1
        and old[: len(old) - len(old.lstrip())] == (new[: len(new) - len(new.lstrip())])
    ):
        return [old.strip(), new.strip()]
    return [old, new]


def _head(line: str) -> ast.AST | None:
    """Return the syntax tree of a line; None if the line alone is not valid Python."""
    words = line.strip().removeprefix("el") if line.strip().startswith("elif ") else line.strip()
    for code in (words, f"{words} pass"):
        try:
            return ast.parse(code).body[0]
        except (SyntaxError, IndexError):
            continue
    return None


def _within(old: ast.AST | None, new: ast.AST | None) -> Iterator[tuple[str, str]]:
    """Yield the old and the new form of each expression that changed, the outermost first."""
    while old is not None and new is not None:
        if isinstance(old, ast.expr) and isinstance(new, ast.expr):
            yield ast.unparse(old), ast.unparse(new)
        if type(old) is not type(new):
            return
        pairs = list(zip(ast.iter_child_nodes(old), ast.iter_child_nodes(new), strict=False))
        changed = [pair for pair in pairs if ast.dump(pair[0]) != ast.dump(pair[1])]
        if len(changed) != 1 or len(list(ast.iter_child_nodes(old))) != len(
            list(ast.iter_child_nodes(new))
        ):
            return
        old, new = changed[0]


def entry(name: str, code: str, edits: Sequence[Sequence[str]], earns: Mapping[str, float]) -> str:
    """Return a misconception as an entry of a file of answers, with a sentence to fill in."""
    lines = [f"[wrong.{quoted(name)}]", f"says = {quoted(SAYS)}"]
    if earned := {part: points for part, points in earns.items() if points}:
        each = (f"{quoted(part)} = {points:g}" for part, points in earned.items())
        lines.append(f"earns = {{{', '.join(each)}}}")
    if edits:
        pairs = (f"[{quoted(old)}, {quoted(new)}]" for old, new in edits)
        lines.append(f"edits = [{', '.join(pairs)}]")
    elif "'''" in code:
        lines.append(f"code = {quoted(code)}")
    else:
        lines.append(f"code = '''\n{code}\n'''")
    return "\n".join(lines) + "\n"


def quoted(words: str) -> str:
    """Return a text as a string of TOML."""
    if words.isprintable() and '"' in words and "'" not in words:
        return f"'{words}'"
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")
