"""Compare Python code as syntax trees: in one spelling, without names, by distinctiveness."""

from __future__ import annotations

import ast
import copy
import textwrap

MODULES = {"torch", "np", "math", "tl", "triton", "F", "nn"}
WORK = (
    ast.Call,
    ast.BinOp,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Subscript,
    ast.Attribute,
    ast.IfExp,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def parse_block(source: str) -> list[ast.stmt]:
    """Return the statements of an indented block; `return` is allowed. Comments alone give none.

    Raises:
        SyntaxError: when they are not whole statements.
    """
    body = textwrap.indent(textwrap.dedent(source), "    ")
    tree = ast.parse(f"async def block():\n{body}\n    pass\n")
    block = tree.body[0]
    assert isinstance(block, ast.AsyncFunctionDef)
    return block.body[:-1]


def normal(node: ast.AST) -> str:
    """Return the node as code, in one spelling."""
    return ast.unparse(node)


class _Number(ast.NodeTransformer):
    """Numbers variables in order of appearance; called functions and modules keep their names."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in MODULES:
            return node
        return ast.Name(self.numbers.setdefault(node.id, f"v{len(self.numbers)}"))

    def visit_Call(self, node: ast.Call) -> ast.Call:
        called = node.func if isinstance(node.func, ast.Name) else self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        node.func = called
        return node


def shape(node: ast.AST) -> str:
    """Return the node as code, with variables' names replaced by numbers."""
    return ast.unparse(_Number().visit(copy.deepcopy(node)))


def distinctiveness(node: ast.AST) -> int:
    """Return how much a piece of code reveals.

    This is its number of calls, operators, subscripts and attributes. A module and its attribute
    (`torch.zeros`) count as one name, a negative number as a number.
    """
    return sum(isinstance(part, WORK) and not is_plain(part) for part in ast.walk(node))


def is_plain(node: ast.AST) -> bool:
    """Return whether an operator or attribute does not count: -1, torch.zeros."""
    match node:
        case ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Attribute(value=ast.Name(id=module)):
            return module in MODULES
    return False
