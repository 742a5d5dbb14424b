"""Expressions: their possible values, and assignment to targets."""

from __future__ import annotations

import ast
from typing import Any

from grader.judging.flow.calls import Calls
from grader.judging.flow.syntax import is_dunder, is_lookup
from grader.judging.flow.tables import OPERATORS, SAFE_NAMES
from grader.judging.flow.values import (
    FOREIGN,
    IS_PLAIN,
    KEYS,
    NOTHING,
    Arguments,
    Box,
    Instance,
    OwnFunction,
    Scope,
    blend,
)
from grader.judging.learner_source import bound_in


class Expressions(Calls):
    """Work out the possible values of expressions.

    A method ``_Name`` handles nodes of the class ``ast.Name``, and so on.
    """

    def expr(self, node: ast.AST, scope: Scope, inner: bool = False) -> frozenset:
        """Return the possible values of an expression.

        Args:
            inner: whether it is only a step to an attribute, so that its own use is not reported.
        """
        found = getattr(self, f"_{type(node).__name__}", self._other)(node, scope)
        return found if inner else self.report_values(found, node)

    def _other(self, node: ast.AST, scope: Scope) -> frozenset:
        """Run an expression of a kind without a method of its own: it blends its parts."""
        parts = [self.expr(c, scope) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        return blend(NOTHING.union(*parts))

    def _Constant(self, node: ast.Constant, scope: Scope) -> frozenset:
        return IS_PLAIN

    def _JoinedStr(self, node: ast.AST, scope: Scope) -> frozenset:
        for child in ast.iter_child_nodes(node):
            self.expr(child, scope)
        return IS_PLAIN

    _FormattedValue = _Slice = _JoinedStr

    def _Compare(self, node: ast.Compare, scope: Scope) -> frozenset:
        sides = [self.expr(side, scope) for side in (node.left, *node.comparators)]
        for value in NOTHING.union(*sides):
            if isinstance(value, Instance):
                for name in ("__eq__", "__lt__", "__gt__", "__le__", "__ge__", "__contains__"):
                    self.dunder(value, name, [NOTHING.union(*sides)])
        return blend(NOTHING.union(*sides)) | IS_PLAIN

    def _Name(self, node: ast.Name, scope: Scope) -> frozenset:
        if is_dunder(node.id) and node.id not in SAFE_NAMES:
            self.report_hidden(node, "which reaches into the inside of Python's own objects")
        return self.load(node.id, scope)

    def _Attribute(self, node: ast.Attribute, scope: Scope) -> frozenset:
        return self.attribute(self.expr(node.value, scope, inner=True), node.attr, node)

    def _Subscript(self, node: ast.Subscript, scope: Scope) -> frozenset:
        self.expr(node.slice, scope)
        values = self.expr(node.value, scope)
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return self.item(values, index)

    def _Starred(self, node: ast.Starred, scope: Scope) -> frozenset:
        return self.iterate(self.expr(node.value, scope))

    def _List(self, node: Any, scope: Scope) -> frozenset:
        box = Box(id(node))
        exact = not any(isinstance(e, ast.Starred) for e in node.elts) and len(node.elts) < 64
        for index, element in enumerate(node.elts):
            self.put((box, index if exact else "*"), self.expr(element, scope))
        return frozenset({box})

    _Tuple = _Set = _List

    def _Dict(self, node: ast.Dict, scope: Scope) -> frozenset:
        box = Box(id(node), "dict")
        for key, value in zip(node.keys, node.values, strict=True):
            values = self.expr(value, scope)
            if key is None:
                self.pour(box, values)
            else:
                self.put((box, KEYS), self.expr(key, scope))
                self.put((box, "*"), values)
        return frozenset({box})

    def _ListComp(self, node: Any, scope: Scope) -> frozenset:
        known = self.scopes.get(id(node))
        if known is None:
            names = bound_in(g.target for g in node.generators)
            known = self.scopes[id(node)] = Scope("comprehension", scope, frozenset(names))
        for generator in node.generators:
            self.assign(generator.target, self.iterate(self.expr(generator.iter, known)), known)
            for test in generator.ifs:
                self.expr(test, known)
        box = Box(id(node), "dict" if isinstance(node, ast.DictComp) else "list")
        if isinstance(node, ast.DictComp):
            self.put((box, KEYS), self.expr(node.key, known))
            self.put((box, "*"), self.expr(node.value, known))
        else:
            self.put((box, "*"), self.expr(node.elt, known))
        return frozenset({box})

    _SetComp = _GeneratorExp = _DictComp = _ListComp

    def _Lambda(self, node: ast.Lambda, scope: Scope) -> frozenset:
        return frozenset({self.define(node, scope)})

    def define(self, node: Any, scope: Scope) -> OwnFunction:
        """Return the function of a definition or lambda, and bind its parameters' defaults."""
        function = self.function(node, scope)
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args]
        for a, default in zip(
            named[len(named) - len(arguments.defaults) :], arguments.defaults, strict=True
        ):
            self.put((function.scope, a.arg), self.expr(default, scope))
        for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                self.put((function.scope, a.arg), self.expr(default, scope))
        for a in (arguments.vararg, arguments.kwarg):
            if a:
                kind = "dict" if a is arguments.kwarg else "list"
                self.put((function.scope, a.arg), frozenset({Box(id(a), kind)}))
        return function

    def _NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> frozenset:
        values = self.expr(node.value, scope)
        here = scope
        while here.kind == "comprehension":
            here = here.above()
        self.store(node.target.id, values, here)
        return values

    def _IfExp(self, node: ast.IfExp, scope: Scope) -> frozenset:
        self.expr(node.test, scope)
        return self.expr(node.body, scope) | self.expr(node.orelse, scope)

    def _BoolOp(self, node: ast.BoolOp, scope: Scope) -> frozenset:
        return NOTHING.union(*(self.expr(v, scope) for v in node.values))

    def _Yield(self, node: Any, scope: Scope) -> frozenset:
        values = self.expr(node.value, scope) if node.value else IS_PLAIN
        function = self.function_of(scope)
        if function is not None:
            box = Box(id(function.node))
            if isinstance(node, ast.YieldFrom):
                values = self.iterate(values)
            self.put((box, "*"), values)
            self.put(("returns", function), frozenset({box}))
        return IS_PLAIN

    _YieldFrom = _Yield

    def _BinOp(self, node: ast.BinOp, scope: Scope) -> frozenset:
        left, right = self.expr(node.left, scope), self.expr(node.right, scope)
        return self.operator(node.op, left, right)

    def operator(
        self, op: ast.operator, left: frozenset, right: frozenset, prefix: str = ""
    ) -> frozenset:
        """Return what an operator of two operands gives.

        Args:
            prefix: ``i`` for an assignment such as ``+=``.
        """
        name = OPERATORS.get(type(op).__name__, "")
        found: set = set()
        for value in left:
            if isinstance(value, Instance):
                found |= prefix and self.dunder(value, f"__{prefix}{name}__", [right]) or NOTHING
                found |= self.dunder(value, f"__{name}__", [right])
                if self.is_foreign(value.of):
                    found.add(FOREIGN)
            elif isinstance(value, Box):
                found.add(value)
                if prefix:
                    self.pour(value, right)
            else:
                found |= blend(frozenset({value}))
        for value in right:
            if isinstance(value, Instance):
                found |= self.dunder(value, f"__r{name}__", [left])
            elif not isinstance(value, Box):
                found |= blend(frozenset({value}))
            elif not prefix:
                found.add(value)
        return frozenset(found)

    def _UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> frozenset:
        values = self.expr(node.operand, scope)
        found: set = set()
        for value in values:
            if isinstance(value, Instance):
                found |= self.dunder(value, "__neg__", []) | self.dunder(value, "__invert__", [])
            else:
                found |= blend(frozenset({value}))
        return frozenset(found)

    def _Call(self, node: ast.Call, scope: Scope) -> frozenset:
        args = Arguments()
        for a in node.args:
            if isinstance(a, ast.Starred):
                args.spread |= self.iterate(self.expr(a.value, scope))
            elif args.spread:
                args.spread |= self.expr(a, scope)
            else:
                args.given.append(self.expr(a, scope, inner=is_lookup(node)))
        for word in node.keywords:
            values = self.expr(word.value, scope)
            if word.arg is None:
                args.spread |= self.item(values, None)
            else:
                args.named[word.arg] = values
        callees = self.expr(node.func, scope, inner=is_lookup(node))
        return NOTHING.union(*(self.call_value(c, args, scope, node) for c in callees))

    def assign(self, target: ast.AST, values: frozenset, scope: Scope) -> None:
        """Bind what an assignment's target names."""
        if isinstance(target, ast.Name):
            self.store(target.id, values, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = any(isinstance(t, ast.Starred) for t in target.elts)
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    box = Box(id(part))
                    self.put((box, "*"), self.iterate(values))
                    self.assign(part.value, frozenset({box}), scope)
                else:
                    self.assign(part, self.item(values, None if starred else index), scope)
        elif isinstance(target, ast.Attribute):
            for base in self.expr(target.value, scope, inner=True):
                self.set_attribute(base, target.attr, values, target)
        elif isinstance(target, ast.Subscript):
            keys = self.expr(target.slice, scope)
            for base in self.expr(target.value, scope):
                if isinstance(base, Box):
                    self.put((base, "*"), values)
                    self.put((base, KEYS), keys)
                elif isinstance(base, Instance):
                    self.dunder(base, "__setitem__", [keys, values])
        elif isinstance(target, ast.Starred):
            self.assign(target.value, values, scope)
