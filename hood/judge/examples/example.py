"""Find failing examples for a learner: a call to paste into the notebook, and its wrong result.

If a case has no lines to paste, words describe the case (:mod:`hood.judge.examples.in_words`).

After the verdict, the check draws other cases with :class:`SmallDraw`, which keeps them small.
The seed of these cases is public and independent of the run's seed. The smallest case that the
learner's code fails twice in the same way becomes the example. To find the wrong call, or the wrong
item of a reply, the case is played again. Then only one reply or item comes from the learner's
code, and all other replies and items come from the reference. A call that also occurs in the run's
hidden cases is skipped. Fixed cases, which are the same for every seed, may be shown, but they are
tried last.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from hood.judge.checks.answers import Candidate
from hood.judge.checks.compare import agree, compare, kind_of
from hood.judge.checks.draw import SmallDraw
from hood.judge.checks.exercise import Case, Check, Paste
from hood.judge.connection.codec import NotByValue
from hood.judge.connection.rpc_client import Connection, ConnectionLost, InProcess, OutOfTime
from hood.judge.connection.settings import usual_settings
from hood.judge.examples.call_text import (
    ARGUMENTS,
    Call,
    CallRecorder,
    NoText,
    argument,
    is_empty,
    laid_out,
    own,
)
from hood.judge.examples.in_words import behaves_like, told
from hood.judge.examples.literal import Unprintable
from hood.judge.examples.shown_values import differing, raised_in_words, short, side_by_side
from hood.judge.values.table import grid, leaves, mapped, stored_in
from hood.judge.verdicts.answer_key import AnswerKey, answer_key
from hood.judge.verdicts.difference import agrees, alike, difference, differs, in_case
from hood.judge.verdicts.outcome import CaseOutcome, play
from hood.verdict import MAX_CALL, Example, Verdict

REACHES = (1, 2, 4, 8)  # bounds on the sizes that SmallDraw draws, tried in this order
CALLS = 30  # plays of cases by the learner's code, for one exercise
SECONDS = 1.5  # processor time of this process; after this time, no further case is tried
BY_THE_CLOCK = 4  # times SECONDS of wall-clock time, because another process may run the code
PARTS = 3  # parts of one exercise that get a failing example
# The literal of an unusual tensor contains one of these.
UNUSUAL = ("dtype=", ".as_strided(", ".permute(", ".t()")
UNLIKELY = 7919  # larger than any difference between two results in the labs


def fresh_seed() -> str:
    """Return a new public seed, which is used for nothing else."""
    return secrets.token_hex(4)


def exemplify(verdict: Verdict, check: Check, thing: Any, seed: str) -> Verdict:
    """Return the verdict of :func:`.judge.judge` with failing examples from a public seed.

    The notebook must define the judged object under the name that the check uses.
    """
    with usual_settings():
        key = answer_key(check, verdict.seed)
        found = find_examples(key, InProcess(thing), verdict.unexampled(), seed)
        return verdict.with_examples(found)


def can_be_shown(key: AnswerKey, parts: Mapping[str, str]) -> dict[str, str]:
    """Return the parts that have a case which may be shown as an example."""
    shown = {c.part for c in key.cases if c.example}
    return {part: named for part, named in parts.items() if part in shown}


def find_examples(
    key: AnswerKey, connection: Connection, parts: Mapping[str, str], seed: str
) -> dict[str, Example]:
    """Return for each part a small case that the code fails, if such a case is found in time.

    ``parts`` are the parts that lost their points, each with the name of the misconception in the
    verdict, or "". Only the first ``PARTS`` parts count. A part with a misconception gets only an
    example in which the code behaves like the misconception.
    """
    parts = dict(itertools.islice(can_be_shown(key, parts).items(), PARTS))
    if not parts:  # drawing cases may take long
        return {}
    named = {m.name: m for m in key.check.misconceptions}
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
                example = small.example(connection, named.get(parts[small.case.part]))
            except (OutOfTime, MemoryError):
                raise
            except ConnectionLost as lost:
                if not isinstance(lost, NoText):  # NoText: a returned value became a long argument
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


class _Replay:
    """A connection that repeats recorded replies. None stands for a value that cannot be sent."""

    def __init__(self, replies: Iterable[dict[str, Any] | None]):
        self._left = iter(replies)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        reply = next(self._left, None)
        if reply is None:
            raise NotByValue("a value that cannot be sent")
        return own(reply)


@dataclasses.dataclass(frozen=True)
class _SmallCase:
    check: Check
    case: Case
    right: CaseOutcome  # the reference's outcome
    text: str  # all lines of the case
    asked: list[str]  # the lines of each request, except those that only make an instance
    empty: bool  # whether an argument has no items; such a case shows least about the code
    # The case's requests, with the reference's replies; an empty list if the case has its own
    # ``paste``.
    calls: list[Call]

    @classmethod
    def of(cls, check: Check, c: Case) -> _SmallCase | None:
        """Play a case with the reference and write it as text; None if it cannot be shown."""
        if c.not_run or not c.example:
            return None
        recorder = CallRecorder(check, InProcess(check.right))
        try:
            if c.paste:
                text = c.paste.call.format(*map(argument, c.paste.args))
                right = play(check, InProcess(check.right), c)
                usable = len(text) <= MAX_CALL and not (right.unusable or right.raised)
                empty = any(map(is_empty, c.paste.args))
                return cls(check, c, right, text, [text], empty, []) if usable else None
            right = play(check, recorder, c)
        except (Unprintable, ConnectionLost):
            return None
        calls = recorder.calls
        if right.unusable or right.ran_short() or not calls:
            return None
        asked = [call.lines for call in calls if not call.makes]
        empty = any(call.empty for call in calls)
        return cls(check, c, right, "\n".join(call.lines for call in calls), asked, empty, calls)

    def example(self, connection: Connection, named: Candidate | None = None) -> Example | None:
        """Return the case as an example if the code fails it twice in the same way, else None.

        ``named`` is the misconception that the code must behave like.
        """
        check = self.check
        recorder = CallRecorder(check, connection)
        got = play(check, recorder if self.calls else connection, self.case)
        found = difference(check, got, self.right, self.case.places)
        if found is None or not alike(check, play(check, connection, self.case), got):
            return None
        if named and not behaves_like(check, self.case, got, named):
            return None
        if self.case.paste:
            example: Example | None = self._pasted(self.case.paste, got, str(found))
        else:
            at = self._where(recorder.calls)
            if at is None or self._is_ill_conditioned():
                return None
            example = self._told(at, recorder.calls[at], str(found))
        return example and dataclasses.replace(example, problem=in_case(self.case, found))

    def _pasted(self, paste: Paste, got: CaseOutcome, said: str) -> Example:
        """Return the example of a case that has its own ``paste``."""
        whole = laid_out(self.text)
        if got.raised is not None:
            return Example(whole, said=f"got {raised_in_words(got.raised)}")
        if got.unusable:
            return Example(whole, said=said)
        want, came, shown = self.right.value, got.value, paste.shows.get("")
        if shown is None:
            wrong = differing(self.check, want, came)
            key = next((key for key in wrong if key in paste.shows), None)
            if key is None:
                return Example(whole, said=said)
            want, came, shown = want[key], came[key], paste.shows[key]
        place, entire = "", "{at}" not in shown
        while not (entire and short(want) and short(came)):
            wrong = differing(self.check, want, came)
            if not wrong:
                break
            at, entire = wrong[0], True
            want, came = want[at], came[at]
            if "{at}" in shown:
                shown = shown.replace("{at}", str(at))
            else:
                place += f"[{at!r}]"
        call = laid_out(shown.replace("{}", self.text) + place)
        expected, said = side_by_side(want, came)
        if not expected or expected == said:
            return Example(call, said=f"got {said}")
        return Example(call, expected, said)

    def _is_ill_conditioned(self) -> bool:
        """Return whether a known right answer fails the case, for example because of rounding."""
        rights = (InProcess(other.thing) for other in self.check.alternates)
        played = (play(self.check, right, self.case) for right in rights)
        return any(differs(self.check, got, self.right) for got in played)

    def _with(self, at: int, reply: dict[str, Any] | None) -> CaseOutcome:
        """Return the case's outcome with one given reply; all other replies are the reference's."""
        replies = [call.reply for call in self.calls]
        replies[at] = reply
        return play(self.check, _Replay(replies), self.case)

    def _where(self, shown: list[Call]) -> int | None:
        """Return the index of the request that went wrong; None if it is not clear which one."""
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
        """Return the example for a request; None if the request itself shows no mistake."""
        want = self.calls[at]

        def shown(place: str = "", expected: str = "", came: str = "", **more: Any) -> Example:
            text = laid_out(want.text + place)
            return Example(text, expected, came, before=want.before, **more)

        if got.reply is None:
            return shown(said=said)
        if want.raised is not None or got.raised is not None:
            if want.raised and got.raised and want.raised.kinds[0] in got.raised.kinds:
                return None
            came = raised_in_words(got.raised) if got.raised else short(got.value)
            if want.raised:
                came = "an instance" if got.makes else came or kind_of(got.value)
                return shown("", want.raised.kinds[0], came)
            if want.text == ARGUMENTS:  # the call in the line before raised the error
                *before, call = want.before
                return Example(call, said=f"got {came}", before=tuple(before))
            expected = "" if want.makes else short(want.value)
            # don't show what a call such as `load_state_dict` returns: nobody uses it
            if not expected or not self._is_only(at, [], want.value):
                return shown(said=f"got {came}")
            return shown("", expected, came)
        if want.effect:
            return shown(said=_of_effect(want.value, got.value) or said)
        path, w, g, others = self._narrowed(at, got)
        place = "".join(f"[{key!r}]" for key in path)
        if not agrees(self.check, g, w):
            expected, came = side_by_side(w, g)
            if expected and expected != came:
                return shown(place, expected, came, others=others)
            if found := _unlike(self.check, w, g):
                what, expected, came = found
                return shown(f"{place}.{what}", expected, came, others=others)
        grads = _grads(want.value), _grads(got.value)
        if grads[0] != grads[1] and _same(self.check, got, want):
            expected, came = (f"{'a' if any(g) else 'no'} gradient can flow back" for g in grads)
            return shown(said=f"right values, but {came}; expected that {expected}")
        return shown(said=said)

    def _narrowed(self, at: int, got: Call) -> tuple[list, Any, Any, bool]:
        """Find the item of a reply to show: a short wrong item.

        An item for which only one value is right is preferred. Return four things: the path to the
        item (empty for the whole reply), the right item, the learner's item, and whether other
        values would be right, too.
        """
        whole = self.calls[at].value
        path: list = []
        want, item, only = whole, got.value, False
        best: tuple[list, Any, Any, bool] | None = None
        while True:
            only = only or self._is_only(at, path, want)
            is_report = self.calls[at].driven and isinstance(want, dict) and not path
            if not is_report and short(want) and short(item):
                if only:
                    return path, want, item, False
                best = best or (path, want, item, True)
            for key in differing(self.check, want, item):
                if differs(self.check, self._with_item(at, [*path, key], item[key]), self.right):
                    break
            else:
                return best or (path, want, item, not only)
            path, want, item = [*path, key], want[key], item[key]

    def _with_item(self, at: int, path: list, item: Any) -> CaseOutcome:
        value = _replaced(self.calls[at].value, path, item)
        return self._with(at, {**(self.calls[at].reply or {}), "value": value})

    def _is_only(self, at: int, path: list, item: Any) -> bool:
        """Return whether the case returns an item unchanged, so that no other item would be right.

        To find out, other values are put in the item's place: the outcome must contain all of them.
        """
        if isinstance(item, bool):  # a bool has only one other value, which is wrong
            return True
        marked = mapped(_mark, item)
        held = leaves(self._with_item(at, path, marked).value)
        return all(any(_is(leaf, one) for one in held) for leaf in leaves(marked))


@dataclasses.dataclass(frozen=True)
class _InWords:
    """A case that is described in words, because no line to paste shows it."""

    check: Check
    case: Case
    other: Case  # the same case, drawn with another seed

    def example(self, connection: Connection, named: Candidate | None = None) -> Example | None:
        said = told(self.check, self.case, self.other, connection, named)
        return Example("", said=said) if said else None


def _of_effect(want: Any, got: Any) -> str:
    """Return in words how printed texts or drawn figures differ; empty for long values."""
    wrong = compare(got, want)
    if wrong is None or len(wrong.detail) > MAX_CALL:
        return ""
    if isinstance(want, str) and isinstance(got, str) and short(want) and short(got):
        return f"expected {short(want)}, printed {short(got)}"
    where = f"at {wrong.where}: " if wrong.where else ""
    detail = f": {' '.join(wrong.detail.split())}" if wrong.detail else ""
    return f"{where}{wrong.summary}{detail}"


def _same(check: Check, got: Call, want: Call) -> bool:
    if got.reply is None or want.reply is None:
        return False
    if got.raised or want.raised:
        return bool(got.raised and want.raised and got.raised.kinds == want.raised.kinds)
    return agrees(check, got.value, want.value)


def _unlike(check: Check, want: Any, got: Any) -> tuple[str, str, str] | None:
    """Return a property that differs between two tensors, and its two values. Numbers do not count.

    Return None if there is no such property. Strides are compared only if all other properties are
    equal.
    """
    row = grid(want)
    if row is None or row is not grid(got):
        return None
    if want.shape != got.shape:
        return "shape", str(tuple(want.shape)), str(tuple(got.shape))
    if want.dtype != got.dtype:
        return "dtype", str(want.dtype), str(got.dtype)
    strides = row.strides(want), row.strides(got)
    if strides[0] != strides[1] and agree(got, want, tolerance=check.tolerance):
        return "stride()", str(strides[0]), str(strides[1])
    return None


def _replaced(value: Any, path: list, item: Any) -> Any:
    if not path:
        return item
    key, inner = path[0], _replaced(value[path[0]], path[1:], item)
    if row := grid(value):
        return row.with_item(value, key, inner)
    if isinstance(value, dict):
        return {**value, key: inner}
    return type(value)([*value[:key], inner, *value[key + 1 :]])


def _mark(value: Any) -> Any:
    if row := grid(value):
        return row.marked(value)
    if isinstance(value, (int, float, complex)):
        return value + UNLIKELY
    return object()


def _is(mark: Any, other: Any) -> bool:
    """Return whether both values are one object, or equal tensors: a case may copy a tensor."""
    row = grid(mark)
    if row is None or row is not grid(other):
        return mark is other
    same = mark.dtype == other.dtype and mark.shape == other.shape
    return same and row.equal(mark, other)


def _grads(value: Any) -> list[bool]:
    found = ((grid(one), one) for one in stored_in(value))
    return [bool(row and row.needs_gradient(one)) for row, one in found]


def _smallest(key: AnswerKey, parts: Iterable[str], seed: str) -> Iterator[_SmallCase | _InWords]:
    """Yield cases of these parts: first small cases to paste, and last the cases with words."""
    if set(parts) & _shown_parts(key.check):
        yield from _smallest_to_paste(key, parts, seed)
    drawn = [_small_cases(key.check, f"{seed}/{which}", REACHES[1]) for which in "ab"]
    for one, other in zip(*drawn, strict=False):
        if one.part in parts and one.part == other.part and one.example and one.shown:
            yield _InWords(key.check, one, other)


def _smallest_to_paste(key: AnswerKey, parts: Iterable[str], seed: str) -> Iterator[_SmallCase]:
    """Yield cases of these parts that can be pasted: small cases first, fixed cases last.

    Among cases of the same size, plain cases come first, then cases with a condition in words or an
    unusual dtype or layout. Cases with an empty argument come last, because they show least.
    """
    check, corners, seen = key.check, [], set()

    def order(small: _SmallCase) -> tuple[bool, bool, int, str]:
        special = bool(small.case.shown) or any(one in small.text for one in UNUSUAL)
        return small.empty, special, len(small.text), small.text

    hidden = _hidden(key)
    for k, reach in enumerate(REACHES):
        drawn = (c for c in _small_cases(check, f"{seed}/{k}", reach) if c.part in parts)
        for small in sorted(_shown(check, drawn), key=order):
            if (small.case.part, small.text) in seen:
                continue
            seen.add((small.case.part, small.text))
            if not any(asked in hidden for asked in small.asked):
                yield small
            elif all(asked in _asked_always(check) for asked in small.asked):
                corners.append(small)
    yield from sorted(corners, key=order)


def _small_cases(check: Check, seed: str, reach: int) -> list[Case]:
    """Draw small cases. Return an empty list if the generator fails: examples are not required.

    A generator may need more sizes than a reach allows, or may not find usable numbers.
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
    """Return the calls of the run's own cases as texts, without calls that can't be shown."""
    return _texts(key.check, key.cases)


@lru_cache(maxsize=64)
def _asked_always(check: Check) -> frozenset[str]:
    one, other = (_texts(check, check.draw_cases(f"public {k}")) for k in "ab")
    return one & other


@lru_cache(maxsize=64)
def _shown_parts(check: Check) -> frozenset[str]:
    return frozenset(s.case.part for s in _shown(check, _small_cases(check, "public", REACHES[0])))
