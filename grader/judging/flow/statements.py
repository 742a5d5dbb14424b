"""Statements, definitions of classes, and imports."""

from __future__ import annotations

import ast
from typing import Any

from grader.judging.flow.expressions import Expressions
from grader.judging.flow.paths import canonical
from grader.judging.flow.syntax import loaded
from grader.judging.flow.values import (
    IS_PLAIN,
    NOTHING,
    Arguments,
    Instance,
    OwnClass,
    OwnFunction,
    Path,
    PathTypes,
    Scope,
    only_wraps,
)
from grader.judging.learner_source import COMPREHENSIONS, Function, bound_in


class Statements(Expressions):
    """Run statements."""

    def head(self, node: ast.stmt, scope: Scope) -> None:
        """Run a statement; of a compound one at the outermost level only the head."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self.assign(node.target, self.iterate(self.expr(node.iter, scope)), scope)
        elif isinstance(node, (ast.If, ast.While)):
            self.expr(node.test, scope)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self.enter(node, scope)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            for handler in node.handlers:
                if handler.name:
                    self.store(handler.name, IS_PLAIN, scope)
        elif isinstance(node, ast.Match):
            subject = self.expr(node.subject, scope)
            for case in node.cases:
                self.pattern(case, subject, scope)
        else:
            self.statement(node, scope)

    def enter(self, node: Any, scope: Scope) -> None:
        """Run the head of a ``with`` statement."""
        for one in node.items:
            values = self.expr(one.context_expr, scope)
            entered: set = set()
            for value in values:
                if isinstance(value, Instance):
                    entered |= self.dunder(value, "__enter__", []) or {value}
                    self.dunder(value, "__exit__", [IS_PLAIN] * 3)
                else:
                    entered.add(value)
            if one.optional_vars is not None:
                self.assign(one.optional_vars, frozenset(entered), scope)

    def pattern(self, case: ast.match_case, subject: frozenset, scope: Scope) -> None:
        """Bind the names of a ``case``, and run its guard."""
        inside = subject | self.iterate(subject)
        for node in ast.walk(case.pattern):
            if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                self.store(node.name, inside, scope)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self.store(node.rest, inside, scope)
            elif isinstance(node, ast.MatchClass):
                self.expr(node.cls, scope)
                for name in node.kwd_attrs:
                    inside |= self.attribute(subject, name, node)
            elif isinstance(node, ast.MatchValue):
                self.expr(node.value, scope)
        if case.guard:
            self.expr(case.guard, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        """Run a statement with everything inside of it."""
        if isinstance(node, Function):
            function = self.define(node, scope)
            values: frozenset = frozenset({function})
            for decorator in reversed(node.decorator_list):
                values = self.decorate(decorator, values, function, scope)
            self.annotations(node, scope)
            self.store(node.name, values, scope)
        elif isinstance(node, ast.ClassDef):
            cls = self.make_class(node, scope)
            values = frozenset({cls})
            for decorator in reversed(node.decorator_list):
                values = self.decorate(decorator, values, cls, scope)
            self.store(node.name, values, scope)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imported(node, scope)
        elif isinstance(node, ast.Assign):
            values = self.expr(node.value, scope)
            for target in node.targets:
                self.assign(target, values, scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.expr(node.value, scope), scope)
            self.annotation(node.annotation, scope)
        elif isinstance(node, ast.AugAssign):
            old = self.expr(loaded(node.target), scope)
            values = self.operator(node.op, old, self.expr(node.value, scope), "i")
            self.assign(node.target, old | values if values else old, scope)
        elif isinstance(node, ast.Return):
            values = self.expr(node.value, scope) if node.value else IS_PLAIN
            returning = self.function_of(scope)
            if returning is not None:
                self.put(("returns", returning), values)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if not isinstance(target, ast.Name):
                    self.expr(loaded(target), scope)
        elif isinstance(node, (ast.Raise, ast.Assert, ast.Expr)):
            for child in ast.iter_child_nodes(node):
                self.expr(child, scope)
        elif not isinstance(node, (ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue)):
            self.head(node, scope)
            for name in ("body", "orelse", "finalbody"):
                for inner in getattr(node, name, []):
                    self.statement(inner, scope)
            for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                for inner in part.body:
                    self.statement(inner, scope)

    def decorate(
        self, decorator: ast.expr, values: frozenset, thing: Any, scope: Scope
    ) -> frozenset:
        """Return what a decorator makes of some values.

        Args:
            thing: the function or class as it was defined.
        """
        deco = self.expr(decorator, scope)
        found: set = set()
        for value in deco:
            if isinstance(value, Path) and value.name.partition(".")[0] == "builtins":
                found |= values  # staticmethod, property
            elif isinstance(value, PathTypes):
                found |= values
                if isinstance(thing, OwnFunction) and not only_wraps(value):
                    self.escape(thing)
            else:
                found |= self.call_value(value, Arguments([values]), scope, decorator)
        return frozenset(found)

    def annotations(self, node: Any, scope: Scope) -> None:
        """Run the annotations of a function's parameters and of its result."""
        arguments = node.args
        for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.annotation(a.annotation, scope)
        self.annotation(node.returns, scope)

    def annotation(self, node: ast.expr | None, scope: Scope) -> None:
        """Run an annotation if it calls or binds something; a type is only a name."""
        doing = (ast.Call, ast.NamedExpr, ast.Lambda, *COMPREHENSIONS)
        if node is not None and any(isinstance(n, doing) for n in ast.walk(node)):
            self.expr(node, scope)

    def imported(self, node: Any, scope: Scope) -> None:
        """Bind the names of an import, and report what it takes from libraries."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                name, path, named = alias.asname or whole, whole, alias.name
            else:
                module = "." * node.level + (node.module or "")
                name, path = alias.asname or alias.name, f"{module}.{alias.name}"
                named = path
            path = canonical(path)
            why = self.hostile(named) or self.hostile(path)
            if why:
                self.report_hidden(node, why)
            elif isinstance(node, ast.ImportFrom) and alias.name != "*":
                self.report_use(path, node)
            if alias.name != "*":
                self.store(name, frozenset({Path(path)}), scope)

    def make_class(self, node: ast.ClassDef, scope: Scope) -> OwnClass:
        """Return the class of a definition, the same each time, and run its body."""
        known = self.classes.get(id(node))
        if known is None:
            own = Scope("class", scope, frozenset(bound_in(node.body)))
            annotated = (
                s.target.id
                for s in node.body
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            )
            known = self.classes[id(node)] = OwnClass(own, tuple(annotated))
            self.own_names |= own.names | set(known.fields)
            self.changed = True
        bases = NOTHING.union(*(self.expr(b, scope) for b in node.bases))
        for word in node.keywords:
            bases |= self.expr(word.value, scope)
        if bases - known.bases:
            known.bases |= bases
            self.changed = True
        for statement in node.body:
            self.statement(statement, known.scope)
        for name in known.scope.names:
            for value in self.get((known.scope, name)):
                if isinstance(value, OwnFunction) and value.scope.parent is known.scope:
                    value.of_class = value.of_class or known
                    self.set_self(value, known)
                    if name in ("__torch_function__", "__torch_dispatch__") or (
                        self.is_foreign(known) and name != "__init__"
                    ):
                        self.escape(value)
        return known

    def run_body(self, function: OwnFunction) -> None:
        """Run a function's body with all values that its parameters may have."""
        node, scope = function.node, function.scope
        self.early, self.quiet = function.early, function.quiet
        if isinstance(node, ast.Lambda):
            self.put(("returns", function), self.expr(node.body, scope))
        else:
            for statement in node.body:
                self.statement(statement, scope)
        self.early = self.quiet = False
