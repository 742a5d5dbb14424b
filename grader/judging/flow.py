"""What the names in a learner's code stand for: a module's things, or the learner's own.

The code behind one name is run over in the abstract, until nothing new comes of it. In place of
values there are sets of what a value may be:

- a dotted path, for what belongs to a module: ``torch.nn.functional.softmax``, whatever the code
  calls it, and whichever way it came there (an alias, a default, a list, a ``partial``);
- the learner's own functions, classes, instances and containers, with what was put into them;
- ``FOREIGN``: a tensor or anything else that the grader hands over or a library makes;
- ``PLAIN``: numbers, strings and the like;
- ``KeptValue``: what another cell made with a library's function, and put where this code finds it.

What the code asks of a path or of something foreign is a :class:`Use`; what the learner's own class
or container answers is their own affair. Code that hides what it uses is :class:`Hidden`.

Statements at the outermost level see what names meant when they ran; functions see what names
mean at the end. Nothing is told apart by order within a function, or by caller: where two things
are possible, both are.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from grader.judging.learner_source import (
    COMPREHENSIONS,
    Function,
    Written,
    bound_in,
    is_builtin,
    words,
)

FOREIGN, PLAIN = "foreign", "plain"
NOTHING: frozenset = frozenset()
IS_FOREIGN, IS_PLAIN = frozenset({FOREIGN}), frozenset({PLAIN})
MAX_PASSES = 40

LIBRARIES = frozenset({"torch", "numpy", "utils", "einops", "triton"})
# What a snippet may leave out: labs import these in their first cell.
CUSTOMARY = {
    "torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "np": "numpy", "math": "math",
}  # fmt: skip
# Of a tensor, these give numbers, or words, which know nothing of torch.
PLAIN_ATTRIBUTES = words(
    "shape dtype device ndim itemsize nbytes size stride dim numel element_size item tolist "
    "strides storage_offset data_ptr is_contiguous is_floating_point training"
)
SAFE_DUNDERS = words(
    "init call name qualname doc class len iter next getitem setitem contains eq lt gt le ge ne "
    "hash bool repr str add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv matmul "
    "rmatmul pow rpow neg pos abs invert and or xor mod rmod floordiv rfloordiv enter exit version "
    "post_init new float int index main all slots annotations format round"
)
# How an object keeps its attributes, where the exercise is about that.
KEEPING = frozenset({"__dict__", "__setattr__", "__getattr__", "__delattr__"})
SAFE_NAMES = frozenset({"__name__", "__doc__", "__class__", "__debug__", "__import__"})
# Names through which a function's or a frame's inside is reached.
INSIDES = words(
    "f_globals f_locals f_back f_builtins f_code gi_frame cr_frame ag_frame tb_frame func_globals "
    "gi_code co_code"
)
# Of these only numbers, words and the like come.
GIVES_PLAIN = words(
    "isinstance issubclass hasattr callable id hash len print repr str range int float bool ord "
    "chr format dir slice object"
)
GROWS = words(
    "append add insert extend update appendleft extendleft setdefault push put put_nowait"
)


@dataclass(frozen=True)
class Use:
    """Something asked of a library.

    Attributes:
        path: its dotted path, such as ``torch.softmax``; of a value, ``.softmax``.
        line: a number that orders uses.
        kept: another cell asked for it, and kept what came.
        unsure: nothing is known of the value.
    """

    path: str
    line: int
    kept: bool = False
    unsure: bool = False


@dataclass(frozen=True)
class Hidden:
    """Code that can't be followed to what it uses.

    Attributes:
        code: the piece of code.
        why: what is the matter with it, a few words to go on with.
        line: a number that orders them.
    """

    code: str
    why: str
    line: int = 0


@dataclass(frozen=True)
class Reading:
    """What the code behind a name leans on, in order."""

    uses: tuple[Use, ...]
    hidden: tuple[Hidden, ...]


@dataclass(frozen=True)
class Path:
    """What belongs to a module."""

    name: str


@dataclass(frozen=True)
class KeptValue:
    """What a library's function gave to another cell."""

    path: str


@dataclass(frozen=True)
class Method:
    """An attribute of something foreign, by its name."""

    name: str


@dataclass(eq=False)
class Scope:
    """The names of a function, class or comprehension."""

    kind: str
    parent: Scope | None = None
    names: frozenset[str] = frozenset()
    outer: frozenset[str] = frozenset()  # declared global
    function: OwnFunction | None = None

    def above(self) -> Scope:
        """The scope around this one, which is not the notebook's."""
        assert self.parent is not None
        return self.parent


@dataclass(eq=False)
class OwnFunction:
    """A function, method or lambda that the learner wrote."""

    node: Any
    scope: Scope
    of_class: OwnClass | None = None
    escaped: bool = False  # others call it
    early: bool = False  # it is called while the cells run
    quiet: bool = False  # only cells that are no part of the answer know it


@dataclass(eq=False)
class OwnClass:
    """A class that the learner wrote."""

    name: str
    scope: Scope
    fields: tuple[str, ...] = ()
    bases: frozenset = NOTHING

    def given(self, at: dict) -> frozenset[str]:
        """Attributes that were given to it and its instances."""
        keys = (k for k in at if isinstance(k, tuple) and k[0] is self and isinstance(k[1], str))
        return frozenset(k[1] for k in keys) - {"*"}


@dataclass(frozen=True)
class Instance:
    """An instance of the learner's class."""

    of: OwnClass


@dataclass(frozen=True)
class Parent:
    """``super()`` in a method of this class."""

    of: OwnClass


@dataclass(frozen=True)
class Bound:
    """A method with its instance or class."""

    function: OwnFunction
    to: Any


@dataclass(frozen=True)
class Box:
    """A container that the code made at one place."""

    site: int
    kind: str = "list"


@dataclass(frozen=True)
class BoxMethod:
    """A container's method."""

    box: Box
    name: str


@dataclass
class Arguments:
    """What a call brings."""

    given: list[frozenset] = field(default_factory=list)
    named: dict[str, frozenset] = field(default_factory=dict)
    spread: frozenset = NOTHING

    def all(self) -> frozenset:
        """Everything, whichever parameter it is for."""
        return NOTHING.union(*self.given, *self.named.values(), self.spread)


def read(
    written: Written,
    name: str,
    *,
    tensors: bool = True,
    looks_up: str = "",
    attributes: bool = False,
    hostile: Callable,
) -> Reading:
    """Read the code behind a name.

    Args:
        written: the cells that ran.
        name: a function, class or value; empty for all the code there is.
        tensors: what the grader hands over are tensors or arrays, not plain values.
        looks_up: the path of a module in which the answer is asked to look up its own argument.
        attributes: how an object keeps its attributes is what the answer is to write.
        hostile: says of a path why code that uses it can't be followed, or nothing.
    """
    return _Flow(written, name, tensors, looks_up, attributes, hostile).read()


class _Flow:
    def __init__(
        self,
        written: Written,
        name: str,
        tensors: bool,
        looks_up: str,
        attributes: bool,
        hostile: Callable,
    ) -> None:
        self.written, self.name = written, name
        self.handed = IS_FOREIGN if tensors else IS_PLAIN
        self.looks_up, self.attributes, self.hostile = looks_up, attributes, hostile
        self.at: dict[Any, frozenset] = {}
        self.notebook = Scope("notebook")
        self.functions: dict[int, OwnFunction] = {}
        self.scopes: dict[int, Scope] = {}
        self.classes: dict[Any, OwnClass] = {}
        self.reached: dict[int, None] = {}
        self.fillers: dict[int, None] = {}
        self.now: int | None = None
        self.early = False
        self.telling = self.quiet = self.changed = False
        self.uses: dict[Use, None] = {}
        self.hidden: dict[Hidden, None] = {}
        self.own_names: set[str] = set()
        self.stack: list[Scope] = []

    def read(self) -> Reading:
        for _ in range(MAX_PASSES):
            self.changed = False
            self._pass()
            if not self.changed and not self._find_fillers():
                break
        self.telling = True
        self._pass()
        uses = sorted(self.uses, key=lambda use: use.line)
        hidden = sorted(self.hidden, key=lambda one: one.line)
        return Reading(tuple(uses), tuple(hidden))

    def _pass(self) -> None:
        names = [self.name] if self.name else list(self.written.bindings)
        for name in names:
            for value in self.global_(name):
                self.hand_over(value)
        for place in () if self.name else range(len(self.written.units)):
            self._reach(place)
        done = 0
        while done < len(self.reached):
            place = list(self.reached)[done]
            done += 1
            self.unit(place)
        self.quiet = True
        for place in list(self.fillers):
            self.unit(place)
        self.quiet = False
        for function in list(self.functions.values()):
            self.body(function)

    def unit(self, place: int) -> None:
        unit = self.written.units[place][0]
        self.now = place
        self.head(unit.node, self.notebook)
        self.now = None

    def hand_over(self, value: Any) -> None:
        """The grader calls a function, or makes an instance and calls its methods."""
        if isinstance(value, OwnFunction):
            self.escape(value, self.handed)
        elif isinstance(value, Bound):
            self.escape(value.function, self.handed)
        elif isinstance(value, OwnClass):
            for method in self.methods(value):
                self.escape(method, self.handed)

    # ---- cells that fill what the answer reads

    def _find_fillers(self) -> bool:
        """Statements elsewhere that may put something into a container that the answer reads."""
        roots: set[str] = set()
        boxes: set[str] = set()
        for key, values in self.at.items():
            if isinstance(key, tuple) and key[0] == "global" and key[1] in self.reached:
                if any(isinstance(v, (Box, Instance)) for v in values):
                    boxes.add(key[2])
                elif any(isinstance(v, (OwnClass, OwnFunction)) for v in values):
                    roots.add(key[2])
        before = len(self.fillers)
        for place, (unit, _) in enumerate(self.written.units):
            known = place in self.reached or place in self.fillers
            if not known and _fills(unit.node, roots | boxes, boxes):
                self.fillers[place] = None
        return len(self.fillers) > before

    # ---- what is known

    def put(self, key: Any, values: frozenset) -> None:
        old = self.at.get(key, NOTHING)
        if not values <= old:
            self.at[key] = old | values
            self.changed = True

    def get(self, key: Any) -> frozenset:
        return self.at.get(key, NOTHING)

    def use(self, path: str, node: Any, *, kept: bool = False, unsure: bool = False) -> None:
        if self.telling and not self.quiet:
            self.uses[Use(path, _line(node), kept, unsure)] = None

    def hide(self, node: ast.AST, why: str) -> None:
        if self.telling and not self.quiet:
            self.hidden[Hidden(shorten(node), why, _line(node))] = None

    def note(self, values: frozenset, node: ast.AST) -> frozenset:
        """Tell what of some values belongs to a library."""
        if self.telling and not self.quiet:
            for value in values:
                if isinstance(value, Path):
                    why = self.hostile(value.name)
                    if why:
                        self.hide(node, why)
                    else:
                        self.use(value.name, node)
                elif isinstance(value, KeptValue):
                    self.use(value.path, node, kept=True)
        return values

    # ---- names

    def load(self, name: str, scope: Scope) -> frozenset:
        here = scope
        while here.kind != "notebook":
            if name in here.outer:
                break
            if name in here.names and (here.kind != "class" or here is scope):
                found = self.get((here, name))
                if here.kind == "class":  # else it is still that of the notebook
                    found |= self.global_(name)
                return found
            here = here.above()
        return self.global_(name)

    def global_(self, name: str) -> frozenset:
        found = NOTHING
        for place in self.written.declared.get(name, ()):
            self.reached.setdefault(place)
        found |= self.get(("declared", name))
        places = self.written.bindings.get(name, [])
        certain = False
        for place in reversed(places):
            unit, sure = self.written.units[place]
            if self.now is not None and not self._before(place):
                continue
            if not self.quiet:
                self._reach(place)
            elif place not in self.reached and place not in self.fillers:
                self.fillers[place], self.changed = None, True
            found |= self.get(("global", place, name))
            if sure and not self.early:
                certain = True
                break
        if certain:
            return found
        for place in self.written.bindings.get("*", ()):
            module = getattr(self.written.units[place][0].node, "module", None) or ""
            if _lookup(f"{module}.{name}") is not None:
                found |= {Path(_canonical(f"{module}.{name}"))}
        if is_builtin(name):
            return found | {Path(f"builtins.{name}")}
        if not places and not found:
            return frozenset({Path(CUSTOMARY[name])}) if name in CUSTOMARY else IS_FOREIGN
        return found

    def _before(self, place: int) -> bool:
        """Whether a statement may have run before the one that is run over now."""
        assert self.now is not None
        if place < self.now:
            return True
        units = self.written.units
        again = not units[place][0].certain and not units[self.now][0].certain
        return again and self.written.block_of[place] == self.written.block_of[self.now]

    def _reach(self, place: int) -> None:
        if place not in self.reached:
            self.reached[place] = None
            self.changed = True

    def store(self, name: str, values: frozenset, scope: Scope) -> None:
        here = scope
        while here.kind == "comprehension" and name not in here.names:
            here = here.above()
        if here.kind == "notebook":
            if self.now is not None:
                self.put(("global", self.now, name), values)
        elif name in here.outer:
            self.put(("declared", name), values)
        elif name in here.names:
            self.put((here, name), values)
        else:  # nonlocal
            while here.kind != "notebook" and (name not in here.names or here.kind == "class"):
                here = here.above()
            key = ("declared", name) if here.kind == "notebook" else (here, name)
            self.put(key, values)

    def assign(self, target: ast.AST, values: frozenset, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            self.store(target.id, values, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = any(isinstance(t, ast.Starred) for t in target.elts)
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    box = Box(id(part))
                    self.put((box, "*"), self.iterate(values, part))
                    self.assign(part.value, frozenset({box}), scope)
                else:
                    self.assign(part, self.item(values, None if starred else index, part), scope)
        elif isinstance(target, ast.Attribute):
            for base in self.expr(target.value, scope, inner=True):
                self.set_attribute(base, target.attr, values, target)
        elif isinstance(target, ast.Subscript):
            keys = self.expr(target.slice, scope)
            for base in self.expr(target.value, scope):
                if isinstance(base, Box):
                    self.put((base, "*"), values)
                    self.put((base, "keys"), keys)
                elif isinstance(base, Instance):
                    self.dunder(base, "__setitem__", [keys, values])
        elif isinstance(target, ast.Starred):
            self.assign(target.value, values, scope)

    def set_attribute(self, base: Any, name: str, values: frozenset, node: ast.AST) -> None:
        if isinstance(base, Path):
            self.hide(node, f"which changes what `{base.name}` has for everybody")
        elif isinstance(base, (Instance, OwnClass)):
            self.put((base.of if isinstance(base, Instance) else base, name), values)
            self.own_names.add(name)
        elif isinstance(base, (OwnFunction, Box)):
            self.put((base, name), values)
        elif isinstance(base, Bound):
            self.put((base.function, name), values)
        elif base == FOREIGN and name == "requires_grad":
            self.use(".requires_grad", node)
        if name in INSIDES or _is_dunder(name):
            self.dunder_name(name, node)

    def dunder_name(self, name: str, node: ast.AST) -> None:
        if name in INSIDES or name[2:-2] not in SAFE_DUNDERS:
            self.hide(node, "which reaches into the inside of Python's own objects")

    # ---- attributes and items

    def attribute(self, bases: frozenset, name: str, node: ast.AST) -> frozenset:
        kept = name in KEEPING and self.attributes and not any(map(_is_librarys, bases))
        if not kept and (name in INSIDES or _is_dunder(name)):
            self.dunder_name(name, node)
        if not bases and name not in self.own_names:
            self.use(f".{name}", node, unsure=True)
        found: set = set()
        for base in bases:
            if isinstance(base, Path):
                found.add(Path(_canonical(f"{base.name}.{name}")))
            elif base == FOREIGN:
                self.use(f".{name}", node)
                found.add(Method(name))
            elif base == PLAIN:
                found.add(PLAIN)
            elif isinstance(base, Method):
                self.use(f".{name}", node)
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

    def member(self, base: Any, name: str, node: ast.AST) -> frozenset:
        """An attribute of the learner's class, an instance of it, or ``super()``."""
        of = base if isinstance(base, OwnClass) else base.of
        family = list(self.family(of))[isinstance(base, Parent) :]
        found: set = set()
        for cls in family:
            values = self.get((cls, name))
            if name in cls.scope.names:
                values |= self.get((cls.scope, name))
            for value in values:
                if isinstance(value, OwnFunction) and value.of_class is cls:
                    found |= self.method(value, base, cls)
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
            self.use(f".{name}", node)
            return frozenset({Method(name)})
        return NOTHING if self.any_own(family, name) else IS_PLAIN

    def any_own(self, family: list[OwnClass], name: str) -> bool:
        return any(name in cls.scope.names or name in cls.fields for cls in family)

    def method(self, function: OwnFunction, base: Any, cls: OwnClass) -> set:
        kinds = _decorators(function.node)
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
        yield cls
        for base in cls.bases:
            if isinstance(base, OwnClass) and base not in seen:
                yield from self.family(base, (*seen, cls))

    def methods(self, cls: OwnClass) -> Iterator[OwnFunction]:
        for one in self.family(cls):
            for name in one.scope.names:
                for value in self.get((one.scope, name)):
                    if isinstance(value, OwnFunction):
                        yield value

    def is_foreign(self, cls: OwnClass) -> bool:
        """Whether a library's class, or nobody knows which, is behind this one."""
        return any(
            not isinstance(base, (OwnClass, Path))
            or (isinstance(base, Path) and base.name.partition(".")[0] in LIBRARIES)
            for one in self.family(cls)
            for base in one.bases
        )

    def item(self, values: frozenset, index: Any, node: ast.AST | None) -> frozenset:
        """What an index gives; ``None`` stands for any index."""
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
        return 64 if (box, 0) in self.at or (box, 1) in self.at else 0

    def iterate(self, values: frozenset, node: ast.AST | None) -> frozenset:
        found: set = set()
        for value in values:
            if isinstance(value, Box) and value.kind == "dict":
                found |= self.get((value, "keys"))
            elif isinstance(value, Instance):
                inner = self.dunder(value, "__iter__", [])
                found |= self.iterate(inner - {value}, node) or {value}
                found |= self.dunder(value, "__next__", [])
            else:
                found |= self.item(frozenset({value}), None, node)
        return frozenset(found)

    def dunder(self, instance: Instance, name: str, args: list[frozenset]) -> frozenset:
        """What an operator gives that the learner's class defines; nothing where it doesn't."""
        found = NOTHING
        for cls in self.family(instance.of):
            if name in cls.scope.names:
                for function in self.get((cls.scope, name)):
                    if isinstance(function, OwnFunction):
                        known = frozenset({instance})
                        found |= self.bind(function, Arguments([known, *args]))
                    else:
                        found |= self.call_value(function, Arguments(args), cls.scope, None)
                break
        return found

    # ---- functions

    def function(self, node: Any, scope: Scope) -> OwnFunction:
        known = self.functions.get(id(node))
        if known is not None and known.quiet and not self.quiet:
            known.quiet, self.changed = False, True
        if known is None:
            arguments = node.args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            every += tuple(a for a in (arguments.vararg, arguments.kwarg) if a)
            names = {a.arg for a in every}
            body = node.body if isinstance(node.body, list) else [node.body]
            inner = [n for statement in body for n in _same_scope(statement)]
            outer = {n for i in inner if isinstance(i, ast.Global) for n in i.names}
            other = {n for i in inner if isinstance(i, ast.Nonlocal) for n in i.names}
            names |= bound_in(body) - outer - other
            own = Scope("function", scope, frozenset(names), frozenset(outer))
            known = self.functions[id(node)] = OwnFunction(node, own, quiet=self.quiet)
            own.function = known
            self.changed = True
        return known

    def define(self, node: Any, scope: Scope) -> OwnFunction:
        """The function of a definition, its defaults bound."""
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

    def bind(self, function: OwnFunction, args: Arguments) -> frozenset:
        """Call one of the learner's functions."""
        if (self.now is not None or self.early) and not function.early:
            function.early = self.changed = True
        arguments = function.node.args
        named = [*arguments.posonlyargs, *arguments.args]
        if args.spread or function.escaped:
            rest = args.all() - self.own_self(function)
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
                self.put((Box(id(arguments.kwarg), "dict"), "keys"), IS_PLAIN)
        if args.spread:
            for a, kind in ((arguments.vararg, "list"), (arguments.kwarg, "dict")):
                if a:
                    self.put((Box(id(a), kind), "*"), args.spread)
        return self.get(("returns", function))

    def has_self(self, function: OwnFunction) -> bool:
        return function.of_class is not None and "staticmethod" not in _decorators(function.node)

    def own_self(self, function: OwnFunction) -> frozenset:
        return frozenset({Instance(function.of_class)}) if function.of_class else NOTHING

    def escape(self, function: OwnFunction, values: frozenset = IS_FOREIGN) -> None:
        """Somebody else calls it, with these arguments."""
        if not function.escaped:
            function.escaped = self.changed = True
        arguments = function.node.args
        named = [*arguments.posonlyargs, *arguments.args][self.has_self(function) :]
        for a in [*named, *arguments.kwonlyargs]:
            self.put((function.scope, a.arg), values)
        for a, kind in ((arguments.vararg, "list"), (arguments.kwarg, "dict")):
            if a:
                self.put((Box(id(a), kind), "*"), values)

    def body(self, function: OwnFunction) -> None:
        node, scope = function.node, function.scope
        self.early, self.quiet = function.early, function.quiet
        if isinstance(node, ast.Lambda):
            self.put(("returns", function), self.expr(node.body, scope))
        else:
            for statement in node.body:
                self.statement(statement, scope)
        self.early = self.quiet = False

    def make_class(self, node: ast.ClassDef, scope: Scope) -> OwnClass:
        known = self.classes.get(id(node))
        if known is None:
            own = Scope("class", scope, frozenset(bound_in(node.body)))
            annotated = (
                s.target.id
                for s in node.body
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            )
            known = self.classes[id(node)] = OwnClass(node.name, own, tuple(annotated))
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

    def set_self(self, function: OwnFunction, cls: OwnClass) -> None:
        arguments = function.node.args
        named = [*arguments.posonlyargs, *arguments.args]
        kinds = _decorators(function.node)
        if named and "staticmethod" not in kinds:
            first = (
                cls if "classmethod" in kinds or function.node.name == "__new__" else Instance(cls)
            )
            self.put((function.scope, named[0].arg), frozenset({first}))

    # ---- statements

    def head(self, node: ast.stmt, scope: Scope) -> None:
        """A statement, but of a compound one at the outermost level only the head."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self.assign(node.target, self.iterate(self.expr(node.iter, scope), node), scope)
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
        inside = subject | self.iterate(subject, case.pattern)
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
            old = self.expr(_loaded(node.target), scope)
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
                    self.expr(_loaded(target), scope)
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
        deco = self.expr(decorator, scope)
        found: set = set()
        for value in deco:
            if isinstance(value, Path) and value.name.partition(".")[0] == "builtins":
                found |= values  # staticmethod, property
            elif isinstance(value, PathTypes):
                found |= values
                if isinstance(thing, OwnFunction) and not _only_wraps(value):
                    self.escape(thing)
            else:
                found |= self.call_value(value, Arguments([values]), scope, decorator)
        return frozenset(found)

    def annotations(self, node: Any, scope: Scope) -> None:
        arguments = node.args
        for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.annotation(a.annotation, scope)
        self.annotation(node.returns, scope)

    def annotation(self, node: ast.expr | None, scope: Scope) -> None:
        """A type is only named; an annotation that does anything is looked at."""
        doing = (ast.Call, ast.NamedExpr, ast.Lambda, *COMPREHENSIONS)
        if node is not None and any(isinstance(n, doing) for n in ast.walk(node)):
            self.expr(node, scope)

    def function_of(self, scope: Scope) -> OwnFunction | None:
        here: Scope | None = scope
        while here is not None and here.kind == "comprehension":
            here = here.parent
        return here.function if here is not None and here.kind == "function" else None

    def imported(self, node: Any, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                name, path, named = alias.asname or whole, whole, alias.name
            else:
                module = "." * node.level + (node.module or "")
                name, path = alias.asname or alias.name, f"{module}.{alias.name}"
                named = path
            path = _canonical(path)
            why = self.hostile(named) or self.hostile(path)
            if why:
                self.hide(node, why)
            elif isinstance(node, ast.ImportFrom) and alias.name != "*":
                self.use(path, node)
            if alias.name != "*":
                self.store(name, frozenset({Path(path)}), scope)

    # ---- expressions

    def expr(self, node: ast.AST, scope: Scope, inner: bool = False) -> frozenset:
        """What an expression may be. What belongs to a library is told, unless it is ``inner``."""
        found = getattr(self, f"_{type(node).__name__}", self._other)(node, scope)
        return found if inner else self.note(found, node)

    def _other(self, node: ast.AST, scope: Scope) -> frozenset:
        parts = [self.expr(c, scope) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        return _blend(NOTHING.union(*parts))

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
        return _blend(NOTHING.union(*sides)) | IS_PLAIN

    def _Name(self, node: ast.Name, scope: Scope) -> frozenset:
        if _is_dunder(node.id) and node.id not in SAFE_NAMES:
            self.hide(node, "which reaches into the inside of Python's own objects")
        return self.load(node.id, scope)

    def _Attribute(self, node: ast.Attribute, scope: Scope) -> frozenset:
        return self.attribute(self.expr(node.value, scope, inner=True), node.attr, node)

    def _Subscript(self, node: ast.Subscript, scope: Scope) -> frozenset:
        self.expr(node.slice, scope)
        values = self.expr(node.value, scope)
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return self.item(values, index, node)

    def _Starred(self, node: ast.Starred, scope: Scope) -> frozenset:
        return self.iterate(self.expr(node.value, scope), node)

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
                self.put((box, "keys"), self.expr(key, scope))
                self.put((box, "*"), values)
        return frozenset({box})

    def pour(self, box: Box, values: frozenset) -> None:
        """Put what is in some containers into another."""
        for value in values:
            if isinstance(value, Box):
                self.put((box, "*"), self.item(frozenset({value}), None, None))
                self.put((box, "keys"), self.get((value, "keys")))
            elif not isinstance(value, (OwnFunction, OwnClass)):
                self.put((box, "*"), self.item(frozenset({value}), None, None))
                self.put((box, "keys"), IS_PLAIN)

    def _ListComp(self, node: Any, scope: Scope) -> frozenset:
        known = self.scopes.get(id(node))
        if known is None:
            names = bound_in(g.target for g in node.generators)
            known = self.scopes[id(node)] = Scope("comprehension", scope, frozenset(names))
        for generator in node.generators:
            self.assign(
                generator.target, self.iterate(self.expr(generator.iter, known), node), known
            )
            for test in generator.ifs:
                self.expr(test, known)
        box = Box(id(node), "dict" if isinstance(node, ast.DictComp) else "list")
        if isinstance(node, ast.DictComp):
            self.put((box, "keys"), self.expr(node.key, known))
            self.put((box, "*"), self.expr(node.value, known))
        else:
            self.put((box, "*"), self.expr(node.elt, known))
        return frozenset({box})

    _SetComp = _GeneratorExp = _DictComp = _ListComp

    def _Lambda(self, node: ast.Lambda, scope: Scope) -> frozenset:
        return frozenset({self.define(node, scope)})

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
                values = self.iterate(values, node)
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
        name = _OPERATORS.get(type(op).__name__, "")
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
                found |= _blend(frozenset({value}))
        for value in right:
            if isinstance(value, Instance):
                found |= self.dunder(value, f"__r{name}__", [left])
            elif not isinstance(value, Box):
                found |= _blend(frozenset({value}))
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
                found |= _blend(frozenset({value}))
        return frozenset(found)

    # ---- calls

    def _Call(self, node: ast.Call, scope: Scope) -> frozenset:
        args = Arguments()
        for a in node.args:
            if isinstance(a, ast.Starred):
                args.spread |= self.iterate(self.expr(a.value, scope), a)
            elif args.spread:
                args.spread |= self.expr(a, scope)
            else:
                args.given.append(self.expr(a, scope, inner=_is_lookup(node)))
        for word in node.keywords:
            values = self.expr(word.value, scope)
            if word.arg is None:
                args.spread |= self.item(values, None, node)
            else:
                args.named[word.arg] = values
        callees = self.expr(node.func, scope, inner=_is_lookup(node))
        return NOTHING.union(*(self.call_value(c, args, scope, node) for c in callees))

    def call_value(
        self, callee: Any, args: Arguments, scope: Scope, node: ast.AST | None
    ) -> frozenset:
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
            return _blend(args.all()) | IS_PLAIN
        if isinstance(callee, KeptValue):
            return frozenset({callee})
        self.let_go(args.all())
        found = _carried(args.all())
        if isinstance(callee, Method):
            if self.quiet:
                found |= {KeptValue(f".{callee.name}")}
            return found | (IS_PLAIN if callee.name in PLAIN_ATTRIBUTES else IS_FOREIGN)
        return found | IS_FOREIGN

    def let_go(self, values: Iterable[Any]) -> None:
        """A library gets these, and may call them."""
        for value in values:
            if isinstance(value, OwnFunction):
                self.escape(value)
            elif isinstance(value, Bound):
                self.escape(value.function)
            elif isinstance(value, Instance):
                self.dunder(value, "__call__", [IS_FOREIGN])

    def construct(self, cls: OwnClass, args: Arguments) -> frozenset:
        made = Instance(cls)
        found = frozenset({made})
        for one in self.family(cls):
            if "__init__" in one.scope.names:
                for function in self.get((one.scope, "__init__")):
                    self.call_value(
                        Bound(function, made) if isinstance(function, OwnFunction) else function,
                        args,
                        one.scope,
                        None,
                    )
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
                self.let_go(args.all())
                found |= _carried(args.all())
        return found

    def call_instance(self, instance: Instance, args: Arguments) -> frozenset:
        found = NOTHING
        for name in ("__call__", "forward"):
            for cls in self.family(instance.of):
                if name in cls.scope.names:
                    for function in self.get((cls.scope, name)):
                        if isinstance(function, OwnFunction):
                            found |= self.call_value(
                                Bound(function, instance), args, cls.scope, None
                            )
                        else:
                            found |= self.call_value(function, args, cls.scope, None)
            if found:
                return found
        return found | (IS_FOREIGN if self.is_foreign(instance.of) else NOTHING)

    def call_box(self, method: BoxMethod, args: Arguments, node: ast.AST | None) -> frozenset:
        box, name = method.box, method.name
        one = frozenset({box})
        inside, every = self.item(one, None, node), args.all()
        if name in GROWS:
            poured = name in ("extend", "update", "extendleft")
            if poured:
                self.pour(box, every - {v for v in every if isinstance(v, (Instance, str))})
                self.put((box, "*"), self.iterate(every, node) - IS_PLAIN)
            else:
                self.put((box, "*"), NOTHING.union(*args.given[-1:], args.spread))
                if name in ("setdefault",) and args.given:
                    self.put((box, "keys"), args.given[0])
            return inside | (self.item(one, None, node) if name == "setdefault" else IS_PLAIN)
        if name == "items":
            pair, pairs = Box(box.site, "pair"), Box(box.site, "pairs")
            self.put((pair, 0), self.get((box, "keys")))
            self.put((pair, 1), inside)
            self.put((pairs, "*"), frozenset({pair}))
            return frozenset({pairs})
        if name in ("keys", "values"):
            part = Box(box.site, name)
            self.put((part, "*"), self.get((box, "keys")) if name == "keys" else inside)
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

    def call_path(
        self, path: str, args: Arguments, scope: Scope, node: ast.AST | None
    ) -> frozenset:
        root, _, name = path.partition(".")
        every = args.all()
        if root == "builtins":
            return self.call_builtin(name, args, scope, node)
        if root in LIBRARIES:
            self.let_go(every)
            if path in ("torch.Size", "torch.device", "torch.finfo", "torch.numel"):
                return IS_PLAIN
            found = _carried(every) | IS_FOREIGN
            return found | {KeptValue(path)} if self.quiet else found
        if path in ("operator.attrgetter", "operator.methodcaller"):
            return self.getter(args, node)
        if path == "operator.itemgetter":
            return IS_PLAIN
        if path in ("collections.defaultdict", "collections.OrderedDict", "collections.Counter"):
            box = Box(id(node), "dict")
            for value in every:
                if isinstance(value, (OwnFunction, OwnClass, Bound)):
                    self.put((box, "*"), self.call_value(value, Arguments(), scope, node))
                elif isinstance(value, Path):
                    self.put((box, "*"), self.call_path(value.name, Arguments(), scope, node))
                else:
                    self.pour(box, frozenset({value}))
            self.put((box, "keys"), IS_PLAIN)
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
                    function = value.function if isinstance(value, Bound) else value
                    self.escape(function, every - {value})
            return every
        if root == "math":
            return IS_PLAIN
        return self.through(args, scope, node)

    def through(self, args: Arguments, scope: Scope, node: ast.AST | None) -> frozenset:
        """A function of Python's own that calls what it gets on what it gets."""
        every = args.all()
        inside = self.iterate(every, node)
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
        known = self.classes.get(id(node))
        if known is None:
            try:
                text = ast.literal_eval(node.args[1])
                names = text.replace(",", " ").split() if isinstance(text, str) else list(text)
            except Exception:
                names = []
            fields = tuple(n for n in names if isinstance(n, str))
            known = self.classes[id(node)] = OwnClass("", Scope("class", self.notebook), fields)
            self.own_names |= set(fields)
            self.changed = True
        return known

    def getter(self, args: Arguments, node: Any) -> frozenset:
        """``attrgetter`` and ``methodcaller``: what they will ask for is asked of anything."""
        for a in getattr(node, "args", []):
            if not (isinstance(a, ast.Constant) and isinstance(a.value, str)):
                self.hide(node, "which asks for a name that is only known when it runs")
                continue
            for name in a.value.split("."):
                if name not in self.own_names:
                    self.use(f".{name}", node)
            if "methodcaller" in ast.unparse(node.func):
                break
        return IS_FOREIGN

    def call_builtin(self, name: str, args: Arguments, scope: Scope, node: Any) -> frozenset:
        every = args.all()
        first = args.given[0] if args.given else args.spread
        if name == "getattr":
            return self.getattr_(args, scope, node)
        if name in ("setattr", "delattr"):
            literal = _literal(node, 1)
            for base in first:
                self.set_attribute(base, literal or "*", NOTHING.union(*args.given[2:3]), node)
            return IS_PLAIN
        if name == "vars":
            return self.vars_(first, args, node)
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
                        pairs = self.iterate(frozenset({value}), node)
                        self.put((box, "keys"), self.item(pairs, 0, node))
                        self.put((box, "*"), self.item(pairs, 1, node))
                    else:
                        self.pour(box, frozenset({value}))
            for values in args.named.values():
                self.put((box, "*"), values)
                self.put((box, "keys"), IS_PLAIN)
            self.put((box, "*"), args.spread)
            return frozenset({box})
        if name in ("zip", "enumerate"):
            row, rows = Box(id(node), "pair"), Box(id(node), "pairs")
            parts = [self.iterate(values, node) for values in args.given]
            if name == "enumerate":
                parts = [IS_PLAIN, *parts[:1]]
            for index, values in enumerate(parts):
                self.put((row, index), values)
            self.put((row, "*"), self.iterate(args.spread, node) | args.spread)
            self.put((rows, "*"), frozenset({row}))
            return frozenset({rows})
        if name in (
            "list",
            "tuple",
            "set",
            "frozenset",
            "iter",
            "reversed",
            "sorted",
            "map",
            "filter",
        ):
            return self.collect(name, args, scope, node)
        if name in ("min", "max", "sum", "next", "any", "all", "abs", "pow", "round", "divmod"):
            return self.reduce(name, args, scope, node)
        if name in ("staticmethod", "classmethod", "property"):
            return every
        return self.through(args, scope, node)

    def collect(self, name: str, args: Arguments, scope: Scope, node: Any) -> frozenset:
        box = Box(id(node))
        sources = args.given[1:] if name in ("map", "filter") else args.given[:1]
        inside = [self.iterate(values, node) for values in sources] or [NOTHING]
        inside[0] |= args.spread | self.iterate(args.spread, node)
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
        values = NOTHING.union(*args.given, args.spread)
        inside = self.iterate(values, node)
        for function in args.named.get("key", NOTHING):
            self.call_value(function, Arguments([inside]), scope, node)
        found: set = set(args.named.get("default", NOTHING)) | args.named.get("start", NOTHING)
        for value in inside | {v for v in values if not isinstance(v, Box)}:
            found.add(value)
            if isinstance(value, Instance) and name == "sum":
                for dunder in ("__add__", "__radd__"):
                    found |= self.dunder(value, dunder, [inside | IS_PLAIN])
        return frozenset(found) | (IS_PLAIN if name != "next" else NOTHING)

    def getattr_(self, args: Arguments, scope: Scope, node: Any) -> frozenset:
        bases = args.given[0] if args.given else args.spread
        default = NOTHING.union(*args.given[2:])
        literal = _literal(node, 1)
        if literal is not None:
            return self.note(self.attribute(bases, literal, node), node) | default
        found: set = set(default)
        for base in bases:
            if isinstance(base, (Instance, OwnClass)):
                cls = base.of if isinstance(base, Instance) else base
                for one in self.family(cls):
                    for name in one.scope.names | one.given(self.at):
                        found |= self.member(base, name, node)
                if self.is_foreign(cls):
                    found.add(FOREIGN)
            elif base == PLAIN:
                found.add(PLAIN)
            elif (
                isinstance(base, Path)
                and base.name == self.looks_up
                and self.is_own_argument(node, scope)
            ):
                found.add(FOREIGN)
            else:
                if not self.attributes or _is_librarys(base):
                    self.hide(node, "which asks for a name that is only known when it runs")
                found.add(FOREIGN)
        return frozenset(found)

    def is_own_argument(self, node: Any, scope: Scope) -> bool:
        """Whether the name looked up is an argument of the answer, as the grader gave it."""
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

    def vars_(self, first: frozenset, args: Arguments, node: Any) -> frozenset:
        found: set = set()
        if not args.given:
            self.hide(node, "which hands out all names at once")
            return IS_FOREIGN
        for base in first:
            if isinstance(base, Path):
                self.hide(node, "which hands out all names of a module at once")
            elif isinstance(base, (Instance, OwnClass)):
                box = Box(id(node), "dict")
                cls = base.of if isinstance(base, Instance) else base
                for one in self.family(cls):
                    for name in one.given(self.at):
                        self.put((box, "*"), self.get((one, name)))
                self.put((box, "keys"), IS_PLAIN)
                # and what is put into it is put into the instance
                self.put((cls, "*"), self.get((box, "poured")))
                found.add(box)
            else:
                found.add(base)
        return frozenset(found)


PathTypes = (Path, Method, KeptValue)
_OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "Pow": "pow", "MatMult": "matmul",
    "Mod": "mod", "FloorDiv": "floordiv", "BitAnd": "and", "BitOr": "or", "BitXor": "xor",
    "LShift": "lshift", "RShift": "rshift",
}  # fmt: skip


def _blend(values: frozenset) -> frozenset:
    """What arithmetic makes of some values."""
    found: set = {v for v in values if isinstance(v, KeptValue)}
    if any(v == FOREIGN or isinstance(v, (Path, Method)) for v in values):
        foreign = any(not isinstance(v, Method) or v.name not in PLAIN_ATTRIBUTES
                      for v in values if v != PLAIN)  # fmt: skip
        found.add(FOREIGN if foreign else PLAIN)
    elif values:
        found.add(PLAIN)
    return frozenset(found)


def _carried(values: frozenset) -> frozenset:
    """What a library gives back of what it got: wrapped functions, objects, results."""
    kinds = (OwnFunction, OwnClass, Bound, Instance, KeptValue, Box)
    return frozenset(v for v in values if isinstance(v, kinds))


def _only_wraps(value: Any) -> bool:
    """Decorators that leave it to the learner's own code to call what they decorate."""
    return isinstance(value, Path) and value.name.partition(".")[0] in (
        "functools", "dataclasses", "contextlib", "typing", "abc", "torch", "builtins",
    )  # fmt: skip


def _decorators(node: Any) -> set[str]:
    found = set()
    for decorator in getattr(node, "decorator_list", []):
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.add(call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "?"))
    return found


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def _is_lookup(node: ast.Call) -> bool:
    """Whether a call only asks something for an attribute: what it asks is told by what comes."""
    return isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr", "vars")


def _is_librarys(value: Any) -> bool:
    """Whether a value is a library's, and not `object`, which has nothing of its own to hide."""
    return isinstance(value, Path) and value.name not in ("object", "builtins.object")


def _literal(node: Any, index: int) -> str | None:
    """A call's argument, where it is a text that stands there."""
    args = getattr(node, "args", [])
    if len(args) > index and isinstance(args[index], ast.Constant):
        return args[index].value if isinstance(args[index].value, str) else None
    return None


def _loaded(target: ast.AST) -> ast.AST:
    return (
        ast.parse(ast.unparse(target), mode="eval").body
        if not isinstance(target, ast.Name)
        else target
    )


def _same_scope(statement: ast.AST) -> Iterator[ast.AST]:
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (Function, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _line(node: Any) -> int:
    return getattr(node, "lineno", 0) * 1000 + getattr(node, "col_offset", 0) if node else 0


def shorten(node: ast.AST, most: int = 48) -> str:
    """A piece of code, on one short line."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):
        text = type(node).__name__
    return text if len(text) <= most else f"{text[:most]}…"


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _fills(statement: ast.stmt, roots: set[str], boxes: set[str]) -> bool:
    """Whether a statement may put something into one of these, or give it another name."""
    return bool(roots) and any(_is_filling(node, roots, boxes) for node in ast.walk(statement))


def _is_filling(node: ast.AST, roots: set[str], boxes: set[str]) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return isinstance(node.ctx, ast.Store) and _root(node) in roots
    if isinstance(node, (ast.Assign, ast.NamedExpr)):
        return isinstance(node.value, ast.Name) and node.value.id in boxes
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id == "setattr":
        return bool(node.args) and _root(node.args[0]) in roots
    given = [*node.args, *(word.value for word in node.keywords)]
    if any(isinstance(a, ast.Name) and a.id in boxes for a in given):
        return True
    grows = isinstance(node.func, ast.Attribute) and node.func.attr in GROWS
    return grows and _root(node.func) in boxes


def _canonical(path: str) -> str:
    """A path with modules under their own names: ``torch.nn.modules.linear.F`` is functional."""
    found = _lookup(path)
    return found.__name__ if isinstance(found, ModuleType) else path


def _lookup(path: str) -> Any:
    """What a path stands for, among what is imported here; None when it is not known.

    Nothing is imported and no code runs: only modules' own dictionaries are looked into.
    """
    if path in sys.modules:
        return sys.modules[path]
    module, _, name = path.rpartition(".")
    holder = sys.modules.get(module) or (_lookup(module) if "." in module else None)
    if isinstance(holder, ModuleType):
        return vars(holder).get(name)
    return inspect.getattr_static(holder, name, None) if isinstance(holder, type) else None
