"""Make mutants of Python code. A mutant has one small change, like a mistake in one place.

The changes are the usual changes of mutation testing (comparisons, arithmetic, constants, branches,
removed calls), and a few for tensors: another dtype, ``keepdim``, a ``dim`` moved by one. Texts for
a reader are not changed: docstrings, the messages of ``raise`` and ``assert``, f-strings,
annotations.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

# Operators by their names in ``ast``, each with its replacements.
REPLACED = """
Lt LtE GtE NotEq, LtE Lt Gt Eq, Gt GtE LtE NotEq, GtE Gt Lt Eq, Eq NotEq LtE GtE, NotEq Eq Lt Gt,
Is IsNot, IsNot Is, In NotIn, NotIn In,
Add Sub Mult, Sub Add, Mult Add FloorDiv, Div Mult FloorDiv, FloorDiv Div Mod, Mod FloorDiv,
Pow Mult, MatMult Mult, LShift RShift, RShift LShift,
BitAnd BitOr BitXor, BitOr BitAnd BitXor, BitXor BitOr
"""
ROWS = [[getattr(ast, name) for name in row.split()] for row in REPLACED.split(",")]
OPERATORS = {operator: others for operator, *others in ROWS}
# With these operators, exchanged operands are also a mutant.
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
# With these functions, exchanged arguments do not change the result.
SYMMETRIC = {"max", "min", "maximum", "minimum", "promote_types", "equal", "gcd"}
# Functions, methods and dtypes that are easily confused.
SIBLINGS = """
float32 float64, float16 bfloat16, int64 int32, float double, long int, max min, amax amin,
argmax argmin, maximum minimum, sum mean, any all, floor ceil, zeros ones, zeros_like ones_like
"""
PAIRS = [pair.split() for pair in SIBLINGS.split(",")]
TAKEN_FOR = {a: b for one, other in PAIRS for a, b in ((one, other), (other, one))}
TRANSPOSES = {"T", "mT", "H", "mH"}
# Fields of syntax tree nodes that contain text for a reader.
SAID = {
    ast.Raise: ("exc", "cause"),
    ast.Assert: ("msg",),
    ast.arg: ("annotation",),
    ast.AnnAssign: ("annotation",),
    ast.FunctionDef: ("returns",),
    ast.JoinedStr: ("values",),
}
# Statements that are not removed.
KEPT = (ast.Pass, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Mutant:
    """Code with one small change."""

    code: str  # the whole code, as ``ast.unparse`` writes it
    line: int  # the line of the change, counted from 1 in the original code
    was: str  # the lines that changed, as ``ast.unparse`` writes them, without indentation
    now: str  # the lines that replace them; ``pass`` for a removed statement

    def __str__(self) -> str:
        return f"`{self.was}` became `{self.now}`"

    def is_edit(self, old: str, new: str | None) -> bool:
        """Return whether the change replaces ``old`` by ``new``; None stands for any new text."""
        starts = [k for k in range(len(self.was)) if old and self.was.startswith(old, k)]
        beside = [(self.was[:k], self.was[k + len(old) :]) for k in starts]
        if new is not None:
            return any(before + new + after == self.now for before, after in beside)
        return any(
            self.now.startswith(before) and self.now[len(before) :].endswith(after)
            for before, after in beside
        )


def mutants(code: str, lines: Collection[int] | None = None) -> list[Mutant]:
    """Return every mutant of some code, without duplicates.

    ``lines`` are the lines to change, counted from 1. By default, all lines are changed. Raises
    SyntaxError if the code does not parse.
    """
    tree = ast.parse(code)
    before = ast.unparse(tree)
    found: dict[str, Mutant] = {before: Mutant(before, 0, "", "")}
    confused = _confused_parameters(tree)
    for parent, name, index, node in _places(tree):
        line = getattr(node, "lineno", 0)
        if lines is not None and line not in lines:
            continue
        for other in [*_variants(node), *confused.get(node, ())]:
            _put(parent, name, index, other)
            text = ast.unparse(tree)
            if text not in found:
                found[text] = Mutant(text, line, *_changed_lines(before, text))
        _put(parent, name, index, node)
    return list(found.values())[1:]


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield the nodes that may change, each as: parent, field, list index (or None), node."""
    said = next((names for kind, names in SAID.items() if isinstance(node, kind)), ())
    for name, value in list(ast.iter_fields(node)):
        if name in said:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not (_is_text(child) or _is_self_check(child)):
                yield node, name, index, child
                yield from _places(child)


def _confused_parameters(tree: ast.AST) -> dict[ast.AST, list[ast.Name]]:
    found: dict[ast.AST, list[ast.Name]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            names = [arg.arg for arg in function.args.args if arg.arg not in ("self", "cls", "ctx")]
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id in names and not _is_target(node):
                    k = names.index(node.id)
                    beside = names[max(k - 1, 0) : k] + names[k + 1 : k + 2]
                    found[node] = [ast.Name(name, ast.Load()) for name in beside]
    return found


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_self_check(node: ast.AST) -> bool:
    """Return whether a node is an argument that only makes code check itself: zip's ``strict``."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _is_target(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


def _put(parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def _changed_lines(before: str, after: str) -> tuple[str, str]:
    was, now = ([line.strip() for line in text.splitlines()] for text in (before, after))
    while was and now and was[0] == now[0]:
        del was[0], now[0]
    while was and now and was[-1] == now[-1]:
        del was[-1], now[-1]
    return "\n".join(was), "\n".join(now)


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            yield from _shorter(node, "decorator_list")
        case ast.If():
            yield _with(node, test=ast.Constant(True))
            yield _with(node, test=ast.Constant(False))
            yield from _negated(node)
        case ast.While():
            yield _with(node, test=ast.Constant(False))
            yield from _negated(node)
        case ast.For():
            yield _with(node, iter=ast.Tuple([], ast.Load()))
        case ast.With():
            yield ast.If(ast.Constant(True), node.body, [])
        case ast.stmt() if not isinstance(node, KEPT):
            yield from _other_statements(node)
            yield ast.Pass()
        case ast.comprehension():
            yield from _shorter(node, "ifs")
        case ast.Slice():
            for name in ("lower", "upper", "step"):
                if bound := getattr(node, name):
                    yield _with(node, **{name: None})
                    for moved in _moved(bound) if name != "step" else ():
                        yield _with(node, **{name: moved})
        case ast.expr() if not _is_target(node):
            yield from _other_expressions(node)


def _other_statements(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.AugAssign():
            yield ast.Assign([node.target], node.value, lineno=node.lineno)
            for op in OPERATORS.get(type(node.op), ()):
                yield _with(node, op=op())
        case ast.Return(value=ast.expr() as value):
            method = ast.Attribute(value, "float", ast.Load())
            yield ast.Return(ast.Call(method, [], []))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _negated(node: ast.If | ast.IfExp | ast.While) -> Iterator[ast.AST]:
    """Yield the node with its condition negated, unless another mutant already negates it."""
    simple = isinstance(node.test, ast.Compare) and len(node.test.ops) == 1
    if not simple and not isinstance(node.test, ast.UnaryOp):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))


def _moved(number: ast.expr) -> Iterator[ast.expr]:
    """Yield a number plus one and minus one. Skip constants, because other code changes them."""
    if not isinstance(number, ast.Constant):
        yield ast.BinOp(number, ast.Add(), ast.Constant(1))
        yield ast.BinOp(number, ast.Sub(), ast.Constant(1))


def _other_expressions(node: ast.expr) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Constant(value=float() as value):
            yield ast.Constant(2 * value or 1.0)
        case ast.Constant(value=str() as value):
            yield ast.Constant(value + "_")
        case ast.UnaryOp():
            yield node.operand
        case ast.BoolOp():
            yield from _shorter(node, "values") if len(node.values) > 2 else reversed(node.values)
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.Compare():
            for k, op in enumerate(node.ops):
                for kind in OPERATORS[type(op)]:
                    yield _with(node, ops=[*node.ops[:k], kind(), *node.ops[k + 1 :]])
        case ast.BinOp():
            for operator in OPERATORS.get(type(node.op), ()):
                yield _with(node, op=operator())
            yield node.left
            yield node.right
            if isinstance(node.op, ORDERED):
                yield _with(node, left=node.right, right=node.left)
        case ast.IfExp():
            yield node.body
            yield node.orelse
            yield from _negated(node)
        case ast.Call():
            yield from _other_calls(node)
        case ast.Attribute():
            if node.attr in TRANSPOSES:
                yield node.value
            if node.attr in TAKEN_FOR:
                yield _with(node, attr=TAKEN_FOR[node.attr])
        case ast.Name() if node.id in TAKEN_FOR:
            yield _with(node, id=TAKEN_FOR[node.id])
        case ast.Tuple() | ast.List():
            yield from _shorter(node, "elts")
            yield from _swapped(node, "elts")
        case ast.Dict():
            for k in range(len(node.keys)):
                keys, values = ([*n[:k], *n[k + 1 :]] for n in (node.keys, node.values))
                yield _with(node, keys=keys, values=values)


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if isinstance(node.func, ast.Attribute):
        yield node.func.value  # without the method call; a module's function then fails at once
    plain = not any(isinstance(arg, ast.Starred) for arg in node.args)
    if plain and name in ("max", "min"):
        yield from node.args
    elif plain and node.args and name != "tuple":  # a list often works as well as a tuple
        yield node.args[0]
    for k, keyword in enumerate(node.keywords):
        if not _is_self_check(keyword):
            yield _with(node, keywords=[*node.keywords[:k], *node.keywords[k + 1 :]])
    if len(node.args) > 1:
        yield _with(node, args=node.args[:-1])
    if plain and name not in SYMMETRIC:
        yield from _swapped(node, "args")
    if name == "range":
        for k, arg in enumerate(node.args[:2]):
            for moved in _moved(arg):
                yield _with(node, args=[*node.args[:k], moved, *node.args[k + 1 :]])


def _with(node: Node, **fields: object) -> Node:
    """Return a copy of a node with other fields; the copy and the node share their children."""
    return type(node)(**{**vars(node), **fields})


def _shorter(node: Node, field: str) -> Iterator[Node]:
    """For each item in a node's list, yield the node without that item."""
    items = getattr(node, field)
    for k in range(len(items)):
        yield _with(node, **{field: [*items[:k], *items[k + 1 :]]})


def _swapped(node: Node, field: str) -> Iterator[Node]:
    items = getattr(node, field)
    for k in range(len(items) - 1):
        yield _with(node, **{field: [*items[:k], items[k + 1], items[k], *items[k + 2 :]]})
