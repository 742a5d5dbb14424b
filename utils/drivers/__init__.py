"""Drivers: code that tries what cannot simply be called with values.

A dispatch mode, a tensor subclass or a backend does its work while *other* code runs. A driver is
that other code: a function that takes the learner's thing and plain values, uses the thing, and
returns plain values. A check names it, ``subject.drive("dispatch:log_ops", "two layers", x)``, and
it runs beside the learner's code. A lab imports the same function for its visible checks, so that
everybody can see how an answer will be asked.

What the learner's functions returned, stored or raised there is evidence: whoever says it has
computed it from values that were drawn. What the driver observed beside that, such as how many
graphs there were, is a claim of the learner's process. So :func:`driver` declares, of every part of
what a driver returns, which of the two it is, and a verdict lists the claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

WHOLE = ""  # in place of a key: all that a driver returns
# A verdict says it with the same words of a plain call, so it says it once.
INPUTS_KEPT = "that the inputs were left as they were"


class NoDriver(LookupError):
    """There is no driver of this name, or it does not declare what it returns."""


@dataclass(frozen=True)
class Declared:
    """What a driver returns.

    Attributes:
        returned: keys of the dict that it returns, of what the learner's code returned, stored or
            raised. ``WHOLE`` stands for the value itself, if it is no such dict.
        observed: the same for what the driver observed, with words for the claim.
    """

    returned: frozenset[str]
    observed: Mapping[str, str]

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
    """Return what a driver declares.

    Raises:
        NoDriver: if it declares nothing.
    """
    found = getattr(function, "declared", None)
    if not isinstance(found, Declared) or not (found.returned or found.observed):
        raise NoDriver(
            f"{getattr(function, '__name__', function)!r} does not declare what it returns: "
            "decorate it with `utils.drivers.driver`"
        )
    return found
