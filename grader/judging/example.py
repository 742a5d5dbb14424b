"""Find failing examples for a learner: a call to paste into the notebook, and what goes wrong.

After the verdict, the check draws other cases from a public seed, independent of the run's, by
:class:`SmallDraw`, which keeps them small. The smallest case that the learner's code fails twice in
the same way becomes the example. Which of its calls went wrong, and which item of a reply, is found
by trying: the case is played again with the reference's replies, one of them (or one item of it)
replaced by the learner's. A call that is also one of the run's hidden cases is skipped, but for
fixed cases that every seed contains: these may be shown, after all others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from grader.inside.codec import NotByValue
from grader.inside.rpc_server import stored_in
from grader.judging.answer_key import AnswerKey
from grader.judging.call_text import Call, CallRecorder, NoText, argument, laid_out
from grader.judging.difference import agrees, alike, difference, differs
from grader.judging.literal import MAX_CHARACTERS, Unprintable, literal
from grader.judging.outcome import CaseOutcome, play
from grader.judging.rpc_client import Connection, ConnectionLost, InProcess, OutOfTime
from grader.judging.subject import SubjectRaised
from grader.verdict import MAX_CALL, Example
from utils.checks.compare import kind_of
from utils.checks.draw import SmallDraw
from utils.checks.exercise import Case, Check, Paste

REACHES = (1, 2, 4, 8)  # bounds on the sizes that SmallDraw draws, tried in this order
CALLS = 30  # plays of cases by the learner's code, for one exercise
SECONDS = 1.5  # of this process's processor time, after which no further case is tried
BY_THE_CLOCK = 4  # times as long: the learner's process may be another one
PARTS = 3  # parts of one exercise that get an example
MAX_MESSAGE = 160  # characters of an exception's message
MAX_VALUE = 240  # characters of a value
DIGITS = 4  # of results with a fraction, as torch prints them
DTYPE = re.compile(r"\b(?:bfloat16|float(?:16|32|64)|complex(?:64|128)|u?int(?:8|16|32|64)|bool)\b")
UNLIKELY = 7919  # no number of a lab is that far from another


def fresh_seed() -> str:
    """Return a new public seed, which is used for nothing else."""
    return secrets.token_hex(4)


def can_be_shown(key: AnswerKey, problems: Mapping[str, str]) -> dict[str, str]:
    """Return the problems of the parts of which a case may be shown as an example."""
    shown = {c.part for c in key.cases if c.example}
    return {part: said for part, said in problems.items() if part in shown}


def find_examples(
    key: AnswerKey, connection: Connection, problems: Mapping[str, str], seed: str
) -> dict[str, Example]:
    """Find a small case that the code fails, for each part.

    ``problems`` are what the verdict says of the parts that lost their points; only the first
    ``PARTS`` count. A case of the dtype that it names goes before others. It returns the examples
    by part, for those parts for which one was found in time.
    """
    problems = dict(itertools.islice(can_be_shown(key, problems).items(), PARTS))
    if not problems:  # to draw cases may take long
        return {}
    found: dict[str, Example] = {}
    end, left = time.process_time() + SECONDS, CALLS
    begun = time.monotonic()
    with contextlib.suppress(OutOfTime, KeyboardInterrupt, ConnectionLost, MemoryError):
        for small in _smallest(key, problems, seed):
            if small.case.part in found:
                continue
            late = time.monotonic() - begun > BY_THE_CLOCK * SECONDS
            if left <= 0 or late or time.process_time() > end:
                break
            left -= 1
            try:
                example = small.example(connection)
            except (OutOfTime, MemoryError):
                raise
            except ConnectionLost as lost:
                if not isinstance(lost, NoText):  # what it returned became a long argument
                    raise
                continue
            except Exception:  # the learner's process may send values of any form
                continue
            if example:
                left -= 1
                found[small.case.part] = dataclasses.replace(example, seed=seed)
                if len(found) == len(problems):
                    break
    return found


class _Replay:
    """A connection that gives recorded replies again; None is a value that cannot be sent."""

    def __init__(self, replies: Iterable[dict[str, Any] | None]):
        self._left = iter(replies)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        reply = next(self._left, None)
        if reply is None:
            raise NotByValue("nothing that can be sent")
        return reply


@dataclasses.dataclass(frozen=True)
class _SmallCase:
    check: Check
    case: Case
    right: CaseOutcome  # the reference's outcome
    text: str  # all lines of the case
    asked: list[str]  # the lines of each request, without those that only make an instance
    # Its requests, with the reference's replies; none where the case says itself how to ask the
    # same
    calls: list[Call]

    @classmethod
    def of(cls, check: Check, c: Case) -> _SmallCase | None:
        """Play a case with the reference and write it down; None if that cannot be shown."""
        if c.not_run or not c.example:
            return None
        recorder = CallRecorder(check, InProcess(check.right))
        try:
            if c.paste:
                text = c.paste.call.format(*map(argument, c.paste.args))
                right = play(check, InProcess(check.right), c)
                usable = len(text) <= MAX_CALL and not (right.unusable or right.raised)
                return cls(check, c, right, text, [text], []) if usable else None
            right = play(check, recorder, c)
        except (Unprintable, ConnectionLost):
            return None
        calls = recorder.calls
        if right.unusable or right.ran_short() or not calls:
            return None
        asked = [call.lines for call in calls if not call.makes]
        return cls(check, c, right, "\n".join(call.lines for call in calls), asked, calls)

    def example(self, connection: Connection) -> Example | None:
        """Return the case as an example if the code fails it twice in the same way, else None."""
        check = self.check
        recorder = CallRecorder(check, connection)
        got = play(check, recorder if self.calls else connection, self.case)
        found = difference(check, got, self.right, self.case.places)
        if found is None or not alike(check, play(check, connection, self.case), got):
            return None
        if self.case.paste:
            return self._pasted(self.case.paste, got, str(found))
        at = self._where(recorder.calls)
        if at is None or self._is_ill_conditioned():
            return None
        return self._told(at, recorder.calls[at], str(found))

    def _pasted(self, paste: Paste, got: CaseOutcome, said: str) -> Example:
        """Return the example of a case that says itself how to ask the same."""
        whole = laid_out(self.text)
        if got.raised is not None:
            return Example(whole, said=f"got {_raised(got.raised)}")
        if got.unusable:
            return Example(whole, said=said)
        want, came, shown = self.right.value, got.value, paste.shows.get("")
        if shown is None:
            differing = _differing(self.check, want, came)
            key = next((key for key in differing if key in paste.shows), None)
            if key is None:
                return Example(whole, said=said)
            want, came, shown = want[key], came[key], paste.shows[key]
        place, entire = "", "{at}" not in shown
        while not (entire and _short(want, DIGITS) and _short(came, DIGITS)):
            differing = _differing(self.check, want, came)
            if not differing:
                break
            at, entire = differing[0], True
            want, came = want[at], came[at]
            if "{at}" in shown:
                shown = shown.replace("{at}", str(at))
            else:
                place += f"[{at!r}]"
        call = laid_out(shown.replace("{}", self.text) + place)
        expected, said = _side_by_side(want, came)
        if not expected or expected == said:
            return Example(call, said=f"got {said}")
        return Example(call, expected, said)

    def _is_ill_conditioned(self) -> bool:
        """Whether an answer that is known to be right fails it, as where roundings add up."""
        rights = (InProcess(other.thing) for other in self.check.alternates)
        played = (play(self.check, right, self.case) for right in rights)
        return any(differs(self.check, got, self.right) for got in played)

    def _with(self, at: int, reply: dict[str, Any] | None) -> CaseOutcome:
        """Return the outcome of the case if all replies were the reference's, but for one."""
        replies = [call.reply for call in self.calls]
        replies[at] = reply
        return play(self.check, _Replay(replies), self.case)

    def _where(self, shown: list[Call]) -> int | None:
        """Return the index of the request that went wrong; None if it is not exactly one."""
        if len(self.calls) == 1:
            return 0
        if [call.lines for call in shown] != [call.lines for call in self.calls[: len(shown)]]:
            return None
        same = [_same(self.check, *pair) for pair in zip(shown, self.calls, strict=False)]
        if len(shown) < len(self.calls):  # the case ended early
            return None if same[-1] else len(shown) - 1
        wrong = [
            at
            for at, got in enumerate(shown)
            if not same[at] and differs(self.check, self._with(at, got.reply), self.right)
        ]
        return wrong[0] if len(wrong) == 1 or any(shown[at].before for at in wrong) else None

    def _told(self, at: int, got: Call, said: str) -> Example | None:
        """Return the example for one request; None if the request itself shows no mistake."""
        want = self.calls[at]

        def shown(place: str = "", expected: str = "", came: str = "", **more: Any) -> Example:
            text = laid_out(want.text + place)
            return Example(text, expected, came, before=want.before, **more)

        if got.reply is None:
            return shown(said=said)
        if want.raised is not None or got.raised is not None:
            if want.raised and got.raised and want.raised.kinds[0] in got.raised.kinds:
                return None
            came = _raised(got.raised) if got.raised else _short(got.value, DIGITS)
            if want.raised:
                came = "an instance" if got.makes else came or kind_of(got.value)
                return shown("", want.raised.kinds[0], came)
            expected = _short(want.value, DIGITS)
            if not expected or want.makes:
                return shown(said=f"got {came}")
            return shown("", expected, came, others=not self._is_only(at, [], want.value))
        path, w, g, others = self._narrowed(at, got)
        place = "".join(f"[{key!r}]" for key in path)
        if not agrees(self.check, g, w):
            expected, came = _side_by_side(w, g)
            if expected and expected != came:
                return shown(place, expected, came, others=others)
            if torch.is_tensor(w) and torch.is_tensor(g) and w.stride() != g.stride():
                return shown(f"{place}.stride()", str(w.stride()), str(g.stride()))
        grads = _grads(want.value), _grads(got.value)
        if grads[0] != grads[1] and _same(self.check, got, want):
            expected, came = ("a gradient can flow back" if any(g) else "none can" for g in grads)
            return shown(said=f"right values, but expected that {expected}; here {came}")
        return shown(said=said)

    def _narrowed(self, at: int, got: Call) -> tuple[list, Any, Any, bool]:
        """Find the item of a reply to show: short, and the only right one if there is such an item.

        It returns its path, empty for the whole reply; the right item; the learner's; and whether
        others are right, too.
        """
        whole = self.calls[at].value
        path: list = []
        want, item, only = whole, got.value, False
        best: tuple[list, Any, Any, bool] | None = None
        while True:
            only = only or self._is_only(at, path, want)
            is_report = self.calls[at].driven and isinstance(want, dict) and not path
            if not is_report and _short(want, DIGITS) and _short(item, DIGITS):
                if only:
                    return path, want, item, False
                best = best or (path, want, item, True)
            for key in _differing(self.check, want, item):
                if differs(self.check, self._with_item(at, [*path, key], item[key]), self.right):
                    break
            else:
                return best or (path, want, item, not only)
            path, want, item = [*path, key], want[key], item[key]

    def _with_item(self, at: int, path: list, item: Any) -> CaseOutcome:
        value = _replaced(self.calls[at].value, path, item)
        return self._with(at, {**(self.calls[at].reply or {}), "value": value})

    def _is_only(self, at: int, path: list, item: Any) -> bool:
        """Whether the case hands an item on as it is, so that no other is right.

        Other values are put in its place, and the outcome must hold all of these.
        """
        if isinstance(item, bool):  # the other one is wrong
            return True
        marked = tree_map(_mark, item)
        held = tree_leaves(self._with_item(at, path, marked).value)
        return all(any(_is(leaf, one) for one in held) for leaf in tree_leaves(marked))


def _same(check: Check, got: Call, want: Call) -> bool:
    if got.reply is None or want.reply is None:
        return False
    if got.raised or want.raised:
        return bool(got.raised and want.raised and got.raised.kinds == want.raised.kinds)
    return agrees(check, got.value, want.value)


def _replaced(value: Any, path: list, item: Any) -> Any:
    if not path:
        return item
    key, inner = path[0], _replaced(value[path[0]], path[1:], item)
    if torch.is_tensor(value):
        copy = value.detach().clone()
        copy[key] = inner
        return copy
    if isinstance(value, dict):
        return {**value, key: inner}
    return type(value)([*value[:key], inner, *value[key + 1 :]])


def _differing(check: Check, want: Any, got: Any) -> list[Any]:
    """Return the keys of the items that differ; none where the two have no items in common."""
    keys: Iterable[Any] = ()
    if isinstance(want, dict) and isinstance(got, dict) and want.keys() == got.keys():
        keys = want
    elif torch.is_tensor(want) and torch.is_tensor(got) and want.shape == got.shape:
        keys = range(len(want) if want.dim() else 0)
    elif isinstance(want, (list, tuple)) and type(want) is type(got) and len(want) == len(got):
        keys = range(len(want))
    return [key for key in keys if not agrees(check, got[key], want[key])]


def _mark(value: Any) -> Any:
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


def _grads(value: Any) -> list[bool]:
    return [torch.is_tensor(t) and t.requires_grad for t in stored_in(value)]


def _raised(raised: SubjectRaised) -> str:
    message = " ".join(raised.message.split())
    message = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + " …"
    return f"{raised.kinds[0]}: {message}" if message else raised.kinds[0]


def _short(value: Any, digits: int = 0) -> str:
    """Return a value's literal, without the layout of tensors; empty if it is long."""
    try:
        text = literal(tree_map(_plain, value), digits)
    except (Unprintable, RecursionError):
        return ""
    return text if len(text) <= MAX_VALUE else ""


def _side_by_side(want: Any, got: Any) -> tuple[str, str]:
    for digits in (DIGITS, 0):
        expected, shown = _short(want, digits), _short(got, digits)
        if expected != shown:
            break
    return expected, shown or kind_of(got)


def _plain(value: Any) -> Any:
    """Return a contiguous copy of a tensor, and anything else as it is.

    Raises Unprintable if a tensor is large.
    """
    if not isinstance(value, torch.Tensor):
        return value
    if value.numel() > MAX_CHARACTERS:
        raise Unprintable("a large tensor")
    plain = value.detach().resolve_conj().resolve_neg()
    return plain.clone(memory_format=torch.contiguous_format)


def _smallest(key: AnswerKey, problems: Mapping[str, str], seed: str) -> Iterator[_SmallCase]:
    """Yield cases of these parts that can be shown: small ones first, those of every seed last."""
    check, corners, seen = key.check, [], set()
    if not set(problems) & _shown_parts(check):
        return

    def order(small: _SmallCase) -> tuple[bool, int, str]:
        said = DTYPE.search(problems[small.case.part])
        written = set(DTYPE.findall(small.text)) or {"float32"}
        return bool(said and said[0] not in written), len(small.text), small.text

    hidden = _hidden(key)
    for k, reach in enumerate(REACHES):
        drawn = (c for c in _small_cases(check, f"{seed}/{k}", reach) if c.part in problems)
        for small in sorted(_shown(check, drawn), key=order):
            if small.text in seen:
                continue
            seen.add(small.text)
            if not any(asked in hidden for asked in small.asked):
                yield small
            elif all(asked in _asked_always(check) for asked in small.asked):
                corners.append(small)
    yield from sorted(corners, key=order)


def _small_cases(check: Check, seed: str, reach: int) -> list[Case]:
    """Draw small cases; return none where the generator finds none, since a verdict stands without.

    A generator may need more sizes than a reach has, or search in vain for numbers that tell.
    """
    try:
        return check.draw_cases(seed, SmallDraw, reach=reach)
    except (ValueError, LookupError):
        return []


def _shown(check: Check, cases: Iterable[Case]) -> Iterator[_SmallCase]:
    return (small for c in cases if (small := _SmallCase.of(check, c)))


def _texts(check: Check, cases: Iterable[Case]) -> frozenset[str]:
    return frozenset(asked for small in _shown(check, cases) for asked in small.asked)


@lru_cache(maxsize=64)
def _hidden(key: AnswerKey) -> frozenset[str]:
    """Return the texts of the calls of the run's own cases, as far as they can be shown."""
    return _texts(key.check, key.cases)


@lru_cache(maxsize=64)
def _asked_always(check: Check) -> frozenset[str]:
    one, other = (_texts(check, check.draw_cases(f"public {k}")) for k in "ab")
    return one & other


@lru_cache(maxsize=64)
def _shown_parts(check: Check) -> frozenset[str]:
    return frozenset(s.case.part for s in _shown(check, _small_cases(check, "public", REACHES[0])))
