"""Find failing examples for a learner: a call to paste into the notebook, and what goes wrong.

The cases of the grading run stay hidden. After the verdict, the check draws other cases from a
public seed. :class:`utils.draw.SmallDraw` keeps them small. They still have every property that a
generator guarantees, such as sizes that fit together. The right result is computed on this side,
and the learner's code is called as it was for the verdict. The smallest case that it fails twice in
the same way becomes the example.

The public seed is independent of the run's seed, so an example reveals nothing that the run drew. A
call that is also one of the run's cases is skipped, with one exception: fixed cases that every seed
contains may be shown, after all others. The learner would meet them at each hand-in anyway, and can
pass them only with a right result.
"""

from __future__ import annotations

import contextlib
import dataclasses
import numbers
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
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
from grader.verdict import Example
from utils.checks import Case, Check
from utils.compare import agree, kind_of
from utils.draw import SmallDraw

REACHES = (1, 2, 4, 8)  # bounds on the sizes that SmallDraw draws, tried in this order
CALLS = 30  # plays of cases by the learner's code, for one exercise
SECONDS = 1.5  # of this process's processor time, after which no further case is tried
PARTS = 3  # parts of one exercise that get an example
MAX_MESSAGE = 160  # characters of an exception's message
MAX_VALUE = 240  # characters of a value
DIGITS = 4  # of results with a fraction, as torch prints them


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
    with contextlib.suppress(OutOfTime, KeyboardInterrupt, ConnectionLost, MemoryError):
        for small in _smallest(key, parts, seed):
            if small.case.part in found:
                continue
            if left <= 0 or time.process_time() > end:
                break
            left -= 1
            example = small.example(key.check, connection)
            if example:
                left -= 1
                found[small.case.part] = dataclasses.replace(example, seed=seed)
                if len(found) == len(parts):
                    break
    return found


@dataclasses.dataclass(frozen=True)
class _Call:
    """One call of a case.

    Attributes:
        text: the call as Python.
        value: what it returned.
        raised: what it raised, or None.
        refused: whether the returned value could not be sent between processes.
    """

    text: str
    value: Any = None
    raised: SubjectRaised | None = None
    refused: bool = False


class _NoExample(ConnectionLost):
    """A case with a call that cannot be written as a short line."""


class _Recorder:
    """A connection that records the calls.

    Attributes:
        calls: the calls so far.
    """

    def __init__(self, check: Check, connection: Connection):
        self._check, self._connection = check, connection
        self.calls: list[_Call] = []

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """See :class:`grader.judging.rpc_client.Connection`.

        Raises:
            _NoExample: if the call cannot be written as a short line.
        """
        text = _call_text(self._check.name, request)
        try:
            reply = self._connection.ask(request)
        except NotByValue:
            self.calls.append(_Call(text, refused=True))
            raise
        raised = SubjectRaised.of(reply["raised"]) if "raised" in reply else None
        self.calls.append(_Call(text, reply.get("value"), raised))
        return reply


def _call_text(name: str, request: dict[str, Any]) -> str:
    if request["do"] != "call" or "made" in request or "driver" in request:
        raise _NoExample("something else than a function's call")
    args, kwargs = request["args"], request.get("kwargs", {})
    storages = [address(t) for t in stored_in((args, kwargs)) if torch.is_tensor(t)]
    if len(set(storages)) < len([s for s in storages if s]):
        raise _NoExample("tensors that share a storage")
    try:
        words = [*map(literal, args), *(f"{k}={literal(v)}" for k, v in kwargs.items())]
    except Unprintable as error:
        raise _NoExample(str(error)) from None
    text = f"{request.get('name', name)}({', '.join(words)})"
    if len(text) > MAX_CHARACTERS:
        raise _NoExample("too long")
    return text


@dataclasses.dataclass(frozen=True)
class _Small:
    """A case that can be shown.

    Attributes:
        case: the case.
        calls: its calls, with the reference's results.
        right: the reference's outcome.
    """

    case: Case
    calls: list[_Call]
    right: CaseOutcome

    @property
    def text(self) -> str:
        return " ".join(call.text for call in self.calls)

    @property
    def size(self) -> tuple[int, str]:
        return len(self.text), self.text

    def example(self, check: Check, connection: Connection) -> Example | None:
        """Return the case as an example if the code fails it twice in the same way, else None."""
        recorder = _Recorder(check, connection)
        got = play(check, recorder, self.case)
        found = difference(check, got, self.right, self.case.places)
        if found is None:
            return None
        if not alike(check, play(check, _Recorder(check, connection), self.case), got):
            return None
        place = self._where(check, recorder.calls)
        if place is None or self._is_ill_conditioned(check):
            return None
        return _told(check, self.calls[place], recorder.calls[place], self.right.value, str(found))

    def _is_ill_conditioned(self, check: Check) -> bool:
        """Whether an answer that is known to be right fails it, as where roundings add up."""
        played = (play(check, InProcess(other.thing), self.case) for other in check.alternates)
        return any(differs(check, got, self.right) for got in played)

    def _where(self, check: Check, shown: list[_Call]) -> int | None:
        """Return the index of the call that went wrong; None if it is not exactly one."""
        if len(self.calls) == 1:
            return 0
        if [call.text for call in shown] != [call.text for call in self.calls]:
            return None
        wrong = [
            k
            for k, (g, w) in enumerate(zip(shown, self.calls, strict=True))
            if not _same(check, g, w)
        ]
        return wrong[0] if len(wrong) == 1 else None


def _same(check: Check, got: _Call, want: _Call) -> bool:
    if got.refused:
        return False
    if got.raised or want.raised:
        return bool(got.raised and want.raised and got.raised.kinds == want.raised.kinds)
    return agrees(check, got.value, want.value)


def _told(check: Check, want: _Call, got: _Call, played: Any, said: str) -> Example | None:
    """Return the example for one call; None if the call itself shows no mistake.

    Args:
        want: the reference's call.
        got: the learner's call.
        played: what the case computed from the reference's reply; it may use only a part.
        said: the difference, in words.
    """
    if got.refused:
        return Example(want.text, said=said)
    if want.raised is not None or got.raised is not None:
        if want.raised and got.raised and want.raised.kinds[0] in got.raised.kinds:
            return None
        expected = want.raised.kinds[0] if want.raised else _short(want.value, DIGITS)
        shown = _raised(got.raised) if got.raised else _short(got.value, DIGITS)
        if not expected:
            return Example(want.text, said=f"got {shown}")
        return Example(want.text, expected, shown or kind_of(got.value))
    for place, w, g in _looked_at(want.value, got.value, played):
        if _same(check, _Call("", g), _Call("", w)):
            continue
        others = not (place or _is_whole(w, played))
        if not others:
            place, w, g = _narrowed(check, place, w, g)
        expected, shown = _side_by_side(w, g)
        if expected and expected != shown:
            return Example(want.text + place, expected, shown, others)
        if torch.is_tensor(w) and torch.is_tensor(g) and w.stride() != g.stride():
            return Example(f"{want.text}{place}.stride()", str(w.stride()), str(g.stride()))
        break
    grads = _grads(want.value), _grads(got.value)
    if grads[0] != grads[1] and _same(check, got, want):
        expected, shown = ("a gradient can flow back" if any(g) else "none can" for g in grads)
        return Example(want.text, said=f"right values, but expected that {expected}; here {shown}")
    return Example(want.text, said=said)


def _looked_at(want: Any, got: Any, played: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the items of a reply that the case used, then the whole reply.

    Yields:
        The item's place as Python text (empty for the whole), the right value, and the learner's.
    """
    parts = played if isinstance(played, (list, tuple)) else [played]
    if want is not played and isinstance(want, (dict, tuple, list)) and type(got) is type(want):
        items = want.items() if isinstance(want, dict) else enumerate(want)
        for k, item in items:
            has = k in got if isinstance(got, dict) else len(got) == len(want)
            if has and any(item is part for part in parts):
                yield f"[{k!r}]", item, got[k]
    yield "", want, got


def _narrowed(check: Check, place: str, want: Any, got: Any) -> tuple[str, Any, Any]:
    """Go down to the first item that differs, as long as one of the two is too long to show.

    Returns:
        As :func:`_looked_at` yields; the same again where the two have no items in common.
    """
    while not (_short(want, DIGITS) and _short(got, DIGITS)):
        keys: Iterable[Any] = ()
        if isinstance(want, dict) and isinstance(got, dict) and want.keys() == got.keys():
            keys = want
        elif torch.is_tensor(want) and torch.is_tensor(got) and want.shape == got.shape:
            keys = range(len(want) if want.dim() else 0)
        elif isinstance(want, (list, tuple)) and type(want) is type(got) and len(want) == len(got):
            keys = range(len(want))
        wrong = [k for k in keys if not _same(check, _Call("", got[k]), _Call("", want[k]))]
        if not wrong:
            break
        place, want, got = f"{place}[{wrong[0]!r}]", want[wrong[0]], got[wrong[0]]
    return place, want, got


def _is_whole(value: Any, played: Any) -> bool:
    """Return whether the case used the reply as it is, so that only this value is right."""
    parts = played if isinstance(played, (list, tuple)) else [played]
    if any(value is part for part in (*parts, played)) or isinstance(value, numbers.Number):
        return True
    try:
        return agree(value, played)
    except Exception:
        return False


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


def _smallest(key: AnswerKey, parts: Sequence[str], seed: str) -> Iterator[_Small]:
    """Yield cases of these parts that can be shown: small ones first, those of every seed last."""
    check, corners, seen = key.check, [], set()
    if isinstance(check.right, type) or not set(parts) & _shown_parts(check):
        return
    hidden = _hidden(key)
    for k, reach in enumerate(REACHES):
        for small in sorted(_drawn(check, parts, f"{seed}/{k}", reach), key=lambda s: s.size):
            if small.text in seen:
                continue
            seen.add(small.text)
            if not any(call.text in hidden for call in small.calls):
                yield small
            elif all(call.text in _asked_always(check) for call in small.calls):
                corners.append(small)
    yield from sorted(corners, key=lambda s: s.size)


def _drawn(check: Check, parts: Iterable[str], seed: str, reach: int) -> Iterator[_Small]:
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


def _recorded(check: Check, c: Case) -> _Small | None:
    if c.not_run:
        return None
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
    return frozenset(call.text for small in found if small for call in small.calls)


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
