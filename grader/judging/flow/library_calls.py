"""Calls of functions and classes that belong to Python or to a library."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from grader.judging.flow.members import Members
from grader.judging.flow.syntax import literal_argument
from grader.judging.flow.tables import COLLECTS, GIVES_PLAIN, LIBRARIES, REDUCES
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
    Instance,
    KeptValue,
    OwnClass,
    OwnFunction,
    Parent,
    Path,
    Scope,
    carried,
    is_librarys,
)
from grader.judging.learner_source import bound_in


@cache
def _named(name: str) -> ast.Name:
    """Return a node that stands for a call without code, such as that of ``__add__ = getattr``."""
    return ast.Name(name, ast.Load())


class LibraryCalls(Members):
    """Work out what Python's and the libraries' functions return."""

    def call_path(
        self, path: str, args: Arguments, scope: Scope, node: ast.AST | None
    ) -> frozenset:
        """Return what a function or class of a module returns, by its dotted path."""
        root, _, name = path.partition(".")
        every = args.all()
        if root == "builtins":
            return self.call_builtin(name, args, scope, node)
        if root in LIBRARIES:
            self.hand_to_library(every)
            if path in ("torch.Size", "torch.device", "torch.finfo", "torch.numel"):
                return IS_PLAIN
            found = carried(every) | IS_FOREIGN
            return found | {KeptValue(path)} if self.quiet else found
        if path in ("operator.attrgetter", "operator.methodcaller"):
            return self.getter(node)
        if path == "operator.itemgetter":
            return IS_PLAIN
        if path in ("collections.defaultdict", "collections.OrderedDict", "collections.Counter"):
            box = Box(id(node), "dict")
            for value in every:
                if isinstance(value, (OwnFunction, OwnClass, Bound, Path)):
                    self.put((box, "*"), self.call_value(value, Arguments(), scope, node))
                else:
                    self.pour(box, frozenset({value}))
            self.put((box, KEYS), IS_PLAIN)
            return frozenset({box})
        if path == "types.SimpleNamespace":
            box = Box(id(node), "namespace")
            for word, values in args.named.items():
                self.put((box, word), values)
            return frozenset({box})
        if path == "collections.namedtuple":
            return frozenset({self.named_tuple(node)})
        if path == "collections.deque":
            return self.call_builtin("list", args, scope, node)
        if path in ("functools.partial", "functools.partialmethod"):
            for value in every:
                if isinstance(value, (OwnFunction, Bound)):
                    self.escape(value, every - {value})
            return every
        if root == "math":
            return IS_PLAIN
        return self.through(args)

    def through(self, args: Arguments) -> frozenset:
        """Return what a function of Python's library returns that calls its arguments."""
        every = args.all()
        inside = self.iterate(every)
        found = every | inside | IS_PLAIN
        for value in every:
            if isinstance(value, (OwnFunction, Bound)):
                function = value.function if isinstance(value, Bound) else value
                data = frozenset(
                    v for v in inside | every if not isinstance(v, OwnFunction | Bound)
                )
                self.escape(function, data | self.get(("returns", function)))
                found |= self.get(("returns", function))
            elif isinstance(value, Path) and value.name.partition(".")[0] in LIBRARIES:
                found |= IS_FOREIGN
        return found

    def named_tuple(self, node: Any) -> OwnClass:
        """Return the class that a call of ``namedtuple`` makes, the same each time."""
        known = self.classes.get(id(node))
        if known is None:
            try:
                text = ast.literal_eval(node.args[1])
                names = text.replace(",", " ").split() if isinstance(text, str) else list(text)
            except Exception:
                names = []
            fields = tuple(n for n in names if isinstance(n, str))
            known = self.classes[id(node)] = OwnClass(Scope("class", self.notebook), fields)
            self.own_names |= set(fields)
            self.changed = True
        return known

    def getter(self, node: Any) -> frozenset:
        """Return what ``attrgetter`` or ``methodcaller`` makes, and report what it will look up."""
        for a in getattr(node, "args", []):
            if not (isinstance(a, ast.Constant) and isinstance(a.value, str)):
                self.report_hidden(node, "which asks for a name that is only known when it runs")
                continue
            for name in a.value.split("."):
                if name not in self.own_names:
                    self.report_use(f".{name}", node)
            if "methodcaller" in ast.unparse(node.func):
                break
        return IS_FOREIGN

    def call_builtin(self, name: str, args: Arguments, scope: Scope, node: Any) -> frozenset:
        """Return what a built-in function or class returns, by its name."""
        node = node or _named(name)
        every = args.all()
        first = args.given[0] if args.given else args.spread
        if name == "getattr":
            return self.call_getattr(args, scope, node)
        if name in ("setattr", "delattr"):
            literal = literal_argument(node, 1)
            for base in first:
                self.set_attribute(base, literal or "*", NOTHING.union(*args.given[2:3]), node)
            return IS_PLAIN
        if name == "vars":
            return self.call_vars(first, args, node)
        if name == "super":
            function = self.function_of(scope)
            while function is not None and function.of_class is None:
                function = self.function_of(function.scope.above())
            of = function and function.of_class
            return frozenset({Parent(of)}) if of else IS_FOREIGN
        if name == "type" and len(args.given) == 1:
            return frozenset(v.of if isinstance(v, Instance) else v for v in first)
        if name in GIVES_PLAIN:
            for value in first:
                if isinstance(value, Instance):
                    dunders = ("__len__", "__repr__", "__str__", "__int__", "__float__", "__bool__")
                    for dunder in (*dunders, "__hash__", "__format__"):
                        self.dunder(value, dunder, [])
            return IS_PLAIN
        if name == "dict":
            box = Box(id(node), "dict")
            for values in args.given:
                for value in values:
                    if isinstance(value, Box) and value.kind != "dict":
                        pairs = self.iterate(frozenset({value}))
                        self.put((box, KEYS), self.item(pairs, 0))
                        self.put((box, "*"), self.item(pairs, 1))
                    else:
                        self.pour(box, frozenset({value}))
            for values in args.named.values():
                self.put((box, "*"), values)
                self.put((box, KEYS), IS_PLAIN)
            self.put((box, "*"), args.spread)
            return frozenset({box})
        if name in ("zip", "enumerate"):
            row, rows = Box(id(node), "pair"), Box(id(node), "pairs")
            parts = [self.iterate(values) for values in args.given]
            if name == "enumerate":
                parts = [IS_PLAIN, *parts[:1]]
            for index, values in enumerate(parts):
                self.put((row, index), values)
            self.put((row, "*"), self.iterate(args.spread) | args.spread)
            self.put((rows, "*"), frozenset({row}))
            return frozenset({rows})
        if name in COLLECTS:
            return self.collect(name, args, scope, node)
        if name in REDUCES:
            return self.reduce(name, args, scope, node)
        if name in ("staticmethod", "classmethod", "property"):
            return every
        return self.through(args)

    def collect(self, name: str, args: Arguments, scope: Scope, node: Any) -> frozenset:
        """Return the container that ``list``, ``sorted``, ``map`` and the like make."""
        box = Box(id(node))
        sources = args.given[1:] if name in ("map", "filter") else args.given[:1]
        inside = [self.iterate(values) for values in sources] or [NOTHING]
        inside[0] |= args.spread | self.iterate(args.spread)
        if name == "map":
            made = NOTHING
            for function in args.given[0] if args.given else NOTHING:
                made |= self.call_value(function, Arguments(list(inside)), scope, node)
            self.put((box, "*"), made)
        else:
            callers = args.given[0] if name == "filter" and args.given else NOTHING
            for function in (*callers, *args.named.get("key", NOTHING)):
                self.call_value(function, Arguments([inside[0]]), scope, node)
            self.put((box, "*"), inside[0])
        return frozenset({box})

    def reduce(self, name: str, args: Arguments, scope: Scope, node: Any) -> frozenset:
        """Return what ``sum``, ``max``, ``next`` and the like choose or make from elements."""
        values = NOTHING.union(*args.given, args.spread)
        inside = self.iterate(values)
        for function in args.named.get("key", NOTHING):
            self.call_value(function, Arguments([inside]), scope, node)
        found: set = set(args.named.get("default", NOTHING)) | args.named.get("start", NOTHING)
        for value in inside | {v for v in values if not isinstance(v, Box)}:
            found.add(value)
            if isinstance(value, Instance) and name == "sum":
                for dunder in ("__add__", "__radd__"):
                    found |= self.dunder(value, dunder, [inside | IS_PLAIN])
        return frozenset(found) | (IS_PLAIN if name != "next" else NOTHING)

    def call_getattr(self, args: Arguments, scope: Scope, node: Any) -> frozenset:
        """Return what ``getattr`` gives; report a computed name as :class:`Hidden`."""
        bases = args.given[0] if args.given else args.spread
        default = NOTHING.union(*args.given[2:])
        literal = literal_argument(node, 1)
        if literal is not None:
            return self.report_values(self.attribute(bases, literal, node), node) | default
        found: set = set(default)
        for base in bases:
            if isinstance(base, (Instance, OwnClass)):
                cls = base.of if isinstance(base, Instance) else base
                for one in self.family(cls):
                    for name in one.scope.names | one.given(self.values):
                        found |= self.member(base, name, node)
                if self.is_foreign(cls):
                    found.add(FOREIGN)
            elif base == PLAIN:
                found.add(PLAIN)
            elif (
                isinstance(base, Path)
                and base.name == self.rule.looks_up
                and self.is_own_argument(node, scope)
            ):
                found.add(FOREIGN)
            else:
                if not self.rule.attributes or is_librarys(base):
                    self.report_hidden(
                        node, "which asks for a name that is only known when it runs"
                    )
                found.add(FOREIGN)
        return frozenset(found)

    def is_own_argument(self, node: Any, scope: Scope) -> bool:
        """Return whether a looked-up name is an argument of the answer, unchanged."""
        if not (
            isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Name)
        ):
            return False
        name, here = node.args[1].id, scope
        while here.kind != "notebook" and name not in here.names:
            here = here.above()
        function = here.function
        if function is None or getattr(function.node, "name", "") != self.name:
            return False
        arguments = function.node.args
        given = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        return name in given and name not in bound_in(function.node.body)

    def call_vars(self, first: frozenset, args: Arguments, node: Any) -> frozenset:
        """Return what ``vars`` gives: the attributes of the learner's own objects."""
        found: set = set()
        if not args.given:
            self.report_hidden(node, "which hands out all names at once")
            return IS_FOREIGN
        for base in first:
            if isinstance(base, Path):
                self.report_hidden(node, "which hands out all names of a module at once")
            elif isinstance(base, (Instance, OwnClass)):
                box = Box(id(node), "dict")
                cls = base.of if isinstance(base, Instance) else base
                for one in self.family(cls):
                    for name in one.given(self.values):
                        self.put((box, "*"), self.get((one, name)))
                self.put((box, KEYS), IS_PLAIN)
                found.add(box)
            else:
                found.add(base)
        return frozenset(found)
