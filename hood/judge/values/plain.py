"""The rows of Python's own types that JSON does not have: dates, exact numbers and exceptions."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hood.judge.values.kind import Composed, NotByValue, Scalar, Unprintable, Writer, expect

MAX_TEXT = 100  # characters of a date
MAX_EXPONENT = 10_000  # of a Decimal: with a larger exponent, `int` may need all memory
MAX_KINDS = 32  # classes of an exception
MAX_MESSAGE = 1000  # characters of an exception's message


class Moment(Scalar):
    """A date, a time of day, or both, as ISO 8601 writes it.

    A time zone becomes its offset from UTC.
    """

    def __init__(self, of: Any):
        self.type, self.tag, self._read = of, of.__name__, of.fromisoformat
        self.imports = (f"from datetime import {self.tag}",)

    def sent(self, value: Any, encoder: Any) -> str:
        return value.isoformat()

    def received(self, content: Any, decoder: Any) -> Any:
        if type(content) is not str or len(content) > MAX_TEXT:
            raise NotByValue("a message with a date that is not a short text")
        return self._read(content)

    def literal(self, value: Any, writer: Writer) -> str:
        if getattr(value, "tzinfo", None) is not None:
            return f"{self.tag}.fromisoformat({value.isoformat()!r})"
        return repr(value).removeprefix("datetime.")


class Duration(Scalar):
    tag, type = "timedelta", timedelta
    imports = ("from datetime import timedelta",)

    def sent(self, value: timedelta, encoder: Any) -> list[int]:
        return [value.days, value.seconds, value.microseconds]

    def received(self, content: Any, decoder: Any) -> timedelta:
        return timedelta(*expect(content, int, int, int))

    def literal(self, value: timedelta, writer: Writer) -> str:
        units = zip(("days", "seconds", "microseconds"), self.sent(value, None), strict=True)
        words = ", ".join(f"{unit}={count}" for unit, count in units if count)
        return f"timedelta({words or 0})"


class DecimalKind(Scalar):
    tag, type = "decimal", Decimal
    imports = ("from decimal import Decimal",)

    def sent(self, value: Decimal, encoder: Any) -> str:
        if value.is_snan() or (value.is_finite() and abs(value.adjusted()) > MAX_EXPONENT):
            raise NotByValue(f"a Decimal with an exponent of more than {MAX_EXPONENT:,}")
        return str(value)

    def received(self, content: Any, decoder: Any) -> Decimal:
        if type(content) is not str:
            raise NotByValue("a message with a Decimal that is not a text")
        value = Decimal(content)
        self.sent(value, None)
        return value

    def literal(self, value: Decimal, writer: Writer) -> str:
        return f"Decimal({str(value)!r})"


class FractionKind(Scalar):
    tag, type = "fraction", Fraction
    imports = ("from fractions import Fraction",)

    def sent(self, value: Fraction, encoder: Any) -> list[int]:
        return [value.numerator, value.denominator]

    def received(self, content: Any, decoder: Any) -> Fraction:
        numerator, denominator = expect(content, int, int)
        if denominator < 1:
            raise NotByValue("a message with a fraction whose denominator is less than 1")
        return Fraction(numerator, denominator)

    def literal(self, value: Fraction, writer: Writer) -> str:
        return f"Fraction({value.numerator}, {value.denominator})"


class ExceptionKind(Composed):
    """An exception that is a value. The names of its classes are compared, not its message.

    An exception of a class that Python does not have becomes an :class:`Own`, so that a message
    can't create classes.
    """

    tag, type = "exception", BaseException
    watched = False

    def parts(self, value: BaseException) -> dict[str, Any]:
        kinds = list(names_of(value))
        only = value.args[0] if len(value.args) == 1 else value  # a KeyError's text has quotes
        return {"kinds": kinds, "message": str(only)[:MAX_MESSAGE]}

    def made(self, parts: Any) -> BaseException:
        names, message = expect([parts["kinds"], parts["message"]], list, str)
        if len(names) > MAX_KINDS or len(message) > MAX_MESSAGE:
            raise NotByValue("a message with a long exception")
        named = (getattr(builtins, name, None) for name in names if type(name) is str)
        own = [k for k in named if isinstance(k, type) and issubclass(k, Exception)]
        of: Any = own[0] if own and _takes_a_text(own[0]) else Exception
        if of.__name__ not in names or names[0] == of.__name__:
            return of(message)
        for name in names:
            if type(name) is not str or not name.isidentifier() or len(name) > MAX_TEXT:
                raise NotByValue("a message with an exception whose class has no name")
        error = _own(of)(message)
        error.kinds = tuple(names)
        return error

    def items(self, value: BaseException) -> list[tuple[Any, Any]]:
        return []

    def words(self, value: BaseException) -> str:
        return names_of(value)[0]

    def literal(self, value: BaseException, writer: Writer) -> str:
        name = names_of(value)[0]
        if getattr(builtins, name, None) is not type(value):
            raise Unprintable(f"an exception of type {name}")
        return f"{name}({self.parts(value)['message']!r})"


class Own:
    """A base class for an exception whose own class Python does not have."""

    kinds: tuple[str, ...]  # the names of the exception's class and of its bases


@functools.cache
def _own(base: type) -> Any:
    """Return the class for :class:`Own` exceptions with this built-in base class."""
    return type(f"Own{base.__name__}", (Own, base), {})


def names_of(value: BaseException) -> Sequence[str]:
    """Return the names of an exception's class and of its bases."""
    if isinstance(value, Own):
        return value.kinds
    return [str(k.__name__) for k in type(value).__mro__ if k is not object][:MAX_KINDS]


def _takes_a_text(of: type) -> bool:
    return not issubclass(of, (UnicodeError, BaseExceptionGroup))


def same(one: Any, other: Any) -> bool:
    """Return whether two scalars are equal.

    Two values that are not equal to themselves, such as NaN, count as equal.
    """
    return one is other or bool(one == other) or bool(one != one and other != other)


# A datetime is also a date, so datetime comes first.
MOMENTS = Moment(datetime), Moment(date), Moment(time)
KINDS = (*MOMENTS, Duration(), DecimalKind(), FractionKind(), ExceptionKind())
