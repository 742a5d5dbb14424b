"""The learner's functions: their scopes, their parameters, and calls of them."""

from __future__ import annotations

import ast
from typing import Any

from grader.judging.flow.names import Names
from grader.judging.flow.syntax import decorators, same_scope
from grader.judging.flow.values import (
    IS_FOREIGN,
    IS_PLAIN,
    KEYS,
    NOTHING,
    Arguments,
    Bound,
    Box,
    Instance,
    OwnClass,
    OwnFunction,
    Scope,
)
from grader.judging.learner_source import bound_in


class Functions(Names):
    """Bind the parameters of the learner's functions."""

    def function(self, node: Any, scope: Scope) -> OwnFunction:
        """Return the function of a definition or lambda, the same each time, with its scope."""
        known = self.functions.get(id(node))
        if known is not None and known.quiet and not self.quiet:
            known.quiet, self.changed = False, True
        if known is None:
            arguments = node.args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            every += tuple(a for a in (arguments.vararg, arguments.kwarg) if a)
            names = {a.arg for a in every}
            body = node.body if isinstance(node.body, list) else [node.body]
            inner = [n for statement in body for n in same_scope(statement)]
            outer = {n for i in inner if isinstance(i, ast.Global) for n in i.names}
            other = {n for i in inner if isinstance(i, ast.Nonlocal) for n in i.names}
            names |= bound_in(body) - outer - other
            own = Scope("function", scope, frozenset(names), frozenset(outer))
            known = self.functions[id(node)] = OwnFunction(node, own, quiet=self.quiet)
            own.function = known
            self.changed = True
        return known

    def function_of(self, scope: Scope) -> OwnFunction | None:
        """Return the function whose body a scope belongs to, or None."""
        here: Scope | None = scope
        while here is not None and here.kind == "comprehension":
            here = here.parent
        return here.function if here is not None and here.kind == "function" else None

    def bind(self, function: OwnFunction, args: Arguments) -> frozenset:
        """Bind the parameters of a learner's function, and return what it is known to return.

        Its body is run once in each pass, with all values that its parameters may have.
        """
        if (self.now is not None or self.early) and not function.early:
            function.early = self.changed = True
        arguments = function.node.args
        named = [*arguments.posonlyargs, *arguments.args]
        if args.spread or function.escaped:
            rest = args.all() - self.self_of(function)
            for a in [*named[self.has_self(function) :], *arguments.kwonlyargs]:
                self.put((function.scope, a.arg), rest)
        for index, values in enumerate(args.given):
            if index < len(named):
                self.put((function.scope, named[index].arg), values)
            elif arguments.vararg:
                self.put((Box(id(arguments.vararg)), "*"), values)
        known = {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
        for name, values in args.named.items():
            if name in known:
                self.put((function.scope, name), values)
            elif arguments.kwarg:
                self.put((Box(id(arguments.kwarg), "dict"), "*"), values)
                self.put((Box(id(arguments.kwarg), "dict"), KEYS), IS_PLAIN)
        if args.spread:
            for a, kind in ((arguments.vararg, "list"), (arguments.kwarg, "dict")):
                if a:
                    self.put((Box(id(a), kind), "*"), args.spread)
        return self.get(("returns", function))

    def escape(self, called: OwnFunction | Bound, values: frozenset = IS_FOREIGN) -> None:
        """Note that other code may call a function, with these values as any of its arguments."""
        function = called.function if isinstance(called, Bound) else called
        if not function.escaped:
            function.escaped = self.changed = True
        arguments = function.node.args
        named = [*arguments.posonlyargs, *arguments.args][self.has_self(function) :]
        for a in [*named, *arguments.kwonlyargs]:
            self.put((function.scope, a.arg), values)
        for a, kind in ((arguments.vararg, "list"), (arguments.kwarg, "dict")):
            if a:
                self.put((Box(id(a), kind), "*"), values)

    def has_self(self, function: OwnFunction) -> bool:
        """Return whether a function's first parameter is an instance or class."""
        return function.of_class is not None and "staticmethod" not in decorators(function.node)

    def self_of(self, function: OwnFunction) -> frozenset:
        """Return the instance that is passed as a method's first argument; empty for a function."""
        return frozenset({Instance(function.of_class)}) if function.of_class else NOTHING

    def set_self(self, function: OwnFunction, cls: OwnClass) -> None:
        """Bind a method's first parameter to an instance, or to the class."""
        arguments = function.node.args
        named = [*arguments.posonlyargs, *arguments.args]
        kinds = decorators(function.node)
        if named and "staticmethod" not in kinds:
            first = (
                cls if "classmethod" in kinds or function.node.name == "__new__" else Instance(cls)
            )
            self.put((function.scope, named[0].arg), frozenset({first}))
