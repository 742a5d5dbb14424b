"""The learner's code as a check sees it: an object that is called by value.

Arguments and results are copied, storage by storage. A view stays a view of the copied storage, so
strides, offsets and sharing survive, and the two sides never share bytes. A check is the same for
code in this process and for code in another process.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hood.course import course, course_folder
from hood.judge.checks.compare import EXACT, agree, kind_of
from hood.judge.connection.codec import NotByValue
from hood.judge.connection.drivers import WHOLE, Declared, NoDriver, declared, find_driver
from hood.judge.connection.rpc_client import Connection
from hood.judge.values.table import address, grid, stored_in
from hood.untrusted import seen

MAX_MESSAGE = 240
MAX_KINDS = 32
MAX_RESUMES = 10_000  # of one generator
PATH, MAX_LINE = re.compile(r"[A-Za-z_0-9.]{1,100}"), 1_000_000
NUMBER = re.compile(r"(?<![\w.])\d+(\.\d+)?(e[+-]?\d+)?")
# torch's messages about shapes and dimensions. These messages help, and reveal no value. The
# pattern for an index out of bounds leaves out the index, because the index may be a value.
SIZES = r"\[[-\d, ]*\]"
ABOUT_SHAPES = re.compile(
    "|".join(
        (
            r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at [^\d]*\d+",
            r"The expanded size of the tensor \(\d+\) must match the existing size \(\d+\) "
            r"at [^\d]*\d+"
            rf"(\.\s+Target sizes: {SIZES}\.\s+Tensor sizes: {SIZES})?",
            r"mat1 and mat2 shapes cannot be multiplied \(\d+x\d+ and \d+x\d+\)",
            r"size mismatch, got input \(\d+\), mat \(\d+x\d+\), vec \(\d+\)",
            rf"shape '{SIZES}' is invalid for input of size \d+",
            r"is out of bounds for dimension \d+ with size \d+",
            r"expected to be in range of \[-?\d+, -?\d+\], but got -?\d+",
            r"must match except in dimension \d+\. Expected size \d+ but got size \d+",
            r"stack expects each tensor to be equal size, but got "
            rf"{SIZES} at entry \d+ and {SIZES} at entry \d+",
            r"has size \d+ for operand \d+ which does not broadcast with previously seen size \d+",
            rf"expected tensor {SIZES} and src {SIZES} to have the same number of elements, "
            r"but got \d+ and \d+ elements",
            rf"output with shape {SIZES} doesn't match the broadcast shape {SIZES}",
            r"Expected size for first two dimensions of batch2 tensor to be: "
            rf"{SIZES} but got: {SIZES}",
            rf"setStorage: sizes {SIZES}, strides {SIZES}, storage offset \d+, and itemsize \d+ "
            r"requiring a storage size of \d+ are out of bounds for storage of size \d+",
            rf"mismatch in shape: grad_output\[\d+\] has a shape of torch\.Size\({SIZES}\) and "
            rf"output\[\d+\] has a shape of torch\.Size\({SIZES}\)",
        )
    ),
    re.IGNORECASE,
)


class SubjectRaised(Exception):
    """The learner's code raised an exception."""

    def __init__(self, kinds: tuple[str, ...], message: str):
        super().__init__(f"{kinds[0]}: {message}" if message else kinds[0])
        self.kinds = kinds  # the names of the exception's type and base classes, nearest first
        self.message = message  # the first line; also the second line, if the first ends in a colon

    @classmethod
    def of(cls, description: Any) -> SubjectRaised:
        """Make an instance from the description of an exception that the learner's process sent.

        ``description`` should come from :func:`hood.judge.connection.rpc_server.describe`, but may
        be anything. Invalid parts are ignored.
        """
        said = description if isinstance(description, dict) else {}
        names, message = said.get("kinds"), said.get("message")
        names = names[:MAX_KINDS] if isinstance(names, list) else []
        # each name in one line, because it may be in a comment of an example to paste
        kinds = [" ".join(seen(k).split())[:100] for k in names if isinstance(k, str)]
        text = seen(message) if isinstance(message, str) else ""
        return cls(tuple(kinds) or ("Exception",), text[:1000])

    def without_values(self) -> str:
        """Return the message for a report, without the hidden inputs that it may quote.

        Numbers of more than one digit become ``#``; torch's messages about shapes keep their
        numbers. A long message is cut.
        """
        message, end = "", 0
        for sentence in ABOUT_SHAPES.finditer(self.message):
            message += _without_numbers(self.message[end : sentence.start()]) + sentence[0]
            end = sentence.end()
        message += _without_numbers(self.message[end:])
        return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + " …"


@dataclasses.dataclass(frozen=True)
class CallEffects:
    """The side effects of one call."""

    # The changed arguments. For a tensor, array or table: its position among all tensors, arrays
    # and tables. For any other container: the argument in words.
    changed: tuple[int | str, ...]
    # The changed arguments again, each once, by place in the call: a position or a keyword. If the
    # case asks for the arguments (``left_by``), they are only here, not in ``changed``.
    touched: tuple[int | str, ...]
    # For each returned tensor: the position of the argument that shares the tensor's storage, or
    # ``None`` if no argument does.
    shares: tuple[int | None, ...]
    ops: tuple[str, ...] = ()  # operators that used an argument's storage, if they were recorded
    # What was called: a function's name, if there are several functions, or an instance's method.
    of: str = ""
    method: str = ""
    driven: bool = False  # whether a driver was called; if so, the arguments are the driver's
    # whether a change of the arguments is noticed; False if the case asks for the arguments
    watched: bool = False


class Subject:
    """A learner's function, class, value, or dict of functions.

    Every call raises :class:`SubjectRaised` if the learner's code raised an exception, and
    NotByValue if a result cannot be sent or a reply is not valid. ``trace`` says whether to record
    the operators that reach the dispatcher. ``listen`` says whether to record the torch functions
    that the learner's code calls. ``watch`` says whether a change of a list, dict or set in the
    arguments also counts as an effect.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        trace: bool = False,
        listen: bool = False,
        watch: bool = False,
    ):
        self._connection = connection
        self._watch = watch
        self._trace, self._listen = trace, listen
        # If recorded: the line of the first call, by the path of the function or method of torch.
        self.called: dict[str, int] = {}
        self.claims: dict[str, None] = {}  # facts that only the learner's process reports
        self.calls: list[CallEffects] = []  # one :class:`CallEffects` for each call so far
        self.got: Any = None  # what the last call returned

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function by value and return its result; for a class, a :class:`Handle`."""
        return self.run(args, kwargs)

    def __getitem__(self, name: str) -> Callable:
        """Return the function with this name, for an exercise with several functions."""
        return lambda *args, **kwargs: self.run(args, kwargs, name=name)

    def printed(self, *args: Any, of: str | None = None, **kwargs: Any) -> str:
        """Call the function and return the text that it printed, not its result.

        ``of`` is the function's name, in an exercise with several functions.
        """
        return self.run(args, kwargs, name=of, prints=True)

    def drawn(self, *args: Any, of: str | None = None, **kwargs: Any) -> Any:
        """Call the function; return the figure or axes that it returned, or drew with pyplot.

        The result is a :class:`hood.judge.values.figures.Drawn`, or None if there is no figure.
        ``of`` is the function's name, in an exercise with several functions.
        """
        return self.run(args, kwargs, name=of, draws=True)

    def left_by(self, *args: Any, of: str | None = None, **kwargs: Any) -> list[Any]:
        """Call the function and return the arguments after the call, not the result.

        Use this for a function that must change a list or a dict in place. ``of`` is the function's
        name, in an exercise with several functions.
        """
        return self.run(args, kwargs, name=of, leaves=True)

    def generator(self, *args: Any, of: str | None = None, **kwargs: Any) -> RemoteGenerator:
        """Call the function, which must return a generator or another iterator.

        ``of`` is the function's name, in an exercise with several functions.
        """
        return self._generator(args, kwargs, name=of)

    def drive_generator(
        self, driver: str, *args: Any, of: str | None = None, **kwargs: Any
    ) -> RemoteGenerator:
        """Call a driver that returns a generator; see :meth:`drive` and :meth:`generator`."""
        whole, says = self._declared(driver)
        return self._generator(args, kwargs, says, name=of, driver=whole)

    def _generator(
        self, args: tuple, kwargs: dict, says: Declared | None = None, **which: Any
    ) -> RemoteGenerator:
        made = self.run(args, kwargs, **which, generator=True)
        if not isinstance(made, Handle):
            raise NotByValue(f"{kind_of(made)}: expected a generator")
        return RemoteGenerator(self, made.made, says)

    def drive(self, driver: str, *args: Any, of: str | None = None, **kwargs: Any) -> Any:
        """Call a driver of the course, in the learner's process, with the learner's object.

        ``driver`` is the driver's name, such as ``dispatch:log_ops``. In an exercise with several
        functions, ``of`` is the name of the function to pass. Return the driver's result by value.
        A fact that the driver observed becomes a claim when the case reads this fact. Raises
        NoDriver if there is no such driver, or if the driver does not declare its result.
        """
        whole, says = self._declared(driver)
        return self.as_declared(says, self.run(args, kwargs, name=of, driver=whole))

    def as_declared(self, says: Declared, came: Any) -> Any:
        """Return a driver's result. Raises NotByValue if it does not have the declared form."""
        if not says.fits(came):
            raise NotByValue(f"{kind_of(came)}: expected the form that the driver declares")
        return Told(came, says.observed, self) if isinstance(came, dict) else came

    def claim(self, words: str) -> None:
        """Record that the case depends on another fact that only the learner's process reports."""
        self.claims[words] = None

    def _declared(self, driver: str) -> tuple[str, Declared]:
        """Return a driver's full name, and what it declares."""
        whole = f"{course(course_folder()).drivers}.{driver}"
        try:
            says = declared(find_driver(whole))
        except LookupError as error:
            raise NoDriver(str(error)) from error
        if WHOLE in says.observed:
            self.claim(says.observed[WHOLE])
        return whole, says

    def value(self) -> Any:
        """Return a copy of the learner's object itself."""
        return self.ask(do="value")["value"]

    def run(self, args: tuple, kwargs: dict, **which: Any) -> Any:
        """Call the learner's code, and record the side effects in ``calls``.

        ``which`` says what to call; :class:`hood.judge.connection.rpc_server.Answerer` describes
        its keys. Keys with None are left out. Return the result, or a :class:`Handle` to an
        instance or a generator.
        """
        asked = {"args": args, "kwargs": kwargs or None, "trace": self._trace or None}
        asked |= {"watch": (self._watch and "leaves" not in which) or None} | which
        reply = self.ask(do="call", **{key: v for key, v in asked.items() if v is not None})
        if isinstance(reply.get("made"), int):
            return Handle(self, reply["made"])
        before, after = stored_in((args, kwargs)), stored_in(reply["after"])
        if len(before) != len(after):
            raise NotByValue("something, but the arguments no longer contain the same tensors")
        came = self.got = reply["value"]
        pairs = enumerate(zip(before, after, strict=True))
        kept = "leaves" in which  # whether the case asks for the changed arguments
        positions = [i for i, (b, a) in pairs if not (kept or _is_unchanged(b, a))]
        changed: tuple[int | str, ...] = tuple(positions)
        shares = tuple(_argument_shared_by(t, after) for t in stored_in(came))
        ops = tuple(op for op in reply.get("ops", ()) if isinstance(op, str))
        where: list[int | str] = []  # the argument of each tensor and array
        for place, argument in (*enumerate(args), *kwargs.items()):
            where += [place] * len(stored_in(argument))
        touched = tuple(dict.fromkeys(where[i] for i in positions))
        if kept and isinstance(came, list):
            both = enumerate(zip(args, came, strict=False))
            touched = tuple(p for p, (b, a) in both if not agree(a, b, tolerance=EXACT))
        if "left" in reply:
            left = dict((*enumerate(reply["left"][0]), *reply["left"][1].items()))
            arguments = (*enumerate(args), *kwargs.items())
            wrong = [p for p, one in arguments if not agree(left[p], one, tolerance=EXACT)]
            touched = tuple(dict.fromkeys((*touched, *wrong)))
            changed += tuple(f"argument {place}" for place in wrong)
        what = {"of": which.get("name") or "", "method": which.get("method") or ""}
        watched = not kept and bool(
            before or ("left" in reply and _can_change((*args, *kwargs.values())))
        )
        driven = "driver" in which
        called = CallEffects(changed, touched, shares, ops, **what, driven=driven, watched=watched)
        self.calls.append(called)
        return came

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the reply."""
        reply = self._connection.ask(request | ({"listen": True} if self._listen else {}))
        if isinstance(called := reply.get("called"), dict):
            for path, line in called.items():
                known = isinstance(path, str) and PATH.fullmatch(path) and type(line) is int
                if known and 0 < line < MAX_LINE:
                    self.called.setdefault(path, line)
        if "raised" in reply:
            raise SubjectRaised.of(reply["raised"])
        if not ("made" in reply or "value" in reply):
            raise NotByValue("no answer")
        return reply


class Handle:
    """An instance of the learner's class. Its methods are called by value."""

    def __init__(self, subject: Subject, made: int):
        self._subject = subject
        self.made = made

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method and return its result; ``"__call__"`` calls the instance itself.

        For a method that returns its instance, such as ``eval``, the result is a new handle to the
        instance.
        """
        return self._subject.run(args, kwargs, made=self.made, method=method)

    def gradients(self, upstream: Any, *args: Any) -> dict[str, Any]:
        """Call the instance, which is a module, and send a gradient back through it.

        ``upstream`` is the gradient of the output, with the output's shape and dtype.
        :func:`hood.judge.connection.torch_calls.gradients` describes the result.
        """
        asked = {"made": self.made, "args": args, "upstream": upstream}
        return self._subject.ask(do="gradients", **asked)["value"]

    def get(self, attribute: str) -> Any:
        """Return an attribute's value."""
        return self._subject.ask(do="get", made=self.made, attribute=attribute)["value"]


class RemoteGenerator:
    """A generator of the learner's code, which runs from one ``yield`` to the next when resumed.

    The generator may be endless, so a case resumes it at most ``MAX_RESUMES`` times. The operators
    in its body are not recorded.
    """

    def __init__(self, subject: Subject, made: int, says: Declared | None = None):
        self._subject, self._made = subject, made
        self._says = says  # the declared result of a driver's generator
        self._left = MAX_RESUMES

    def resume(self, value: Any = None) -> tuple[str, Any]:
        """Resume the generator with a value for its ``yield``.

        Return ``("yield", x)``, or ``("return", x)`` at its end.
        """
        if self._left == 0:
            raise NotByValue(f"a generator of more than {MAX_RESUMES:,} values")
        self._left -= 1
        came = self._subject.ask(do="resume", made=self._made, value=value)["value"]
        if not (isinstance(came, tuple) and len(came) == 2 and came[0] in ("yield", "return")):
            raise NotByValue("no answer")
        self._subject.got = came[1]
        if self._says and came[0] == "return":
            return "return", self._subject.as_declared(self._says, came[1])
        return came[0], came[1]

    def take(self, count: int) -> list[Any]:
        """Return the next ``count`` values of the generator; fewer values if it ends."""
        resumed = itertools.takewhile(lambda came: came[0] == "yield", iter(self.resume, None))
        return [value for _, value in itertools.islice(resumed, count)]


class Told(dict):
    """A driver's result. When a case reads a key that the driver observed, a claim is recorded."""

    def __init__(self, came: dict, observed: Mapping[str, str], subject: Subject):
        super().__init__(came)
        self._observed, self._subject = observed, subject

    def __getitem__(self, key: Any) -> Any:
        if key in self._observed:
            self._subject.claim(self._observed[key])
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        # Because of this method, `dict(...)` uses `keys` and `__getitem__` to make a copy.
        return super().__iter__()

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self.keys() else default  # noqa: SIM118, SIM401

    def values(self) -> Any:
        return dict(self).values()

    def items(self) -> Any:
        return dict(self).items()

    def __or__(self, other: Any) -> dict:
        return dict(self) | other

    def __ror__(self, other: Any) -> dict:
        return other | dict(self)

    def __eq__(self, other: object) -> bool:
        return dict(self) == other

    __hash__ = None  # as in every dict


def read_whole(value: Any) -> Any:
    """Return a case's result, in which each :class:`Told` is read and copied as a dict."""
    if isinstance(value, dict):
        return {key: read_whole(value[key]) for key in value}
    if type(value) in (list, tuple):
        return type(value)(map(read_whole, value))
    return value


def _without_numbers(text: str) -> str:
    said = NUMBER.sub(lambda n: n[0] if len(n[0]) == 1 else "#", text)
    return "a number" if said == "#" else said  # for example the message of a KeyError


def _argument_shared_by(tensor: Any, arguments: list) -> int | None:
    places, place = [*map(address, arguments)], address(tensor)
    return places.index(place) if place and place in places else None


def _can_change(value: Any) -> bool:
    """Return whether an argument without a storage can be changed in place."""
    if isinstance(value, tuple):
        return any(map(_can_change, value))
    return isinstance(value, list | dict | set | bytearray) or dataclasses.is_dataclass(value)


def _is_unchanged(before: Any, after: Any) -> bool:
    """Return whether an argument kept its shape, dtype and values; NaN equals NaN."""
    row = grid(before)
    if row is None:
        return agree(after, before, tolerance=EXACT)
    if row is not grid(after):
        return False
    same = before.shape == after.shape and before.dtype == after.dtype
    return same and row.unchanged(before, after)
