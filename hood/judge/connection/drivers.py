"""Drivers: code that tries what cannot simply be called with values.

A dispatch mode, a tensor subclass or a backend does its work while *other* code runs. A driver is
that other code: a function that takes the learner's thing and plain values, uses the thing, and
returns plain values. A check names it, ``subject.drive("module:function", "two layers", x)``,
and it runs beside the learner's code. A lab imports the same function for its visible checks, so
that everybody can see how an answer will be asked. The course says which package has its drivers.

What the learner's functions returned, stored or raised there is evidence: whoever says it has
computed it from values that were drawn. What the driver observed beside that, such as how many
graphs there were, is a claim of the learner's process. So :func:`driver` declares, of every part of
what a driver returns, which of the two it is, and a verdict lists the claims.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

WHOLE = ""  # in place of a key: all that a driver returns
# A verdict says it with the same words of a plain call, so it says it once.
INPUTS_KEPT = "that the inputs were left as they were"
GRAPHS = "how many graphs there were"


class LearnersFault(Exception):
    """What a play, or what it calls of the course, raises because of what the learner's code did.

    It counts as if the learner's code had raised it.
    """


class NoDriver(LookupError):
    """There is no driver of this name, or it does not declare what it returns."""


@dataclass(frozen=True)
class Declared:
    """What a driver returns."""

    # keys of the dict that it returns, of what the learner's code returned, stored or raised.
    # ``WHOLE`` stands for the value itself, if it is no such dict.
    returned: frozenset[str]
    observed: Mapping[str, str]  # the same for what the driver observed, with words for the claim

    def fits(self, came: Any) -> bool:
        """Return whether nothing came back that is not declared."""
        keys = (self.returned | self.observed.keys()) - {WHOLE}
        return not keys or (isinstance(came, dict) and came.keys() <= keys)


def driver(*returned: str, observed: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Declare a driver. Used as a decorator; see :class:`Declared`."""

    def declare(function: F) -> F:
        function.declared = Declared(frozenset(returned), observed or {})  # type: ignore[attr-defined]
        return function

    return declare


def declared(function: Callable[..., Any]) -> Declared:
    """Return what a driver declares; NoDriver if it declares nothing."""
    found = getattr(function, "declared", None)
    if not isinstance(found, Declared) or not (found.returned or found.observed):
        raise NoDriver(
            f"{getattr(function, '__name__', function)!r} does not declare what it returns: "
            "decorate it with `hood.judge.connection.drivers.driver`"
        )
    return found


def find_driver(name: str) -> Callable:
    """Return the driver with a whole name, such as ``utils.drivers.dispatch:log_ops``.

    Raises LookupError if there is none.
    """
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"there is no driver {function!r} in {module}") from error
