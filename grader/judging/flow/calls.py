"""Calls of anything: functions, classes, instances and containers."""

from __future__ import annotations

import ast
from typing import Any

from grader.judging.flow.library_calls import LibraryCalls
from grader.judging.flow.tables import GROWS, PLAIN_ATTRIBUTES
from grader.judging.flow.values import (
    IS_FOREIGN,
    IS_PLAIN,
    KEYS,
    NOTHING,
    PLAIN,
    Arguments,
    Bound,
    Box,
    BoxMethod,
    Instance,
    KeptValue,
    Method,
    OwnClass,
    OwnFunction,
    Parent,
    Path,
    Scope,
    blend,
    bound,
    carried,
)


class Calls(LibraryCalls):
    """Work out what a call returns, whatever is called."""

    def call_value(
        self, callee: Any, args: Arguments, scope: Scope, node: ast.AST | None
    ) -> frozenset:
        """Return what a call of a value returns.

        Args:
            callee: one possible value of what is called.
            node: the call, for reports; None if Python makes it, such as for an operator.
        """
        if isinstance(callee, OwnFunction):
            return self.bind(callee, args)
        if isinstance(callee, Bound):
            first = frozenset({callee.to})
            return self.bind(
                callee.function, Arguments([first, *args.given], args.named, args.spread)
            )
        if isinstance(callee, OwnClass):
            return self.construct(callee, args)
        if isinstance(callee, Instance):
            return self.call_instance(callee, args)
        if isinstance(callee, Path):
            return self.call_path(callee.name, args, scope, node)
        if isinstance(callee, BoxMethod):
            return self.call_box(callee, args, node)
        if isinstance(callee, Parent) or callee == PLAIN:
            return blend(args.all()) | IS_PLAIN
        if isinstance(callee, KeptValue):
            return frozenset({callee})
        self.hand_to_library(args.all())
        found = carried(args.all())
        if isinstance(callee, Method):
            if self.quiet:
                found |= {KeptValue(f".{callee.name}")}
            return found | (IS_PLAIN if callee.name in PLAIN_ATTRIBUTES else IS_FOREIGN)
        return found | IS_FOREIGN

    def construct(self, cls: OwnClass, args: Arguments) -> frozenset:
        """Return an instance of a class of the learner, after a call of its ``__init__``."""
        made = Instance(cls)
        found = frozenset({made})
        for one in self.family(cls):
            if "__init__" in one.scope.names:
                for function in self.get((one.scope, "__init__")):
                    self.call_value(bound(function, made), args, one.scope, None)
                break
            if one.fields:
                for name, values in zip(one.fields, args.given, strict=False):
                    self.put((one, name), values)
                for name, values in args.named.items():
                    self.put((one, name), values)
                if args.spread:
                    for name in one.fields:
                        self.put((one, name), args.spread)
                break
        else:
            if self.is_foreign(cls):
                self.hand_to_library(args.all())
                found |= carried(args.all())
        return found

    def call_instance(self, instance: Instance, args: Arguments) -> frozenset:
        """Return what a call of an instance returns: ``__call__``, or a module's ``forward``."""
        found = NOTHING
        for name in ("__call__", "forward"):
            for cls in self.family(instance.of):
                if name in cls.scope.names:
                    for function in self.get((cls.scope, name)):
                        found |= self.call_value(bound(function, instance), args, cls.scope, None)
            if found:
                return found
        return found | (IS_FOREIGN if self.is_foreign(instance.of) else NOTHING)

    def call_box(self, method: BoxMethod, args: Arguments, node: ast.AST | None) -> frozenset:
        """Return what a method of a container returns, and put its arguments in."""
        box, name = method.box, method.name
        one = frozenset({box})
        inside, every = self.item(one, None), args.all()
        if name in GROWS:
            poured = name in ("extend", "update", "extendleft")
            if poured:
                self.pour(box, every - {v for v in every if isinstance(v, (Instance, str))})
                self.put((box, "*"), self.iterate(every) - IS_PLAIN)
            else:
                self.put((box, "*"), NOTHING.union(*args.given[-1:], args.spread))
                if name == "setdefault" and args.given:
                    self.put((box, KEYS), args.given[0])
            return inside | (self.item(one, None) if name == "setdefault" else IS_PLAIN)
        if name == "items":
            pair, pairs = Box(box.site, "pair"), Box(box.site, "pairs")
            self.put((pair, 0), self.get((box, KEYS)))
            self.put((pair, 1), inside)
            self.put((pairs, "*"), frozenset({pair}))
            return frozenset({pairs})
        if name in ("keys", "values"):
            part = Box(box.site, name)
            self.put((part, "*"), self.get((box, KEYS)) if name == "keys" else inside)
            return frozenset({part})
        if name == "sort":
            for value in every:
                self.call_value(value, Arguments([inside]), self.notebook, node)
            return IS_PLAIN
        if name in ("copy", "union", "intersection", "difference"):
            self.pour(box, every)
            return one
        if name in ("index", "count", "remove", "clear", "reverse", "join"):
            return IS_PLAIN
        return inside | every | IS_PLAIN
