"""What a value may be, in the abstract.

A set of possible values is a frozenset of objects of this module's classes, ``FOREIGN`` and
``PLAIN``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grader.judging.flow.tables import PLAIN_ATTRIBUTES

# A tensor, or anything else that the grader passes or a library returns.
FOREIGN = "foreign"
# A number, string or the like.
PLAIN = "plain"
NOTHING: frozenset = frozenset()
# Where a container's keys are kept: a word that no attribute can be.
KEYS = "its keys"
IS_FOREIGN, IS_PLAIN = frozenset({FOREIGN}), frozenset({PLAIN})


@dataclass(frozen=True)
class Path:
    """Something that belongs to a module, by its dotted path."""

    name: str


@dataclass(frozen=True)
class KeptValue:
    """The result of a library's function, by its path, that another cell stored."""

    path: str


@dataclass(frozen=True)
class Method:
    """An attribute of a foreign value, by its name."""

    name: str


@dataclass(eq=False)
class Scope:
    """The names of a function, class or comprehension, or of the notebook.

    Attributes:
        kind: ``notebook``, ``function``, ``class`` or ``comprehension``.
        parent: the scope around it; None for the notebook.
        names: names that it binds.
        outer: names that it declares ``global``.
        function: the function whose scope this is, or None.
    """

    kind: str
    parent: Scope | None = None
    names: frozenset[str] = frozenset()
    outer: frozenset[str] = frozenset()
    function: OwnFunction | None = None

    def above(self) -> Scope:
        """Return the scope around this one, which must not be the notebook's."""
        assert self.parent is not None
        return self.parent


@dataclass(eq=False)
class OwnFunction:
    """A function, method or lambda that the learner wrote.

    Attributes:
        node: its syntax tree.
        scope: the scope of its body.
        of_class: the class whose method it is, or None.
        escaped: whether code other than the learner's may call it.
        early: whether it is called while the cells run, not only by the grader afterwards.
        quiet: whether only cells that are no part of the answer define it.
    """

    node: Any
    scope: Scope
    of_class: OwnClass | None = None
    escaped: bool = False
    early: bool = False
    quiet: bool = False


@dataclass(eq=False)
class OwnClass:
    """A class that the learner wrote.

    Attributes:
        scope: the scope of its body.
        fields: names that its body annotates, in order, as a dataclass has them.
        bases: the values of its bases and keywords.
    """

    scope: Scope
    fields: tuple[str, ...] = ()
    bases: frozenset = NOTHING

    def given(self, values: dict) -> frozenset[str]:
        """Return the attributes set on it and its instances, by the keys of ``values``."""
        keys = (
            k for k in values if isinstance(k, tuple) and k[0] is self and isinstance(k[1], str)
        )
        return frozenset(k[1] for k in keys) - {"*"}


@dataclass(frozen=True)
class Instance:
    """An instance of a class of the learner."""

    of: OwnClass


@dataclass(frozen=True)
class Parent:
    """``super()`` in a method of this class."""

    of: OwnClass


@dataclass(frozen=True)
class Bound:
    """A method of the learner together with its instance or class."""

    function: OwnFunction
    to: Any


def bound(value: Any, to: Instance) -> Any:
    """Return a function of the learner as a method of an instance, and anything else as it is."""
    return Bound(value, to) if isinstance(value, OwnFunction) else value


@dataclass(frozen=True)
class Box:
    """A container that the code makes at one place.

    Attributes:
        site: identity of the syntax tree's node that makes it.
        kind: ``list``, ``dict`` or another word that tells apart several containers of one site.
    """

    site: int
    kind: str = "list"


@dataclass(frozen=True)
class BoxMethod:
    """A method of a container."""

    box: Box
    name: str


@dataclass
class Arguments:
    """The arguments of a call, each as the set of its possible values.

    Attributes:
        given: positional arguments.
        named: keyword arguments.
        spread: what stands after ``*`` or ``**``, and positional arguments after it.
    """

    given: list[frozenset] = field(default_factory=list)
    named: dict[str, frozenset] = field(default_factory=dict)
    spread: frozenset = NOTHING

    def all(self) -> frozenset:
        """Return the possible values of all arguments together."""
        return NOTHING.union(*self.given, *self.named.values(), self.spread)


# What a library made or has.
PathTypes = (Path, Method, KeptValue)


def blend(values: frozenset) -> frozenset:
    """Return what arithmetic makes of some values."""
    found: set = {v for v in values if isinstance(v, KeptValue)}
    if any(v == FOREIGN or isinstance(v, (Path, Method)) for v in values):
        foreign = any(not isinstance(v, Method) or v.name not in PLAIN_ATTRIBUTES
                      for v in values if v != PLAIN)  # fmt: skip
        found.add(FOREIGN if foreign else PLAIN)
    elif values:
        found.add(PLAIN)
    return frozenset(found)


def carried(values: frozenset) -> frozenset:
    """Return those of a library's arguments that may be inside of what it returns."""
    kinds = (OwnFunction, OwnClass, Bound, Instance, KeptValue, Box)
    return frozenset(v for v in values if isinstance(v, kinds))


def only_wraps(value: Any) -> bool:
    """Return whether a decorator leaves calling what it decorates to the learner's code."""
    return isinstance(value, Path) and value.name.partition(".")[0] in (
        "functools", "dataclasses", "contextlib", "typing", "abc", "torch", "builtins",
    )  # fmt: skip


def is_librarys(value: Any) -> bool:
    """Return whether a value belongs to a library or Python; false for ``object`` itself."""
    return isinstance(value, Path) and value.name not in ("object", "builtins.object")
