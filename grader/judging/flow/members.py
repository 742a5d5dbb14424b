"""Attributes and elements of modules, foreign values, and the learner's own objects."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from grader.judging.flow.functions import Functions
from grader.judging.flow.paths import canonical
from grader.judging.flow.syntax import decorators, is_dunder
from grader.judging.flow.tables import INSIDES, KEEPING, LIBRARIES, PLAIN_ATTRIBUTES, SAFE_DUNDERS
from grader.judging.flow.values import (
    FOREIGN,
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
    bound,
    is_librarys,
)


class Members(Functions):
    """Read and set attributes and elements."""

    def attribute(self, bases: frozenset, name: str, node: ast.AST) -> frozenset:
        """Return the possible values of an attribute, and report its use where it is foreign."""
        kept = name in KEEPING and self.rule.attributes and not any(map(is_librarys, bases))
        if not kept and (name in INSIDES or is_dunder(name)):
            self.dunder_name(name, node)
        if not bases and name not in self.own_names:
            self.report_use(f".{name}", node)
        found: set = set()
        for base in bases:
            if isinstance(base, Path):
                found.add(Path(canonical(f"{base.name}.{name}")))
            elif base == FOREIGN:
                self.report_use(f".{name}", node)
                found.add(Method(name))
            elif base == PLAIN:
                found.add(PLAIN)
            elif isinstance(base, Method):
                self.report_use(f".{name}", node)
                found.add(PLAIN if base.name in PLAIN_ATTRIBUTES else Method(name))
            elif isinstance(base, KeptValue):
                found.add(base)
            elif isinstance(base, Box):
                own = self.get((base, name))
                found |= own or {BoxMethod(base, name)}
            elif isinstance(base, (Instance, OwnClass, Parent)):
                found |= self.member(base, name, node)
            elif isinstance(base, (OwnFunction, Bound, BoxMethod)):
                function = base.function if isinstance(base, Bound) else base
                found |= self.get((function, name))
        return frozenset(found)

    def set_attribute(self, base: Any, name: str, values: frozenset, node: ast.AST) -> None:
        """Set an attribute of a value; of something in a module, report it as :class:`Hidden`."""
        if isinstance(base, Path):
            self.report_hidden(node, f"which changes what `{base.name}` has for everybody")
        elif isinstance(base, (Instance, OwnClass)):
            self.put((base.of if isinstance(base, Instance) else base, name), values)
            self.own_names.add(name)
        elif isinstance(base, (OwnFunction, Box)):
            self.put((base, name), values)
        elif isinstance(base, Bound):
            self.put((base.function, name), values)
        elif base == FOREIGN and name == "requires_grad":
            self.report_use(".requires_grad", node)
        if name in INSIDES or is_dunder(name):
            self.dunder_name(name, node)

    def dunder_name(self, name: str, node: ast.AST) -> None:
        """Report a special name that gives access to the inside of Python's objects."""
        if name in INSIDES or name[2:-2] not in SAFE_DUNDERS:
            self.report_hidden(node, "which reaches into the inside of Python's own objects")

    def member(self, base: Any, name: str, node: ast.AST) -> frozenset:
        """Return an attribute of a learner's class, of an instance of it, or of ``super()``."""
        of = base if isinstance(base, OwnClass) else base.of
        family = list(self.family(of))[isinstance(base, Parent) :]
        found: set = set()
        for cls in family:
            values = self.get((cls, name))
            if name in cls.scope.names:
                values |= self.get((cls.scope, name))
            for value in values:
                if isinstance(value, OwnFunction) and value.of_class is cls:
                    found |= self.method(value, base)
                else:
                    found.add(value)
            if values:
                break
        found |= NOTHING.union(*(self.get((cls, "*")) for cls in family))
        if found:
            return frozenset(found)
        for cls in family:
            if "__getattr__" in cls.scope.names and isinstance(base, Instance):
                found |= self.dunder(base, "__getattr__", [IS_PLAIN])
        if found:
            return frozenset(found)
        if self.is_foreign(of):
            self.report_use(f".{name}", node)
            return frozenset({Method(name)})
        own = any(name in cls.scope.names or name in cls.fields for cls in family)
        return NOTHING if own else IS_PLAIN

    def method(self, function: OwnFunction, base: Any) -> set:
        """Return what access to a method gives: a bound method, or what its decorator returns."""
        kinds = decorators(function.node)
        if "staticmethod" in kinds:
            return {function}
        to = Instance(base.of) if isinstance(base, Parent) else base
        if "classmethod" in kinds:
            return {Bound(function, to.of if isinstance(to, Instance) else to)}
        if isinstance(to, OwnClass):
            return {function}
        if kinds - {"abstractmethod", "override"}:
            # a property, or what another decorator makes of it
            return {Bound(function, to)} | self.get(("returns", function))
        return {Bound(function, to)}

    def family(self, cls: OwnClass, seen: tuple = ()) -> Iterator[OwnClass]:
        """Yield a class of the learner and those of its bases that the learner wrote, in order."""
        yield cls
        for base in cls.bases:
            if isinstance(base, OwnClass) and base not in seen:
                yield from self.family(base, (*seen, cls))

    def methods(self, cls: OwnClass) -> Iterator[OwnFunction]:
        """Yield the methods of a class and of its bases that the learner wrote."""
        for one in self.family(cls):
            for name in one.scope.names:
                for value in self.get((one.scope, name)):
                    if isinstance(value, OwnFunction):
                        yield value

    def is_foreign(self, cls: OwnClass) -> bool:
        """Return whether a class has a base of a library, or one that is unknown."""
        return any(
            not isinstance(base, (OwnClass, Path))
            or (isinstance(base, Path) and base.name.partition(".")[0] in LIBRARIES)
            for one in self.family(cls)
            for base in one.bases
        )

    def dunder(self, instance: Instance, name: str, args: list[frozenset]) -> frozenset:
        """Return what a special method of an instance returns that its class or a base defines.

        Args:
            name: the method's name; without a definition of it the result is empty.
        """
        found = NOTHING
        for cls in self.family(instance.of):
            if name in cls.scope.names:
                for function in self.get((cls.scope, name)):
                    method = bound(function, instance)
                    found |= self.call_value(method, Arguments(args), cls.scope, None)
                break
        return found

    def item(self, values: frozenset, index: Any) -> frozenset:
        """Return what an index of some values gives; the index None stands for any."""
        found: set = set()
        for value in values:
            if isinstance(value, Box):
                exact = self.get((value, index)) if type(index) is int else NOTHING
                found |= exact | self.get((value, "*"))
                if not exact:
                    for place in range(self.size_of(value)):
                        found |= self.get((value, place))
            elif isinstance(value, Instance):
                found |= self.dunder(value, "__getitem__", [IS_PLAIN]) or {value}
            elif isinstance(value, Method):
                found.add(PLAIN if value.name in PLAIN_ATTRIBUTES else FOREIGN)
            else:
                found.add(value)
        return frozenset(found)

    def size_of(self, box: Box) -> int:
        """Return how many first elements may be known one by one; 0 if none are."""
        return 64 if (box, 0) in self.values or (box, 1) in self.values else 0

    def iterate(self, values: frozenset) -> frozenset:
        """Return what iteration over some values gives."""
        found: set = set()
        for value in values:
            if isinstance(value, Box) and value.kind == "dict":
                found |= self.get((value, KEYS))
            elif isinstance(value, Instance):
                inner = self.dunder(value, "__iter__", [])
                found |= self.iterate(inner - {value}) or {value}
                found |= self.dunder(value, "__next__", [])
            else:
                found |= self.item(frozenset({value}), None)
        return frozenset(found)

    def pour(self, box: Box, values: frozenset) -> None:
        """Put the elements of some containers into another one."""
        for value in values:
            if isinstance(value, Box):
                self.put((box, "*"), self.item(frozenset({value}), None))
                self.put((box, KEYS), self.get((value, KEYS)))
            elif not isinstance(value, (OwnFunction, OwnClass)):
                self.put((box, "*"), self.item(frozenset({value}), None))
                self.put((box, KEYS), IS_PLAIN)

    def hand_to_library(self, values: Iterable[Any]) -> None:
        """Note that a library gets these values and may call them."""
        for value in values:
            if isinstance(value, (OwnFunction, Bound)):
                self.escape(value)
            elif isinstance(value, Instance):
                self.dunder(value, "__call__", [IS_FOREIGN])
