"""Find failing examples for a learner: a call to paste into the notebook, and what goes wrong.

The cases of the grading run stay hidden. After the verdict, the check draws other cases from a
public seed. :class:`SmallDraw` keeps them small. They still have every property that a
generator guarantees, such as sizes that fit together. The right result is computed on this side,
and the learner's code is called as it was for the verdict. The smallest case that it fails twice in
the same way becomes the example. A call through a driver becomes a call of that driver, and a
method of an instance follows the lines that made the instance.

Which call went wrong, and which item of its reply, is found by trying: the case is played again
with the reference's replies, one of them (or one item of it) replaced by the learner's.

The public seed is independent of the run's seed, so an example reveals nothing that the run drew. A
call that is also one of the run's cases is skipped, with one exception: fixed cases that every seed
contains may be shown, after all others. The learner would meet them at each hand-in anyway, and can
pass them only with a right result.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

from grader.inside.codec import NotByValue
from grader.inside.rpc_server import address, stored_in
from grader.judging.answer_key import AnswerKey, CaseOutcome, play
from grader.judging.difference import agrees, alike, difference, differs
from grader.judging.literal import MAX_CHARACTERS, Unprintable, literal
from grader.judging.rpc_client import Connection, ConnectionLost, InProcess, OutOfTime
from grader.judging.subject import SubjectRaised
from grader.verdict import LINE, Example
from utils.checks.compare import kind_of
from utils.checks.draw import SmallDraw
from utils.checks.exercise import Case, Check

REACHES = (1, 2, 4, 8)  # bounds on the sizes that SmallDraw draws, tried in this order
CALLS = 30  # plays of cases by the learner's code, for one exercise
SECONDS = 1.5  # of this process's processor time, after which no further case is tried
BY_THE_CLOCK = 4  # times as long: the learner's process may be another one
PARTS = 3  # parts of one exercise that get an example
MAX_MESSAGE = 160  # characters of an exception's message
MAX_VALUE = 240  # characters of a value
DIGITS = 4  # of results with a fraction, as torch prints them
MAX_CALL = 1000  # characters of a call, which is laid out in lines
MAX_LINES = 12  # before the call
INSTANCE = "mine"  # what an instance is called in the lines to paste
UNLIKELY = 7919  # no number of a lab is that far from another


def fresh_seed() -> str:
    """Return a new public seed, which is used for nothing else."""
    return secrets.token_hex(4)


def find_examples(
    key: AnswerKey, connection: Connection, parts: Sequence[str], seed: str
) -> dict[str, Example]:
    """Find a small case that the code fails, for each part.

    Args:
        parts: the parts that lost their points; only the first ``PARTS`` count.

    Returns:
        The examples by part, for those parts for which one was found in time.
    """
    parts = parts[:PARTS]
    found: dict[str, Example] = {}
    end, left = time.process_time() + SECONDS, CALLS
    begun = time.monotonic()
    with contextlib.suppress(OutOfTime, KeyboardInterrupt, ConnectionLost, MemoryError):
        for small in _smallest(key, parts, seed):
            if small.case.part in found:
                continue
            late = time.monotonic() - begun > BY_THE_CLOCK * SECONDS
            if left <= 0 or late or time.process_time() > end:
                break
            left -= 1
            try:
                example = small.example(key.check, connection)
            except (OutOfTime, MemoryError):
                raise
            except ConnectionLost as lost:
                if not isinstance(lost, _NoExample):  # what it returned became a long argument
                    raise
                continue
            except Exception:  # the learner's process may send values of any form
                continue
            if example:
                left -= 1
                found[small.case.part] = dataclasses.replace(example, seed=seed)
                if len(found) == len(parts):
                    break
    return found


@dataclasses.dataclass(frozen=True)
class _Call:
    """One request of a case.

    Attributes:
        text: the request as a Python expression.
        before: lines to run first: imports, and what made the instance and was done with it.
        reply: the reply; None if the returned value could not be sent between processes.
        driven: whether it is the call of a driver.
    """

    text: str
    before: tuple[str, ...] = ()
    reply: dict[str, Any] | None = None
    driven: bool = False

    @property
    def lines(self) -> str:
        return "\n".join((*self.before, self.text))

    @property
    def value(self) -> Any:
        return self.reply.get("value") if self.reply else None

    @property
    def raised(self) -> SubjectRaised | None:
        if self.reply is None or "raised" not in self.reply:
            return None
        return SubjectRaised.of(self.reply["raised"])


class _NoExample(ConnectionLost):
    """A case with a request that cannot be written as a short line."""


class _Recorder:
    """A connection that records the requests and writes them as lines of Python.

    Attributes:
        calls: the requests so far.
    """

    def __init__(self, check: Check, connection: Connection):
        self._check, self._connection = check, connection
        self._instances: dict[int, str] = {}
        self._sessions: dict[int, list[str]] = {}  # the lines about each instance
        self.calls: list[_Call] = []

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """See :class:`grader.judging.rpc_client.Connection`.

        Raises:
            _NoExample: if the request cannot be written as a short line.
        """
        call = self._written(request)
        self.calls.append(call)
        reply = self._connection.ask(request)
        self.calls[-1] = dataclasses.replace(call, reply=reply)
        number = request.get("made", reply.get("made"))
        if isinstance(number, int) and number not in self._instances:
            others = f"_{len(self._instances) + 1}" if self._instances else ""
            self._instances[number] = f"{INSTANCE}{others}"
            self._sessions[number] = [f"{self._instances[number]} = {call.text}"]
        elif isinstance(number, int) and request["do"] == "call":
            self._sessions[number].append(call.text)
        return reply

    def _written(self, request: dict[str, Any]) -> _Call:
        before: list[str] = []
        if request["do"] == "get":
            made = request["made"]
            name = f"{self._instances[made]}.{request['attribute']}"
            return _Call(name, tuple(self._sessions[made]))
        if request["do"] != "call" or "generator" in request:
            raise _NoExample("something else than a call")
        args, kwargs = request["args"], request.get("kwargs", {})
        storages = [address(t) for t in stored_in((args, kwargs)) if torch.is_tensor(t)]
        if len(set(storages)) < len([s for s in storages if s]):
            raise _NoExample("tensors that share a storage")
        try:
            words = [*map(_word, args), *(f"{k}={_word(v)}" for k, v in kwargs.items())]
        except Unprintable as error:
            raise _NoExample(str(error)) from None
        called = request.get("name", self._check.name)
        if "driver" in request:
            module, _, function = request["driver"].partition(":")
            called = f"driver.{function}"  # as labs call it, since their own names may be the same
            before = [f"from utils.drivers import {module} as driver", *_imports((args, kwargs))]
            words.insert(0, self._thing(request.get("name")))
        elif "made" in request:
            before, called = self._sessions[request["made"]], self._instances[request["made"]]
            if request["method"] != "__call__":
                called += f".{request['method']}"
        text = f"{called}({', '.join(words)})"
        if len(text) > MAX_CALL or len(before) > MAX_LINES:
            raise _NoExample("too long")
        return _Call(text, tuple(before), driven="driver" in request)

    def _thing(self, name: str | None) -> str:
        """Return what a driver is given of the learner's names."""
        if name is None and isinstance(self._check.right, dict):
            return "{" + ", ".join(f"{one!r}: {one}" for one in self._check.names) + "}"
        return name or self._check.name


def _word(argument: Any) -> str:
    """Return the literal of an argument; in a mapping, such as weights, each item may be long.

    Raises:
        Unprintable: if there is none that is short enough.
    """
    if not isinstance(argument, Mapping):
        return literal(argument)
    if len(argument) > MAX_CALL:
        raise Unprintable("too long")
    return "{" + ", ".join(f"{literal(key)}: {literal(v)}" for key, v in argument.items()) + "}"


def _laid_out(call: str) -> str:
    """Break a long call after each argument, and a long mapping after each item."""
    if len(call) <= LINE:
        return call
    calls = [node for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Call)]
    longest = max(calls, key=lambda node: len(node.args) + len(node.keywords), default=None)
    words: list[ast.expr | ast.keyword] = [*longest.args, *longest.keywords] if longest else []
    if not words:
        return call
    encoded = call.encode()  # offsets count bytes
    lines = [encoded[: words[0].col_offset].decode()]
    for word in words:
        text = _source(call, word)
        if isinstance(word, ast.Dict) and len(text) > LINE:
            items = zip(word.keys, word.values, strict=True)
            lines.append("    {")
            lines += [f"        {_source(call, k)}: {_source(call, v)}," for k, v in items]
            lines.append("    },")
        else:
            lines.append(f"    {text},")
    lines.append(encoded[words[-1].end_col_offset :].decode())
    return "\n".join(lines)


def _source(call: str, node: ast.expr | ast.keyword | None) -> str:
    return ast.get_source_segment(call, node) or "" if node else ""


def _imports(value: Any) -> list[str]:
    """Return imports of the data classes that literals of a value name; see :func:`literal`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [f"from {type(value).__module__} import {type(value).__name__}"]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return sorted({line for item in value for line in _imports(item)})


class _Replay:
    """A connection that gives recorded replies again.

    Args:
        replies: what it gives; None for a value that cannot be sent.
    """

    def __init__(self, replies: Iterable[dict[str, Any] | None]):
        self._left = iter(replies)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """See :class:`grader.judging.rpc_client.Connection`."""
        reply = next(self._left, None)
        if reply is None:
            raise NotByValue("nothing that can be sent")
        return reply


@dataclasses.dataclass(frozen=True)
class _Small:
    """A case that can be shown.

    Attributes:
        case: the case.
        calls: its requests, with the reference's replies.
        right: the reference's outcome.
    """

    case: Case
    calls: list[_Call]
    right: CaseOutcome

    @property
    def text(self) -> str:
        return "\n".join(call.lines for call in self.calls)

    @property
    def size(self) -> tuple[int, str]:
        return len(self.text), self.text

    @property
    def asked(self) -> list[str]:
        """What is asked, without what only makes an instance."""
        return [call.lines for call in self.calls if "made" not in (call.reply or {})]

    def example(self, check: Check, connection: Connection) -> Example | None:
        """Return the case as an example if the code fails it twice in the same way, else None."""
        recorder = _Recorder(check, connection)
        got = play(check, recorder, self.case)
        found = difference(check, got, self.right, self.case.places)
        if found is None:
            return None
        if not alike(check, play(check, _Recorder(check, connection), self.case), got):
            return None
        at = self._where(check, recorder.calls)
        if at is None or self._is_ill_conditioned(check):
            return None
        return self._told(check, at, recorder.calls[at], str(found))

    def _is_ill_conditioned(self, check: Check) -> bool:
        """Whether an answer that is known to be right fails it, as where roundings add up."""
        played = (play(check, InProcess(other.thing), self.case) for other in check.alternates)
        return any(differs(check, got, self.right) for got in played)

    def _with(self, check: Check, at: int, reply: dict[str, Any] | None) -> CaseOutcome:
        """Return the outcome of the case if all replies were the reference's, but for one."""
        replies = [call.reply for call in self.calls]
        replies[at] = reply
        return play(check, _Replay(replies), self.case)

    def _where(self, check: Check, shown: list[_Call]) -> int | None:
        """Return the index of the request that went wrong; None if it is not exactly one."""
        if len(self.calls) == 1:
            return 0
        if [call.lines for call in shown] != [call.lines for call in self.calls[: len(shown)]]:
            return None
        if len(shown) < len(self.calls):  # the case ended early
            last = len(shown) - 1
            return None if _same(check, shown[last], self.calls[last]) else last
        wrong = [
            at
            for at, (got, want) in enumerate(zip(shown, self.calls, strict=True))
            if not _same(check, got, want)
            and differs(check, self._with(check, at, got.reply), self.right)
        ]
        return wrong[0] if len(wrong) == 1 or any(shown[at].before for at in wrong) else None

    def _told(self, check: Check, at: int, got: _Call, said: str) -> Example | None:
        """Return the example for one request; None if the request itself shows no mistake.

        Args:
            got: the learner's.
            said: the difference, in words.
        """
        want = self.calls[at]

        def shown(place: str = "", expected: str = "", came: str = "", **more: Any) -> Example:
            text = _laid_out(want.text + place)
            return Example(text, expected, came, before=want.before, **more)

        if got.reply is None:
            return shown(said=said)
        if want.raised is not None or got.raised is not None:
            if want.raised and got.raised and want.raised.kinds[0] in got.raised.kinds:
                return None
            came = _raised(got.raised) if got.raised else _short(got.value, DIGITS)
            if want.raised:
                came = "an instance" if "made" in got.reply else came or kind_of(got.value)
                return shown("", want.raised.kinds[0], came)
            expected = _short(want.value, DIGITS)
            if not expected or "made" in (want.reply or {}):
                return shown(said=f"got {came}")
            return shown(
                "", expected, came, others=not self._is_only(check, at, want.value, _whole)
            )
        place, w, g, others = self._narrowed(check, at, got)
        if not _same_value(check, g, w):
            expected, came = _side_by_side(w, g)
            if expected and expected != came:
                return shown(place, expected, came, others=others)
            if torch.is_tensor(w) and torch.is_tensor(g) and w.stride() != g.stride():
                return shown(f"{place}.stride()", str(w.stride()), str(g.stride()))
        grads = _grads(want.value), _grads(got.value)
        if grads[0] != grads[1] and _same(check, got, want):
            expected, came = ("a gradient can flow back" if any(g) else "none can" for g in grads)
            return shown(said=f"right values, but expected that {expected}; here {came}")
        return shown(said=said)

    def _narrowed(self, check: Check, at: int, got: _Call) -> tuple[str, Any, Any, bool]:
        """Find the item of a reply to show: short, and the only right one if there is such an item.

        Returns:
            Its place as Python text, empty for the whole reply; the right item; the learner's; and
            whether others are right, too.
        """
        reply = self.calls[at].reply or {}
        put: Callable[[Any], Any] = _whole
        place, want, item = "", self.calls[at].value, got.value
        only, best = False, None
        while True:
            only = only or self._is_only(check, at, want, put)
            is_report = self.calls[at].driven and isinstance(want, dict) and not place
            if not is_report and _short(want, DIGITS) and _short(item, DIGITS):
                if only:
                    return place, want, item, False
                best = best or (place, want, item, True)
            for key in _differing(check, want, item):
                changed = put(_replaced(want, key, item[key]))
                outcome = self._with(check, at, {**reply, "value": changed})
                if differs(check, outcome, self.right):
                    break
            else:
                return best or (place, want, item, not only)
            put = _inner(put, want, key)
            place, want, item = f"{place}[{key!r}]", want[key], item[key]

    def _is_only(self, check: Check, at: int, item: Any, put: Callable[[Any], Any]) -> bool:
        """Whether the case hands an item on as it is, so that no other is right.

        Other values are put in its place, and the outcome must hold all of these.
        """
        if isinstance(item, bool):  # the other one is wrong
            return True
        marked = _marked(item)
        reply = {**(self.calls[at].reply or {}), "value": put(marked)}
        held = list(_leaves(self._with(check, at, reply).value))
        return all(any(_is(leaf, one) for one in held) for leaf in _leaves(marked))


@dataclasses.dataclass(frozen=True)
class _Pasted:
    """A case that says itself how to ask the same; otherwise as :class:`_Small`."""

    case: Case
    text: str
    right: CaseOutcome

    @property
    def size(self) -> tuple[int, str]:
        return len(self.text), self.text

    @property
    def asked(self) -> list[str]:
        return [self.text]

    def example(self, check: Check, connection: Connection) -> Example | None:
        """See :meth:`_Small.example`."""
        got = play(check, connection, self.case)
        found = difference(check, got, self.right, self.case.places)
        if found is None or not alike(check, play(check, connection, self.case), got):
            return None
        if got.raised is not None:
            return Example(_laid_out(self.text), said=f"got {_raised(got.raised)}")
        shows = self.case.paste.shows if self.case.paste else {}
        if got.unusable:
            return Example(_laid_out(self.text), said=str(found))
        if "" in shows:
            return self._item(check, shows[""], self.right.value, got.value)
        for key in _differing(check, self.right.value, got.value):
            if key in shows:
                return self._item(check, shows[key], self.right.value[key], got.value[key])
        return Example(_laid_out(self.text), said=str(found))

    def _item(self, check: Check, shown: str, want: Any, got: Any) -> Example:
        place, whole = "", "{at}" not in shown
        while not (whole and _short(want, DIGITS) and _short(got, DIGITS)):
            differing = _differing(check, want, got)
            if not differing:
                break
            at, whole = differing[0], True
            want, got = want[at], got[at]
            if "{at}" in shown:
                shown = shown.replace("{at}", str(at))
            else:
                place += f"[{at!r}]"
        call = _laid_out(shown.replace("{}", self.text) + place)
        expected, came = _side_by_side(want, got)
        if not expected or expected == came:
            return Example(call, said=f"got {came}")
        return Example(call, expected, came)


def _same(check: Check, got: _Call, want: _Call) -> bool:
    if got.reply is None or want.reply is None:
        return False
    if got.raised or want.raised:
        return bool(got.raised and want.raised and got.raised.kinds == want.raised.kinds)
    return _same_value(check, got.value, want.value)


def _same_value(check: Check, got: Any, want: Any) -> bool:
    return agrees(check, got, want)


def _whole(value: Any) -> Any:
    return value


def _replaced(value: Any, key: Any, item: Any) -> Any:
    """Return a copy of a container or tensor with one item replaced."""
    if torch.is_tensor(value):
        copy = value.detach().clone()
        copy[key] = item
        return copy
    if isinstance(value, dict):
        return {**value, key: item}
    return type(value)([*value[:key], item, *value[key + 1 :]])


def _inner(put: Callable[[Any], Any], value: Any, key: Any) -> Callable[[Any], Any]:
    return lambda item: put(_replaced(value, key, item))


def _differing(check: Check, want: Any, got: Any) -> list[Any]:
    """Return the keys of the items that differ; none where the two have no items in common."""
    keys: Iterable[Any] = ()
    if isinstance(want, dict) and isinstance(got, dict) and want.keys() == got.keys():
        keys = want
    elif torch.is_tensor(want) and torch.is_tensor(got) and want.shape == got.shape:
        keys = range(len(want) if want.dim() else 0)
    elif isinstance(want, (list, tuple)) and type(want) is type(got) and len(want) == len(got):
        keys = range(len(want))
    return [key for key in keys if not _same_value(check, got[key], want[key])]


def _marked(value: Any) -> Any:
    """Return a value of the same form that holds other things, which nothing else is equal to."""
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_marked, value))
    if isinstance(value, torch.Tensor):
        numbers = torch.arange(3, value.numel() + 3).remainder(251).reshape(value.shape)
        return numbers.to(value.dtype) if value.dtype is not torch.bool else ~value
    if isinstance(value, (int, float, complex)):
        return value + UNLIKELY
    return object()


def _is(mark: Any, other: Any) -> bool:
    """Whether it is the same object or, of tensors, an equal one: a case may detach or copy it."""
    if not (torch.is_tensor(mark) and torch.is_tensor(other)):
        return mark is other
    return mark.dtype == other.dtype and torch.equal(mark, other)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        yield value
        return
    for item in value:
        yield from _leaves(item)


def _grads(value: Any) -> list[bool]:
    return [torch.is_tensor(t) and t.requires_grad for t in stored_in(value)]


def _raised(raised: SubjectRaised) -> str:
    message = " ".join(raised.message.split())
    message = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + " …"
    return f"{raised.kinds[0]}: {message}" if message else raised.kinds[0]


def _short(value: Any, digits: int = 0) -> str:
    """Return a value's literal, without the layout of tensors; empty if it is long."""
    try:
        text = literal(_plain(value), digits)
    except (Unprintable, RecursionError):
        return ""
    return text if len(text) <= MAX_VALUE else ""


def _side_by_side(want: Any, got: Any) -> tuple[str, str]:
    """Return the texts of two values, in few digits or, if these are equal, in all digits."""
    for digits in (DIGITS, 0):
        expected, shown = _short(want, digits), _short(got, digits)
        if expected != shown:
            break
    return expected, shown or kind_of(got)


def _plain(value: Any) -> Any:
    """Return the values with contiguous copies of their tensors.

    Raises:
        Unprintable: if a tensor is large.
    """
    if isinstance(value, torch.Tensor):
        if value.numel() > MAX_CHARACTERS:
            raise Unprintable("a large tensor")
        plain = value.detach().resolve_conj().resolve_neg()
        return plain.clone(memory_format=torch.contiguous_format)
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {key: _plain(item) for key, item in value.items()}
    return value


def _smallest(key: AnswerKey, parts: Sequence[str], seed: str) -> Iterator[_Small | _Pasted]:
    """Yield cases of these parts that can be shown: small ones first, those of every seed last."""
    check, corners, seen = key.check, [], set()
    if not set(parts) & _shown_parts(check):
        return
    hidden = _hidden(key)
    for k, reach in enumerate(REACHES):
        for small in sorted(_drawn(check, parts, f"{seed}/{k}", reach), key=lambda s: s.size):
            if small.text in seen:
                continue
            seen.add(small.text)
            if not any(asked in hidden for asked in small.asked):
                yield small
            elif all(asked in _asked_always(check) for asked in small.asked):
                corners.append(small)
    yield from sorted(corners, key=lambda s: s.size)


def _drawn(check: Check, parts: Iterable[str], seed: str, reach: int) -> Iterator[_Small | _Pasted]:
    for c in _small_cases(check, seed, reach):
        if c.part in parts and (small := _recorded(check, c)):
            yield small


def _small_cases(check: Check, seed: str, reach: int) -> list[Case]:
    """Draw small cases; return none where the generator finds none, since a verdict stands without.

    A generator may need more sizes than a reach has, or search in vain for numbers that tell.
    """
    try:
        return check.draw_cases(seed, SmallDraw, reach=reach)
    except (ValueError, LookupError):
        return []


def _recorded(check: Check, c: Case) -> _Small | _Pasted | None:
    if c.not_run:
        return None
    if c.paste:
        try:
            text = c.paste.call.format(*map(_word, c.paste.args))
        except Unprintable:
            return None
        right = play(check, InProcess(check.right), c)
        usable = len(text) <= MAX_CALL and not (right.unusable or right.raised)
        return _Pasted(c, text, right) if usable else None
    recorder = _Recorder(check, InProcess(check.right))
    try:
        right = play(check, recorder, c)
    except ConnectionLost:
        return None
    if right.unusable or right.ran_short() or not recorder.calls:
        return None
    return _Small(c, recorder.calls, right)


def _texts(check: Check, cases: Iterable[Case]) -> frozenset[str]:
    found = (_recorded(check, c) for c in cases)
    return frozenset(asked for small in found if small for asked in small.asked)


@lru_cache(maxsize=64)
def _hidden(key: AnswerKey) -> frozenset[str]:
    """Return the texts of the calls of the run's own cases, as far as they can be shown."""
    return _texts(key.check, key.cases)


@lru_cache(maxsize=64)
def _asked_always(check: Check) -> frozenset[str]:
    """Return the texts of the calls that do not depend on the seed."""
    one, other = (_texts(check, check.draw_cases(f"public {k}")) for k in "ab")
    return one & other


@lru_cache(maxsize=64)
def _shown_parts(check: Check) -> frozenset[str]:
    """Return the parts that have cases which can be shown."""
    cases = _small_cases(check, "public", REACHES[0])
    return frozenset(c.part for c in cases if _recorded(check, c))
