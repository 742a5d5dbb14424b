"""Drivers: code that tests an object if calls with values are not enough.

A dispatch mode, a tensor subclass or a backend does its work while *other* code runs. A driver is
that other code: a function that takes the learner's object and plain values, uses the object, and
returns plain values. A check names the driver, ``subject.drive("module:function", "two layers",
x)``, and the driver runs in the learner's process. A lab imports the same function for its visible
checks, so learners can see how an answer is tested. ``course.toml`` names the package with the
drivers.

A value that the learner's functions returned, stored or raised during this run is evidence, because
a process can get such a value only by computing it from the drawn values. Other facts that the
driver observed, such as the number of graphs, are only claims of the learner's process. So
:func:`driver` declares each part of a driver's result as evidence or as a claim, and a verdict
lists the claims.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

WHOLE = ""  # used as a key: the driver's whole result
# A verdict uses these words for a plain call, too, so that it lists the claim only once.
INPUTS_KEPT = "that the inputs were left as they were"
GRAPHS = "how many graphs there were"


class LearnersFault(Exception):
    """An error in a play, or in a function of the course, that the learner's code caused.

    Such an error counts as if the learner's code had raised it.
    """


class NoDriver(LookupError):
    """There is no driver of this name, or the driver does not declare its result."""


@dataclass(frozen=True)
class Declared:
    """The parts of a driver's result."""

    # The keys of the result whose values the learner's code returned, stored or raised. If the
    # result is not a dict with such keys, ``WHOLE`` is the only key.
    returned: frozenset[str]
    observed: Mapping[str, str]  # the other keys, each with words for the claim

    def fits(self, came: Any) -> bool:
        """Return whether all keys of a result are declared."""
        keys = (self.returned | self.observed.keys()) - {WHOLE}
        return not keys or (isinstance(came, dict) and came.keys() <= keys)


def driver(*returned: str, observed: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Declare a driver. Use this as a decorator; see :class:`Declared`."""

    def declare(function: F) -> F:
        function.declared = Declared(frozenset(returned), observed or {})  # type: ignore[attr-defined]
        return function

    return declare


def declared(function: Callable[..., Any]) -> Declared:
    """Return what a driver declares. Raises NoDriver if it declares nothing."""
    found = getattr(function, "declared", None)
    if not isinstance(found, Declared) or not (found.returned or found.observed):
        raise NoDriver(
            f"{getattr(function, '__name__', function)!r} does not declare what it returns: "
            "decorate it with `hood.judge.connection.drivers.driver`"
        )
    return found


def find_driver(name: str) -> Callable:
    """Return the driver that has this full name, such as ``utils.drivers.dispatch:log_ops``.

    Raises LookupError if there is no such driver.
    """
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"there is no driver {function!r} in {module}") from error
