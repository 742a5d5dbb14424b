"""Write the calls of a case as lines of Python that a learner can paste."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from typing import Any

from hood.judge.checks.exercise import Check
from hood.judge.connection.rpc_client import Connection, ConnectionLost
from hood.judge.examples.literal import Unprintable, literal
from hood.judge.values.table import SETS, address, grid, kind, mapped, stored_in
from hood.judge.verdicts.subject import SubjectRaised
from hood.verdict import LINE, MAX_CALL

MAX_LINES = 12  # lines before the call
ARGUMENTS = "arguments"  # the name of a list of arguments that a call changes
# Names of an instance and of a driver in the lines to paste. No lab uses these names, so a lab's
# cells still work after the lines.
INSTANCE, DRIVER = "example", "example_driver"


class NoText(ConnectionLost):
    """A case makes a request that cannot be written as a short line."""


@dataclasses.dataclass(frozen=True)
class Call:
    """One request of a case."""

    text: str  # the request as a Python expression
    before: tuple[str, ...] = ()  # lines to run first: imports, and the line that makes an instance
    reply: dict[str, Any] | None = None  # None if the value could not be sent
    driven: bool = False  # whether it calls a driver
    empty: bool = False  # whether an argument has no items
    effect: bool = False  # whether the value is the printed text or the drawn figure

    @property
    def lines(self) -> str:
        return "\n".join((*self.before, self.text))

    @property
    def value(self) -> Any:
        return self.reply.get("value") if self.reply else None

    @property
    def raised(self) -> SubjectRaised | None:
        said = (self.reply or {}).get("raised")
        return None if said is None else SubjectRaised.of(said)

    @property
    def makes(self) -> bool:
        """Return whether the reply is an instance."""
        return "made" in (self.reply or {})


class CallRecorder:
    """A connection that records the requests and writes them as lines of Python."""

    def __init__(self, check: Check, connection: Connection):
        self._check, self._connection = check, connection
        # by instance: the instance's name, and the lines that make the instance
        self._sessions: dict[int, tuple[str, list[str]]] = {}
        self.calls: list[Call] = []  # the requests so far

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request. Raises NoText if it cannot be written as a short line."""
        call = self._call(request)
        self.calls.append(call)
        reply = self._connection.ask(request)
        self.calls[-1] = dataclasses.replace(call, reply=own(reply))
        number = request.get("made", reply.get("made"))
        if isinstance(number, int) and number not in self._sessions:
            name = f"{INSTANCE}_{len(self._sessions) + 1}" if self._sessions else INSTANCE
            self._sessions[number] = name, [*call.before, f"{name} = {call.text}"]
        elif isinstance(number, int) and request["do"] == "call":
            self._sessions[number][1].append(call.text)
        return reply

    def _call(self, request: dict[str, Any]) -> Call:
        called, before = self._sessions.get(request.get("made", -1), (self._check.name, []))
        if request["do"] == "get":
            return Call(f"{called}.{request['attribute']}", tuple(before))
        if request["do"] != "call" or "generator" in request:
            raise NoText("a request that is not a call")
        args, kwargs = request["args"], request.get("kwargs", {})
        storages = [address(one) for one in stored_in((args, kwargs))]
        if len(set(storages)) < len([s for s in storages if s]):
            raise NoText("tensors that share a storage")
        try:
            words = [*map(argument, args), *(f"{k}={argument(v)}" for k, v in kwargs.items())]
        except Unprintable as error:
            raise NoText(str(error)) from None
        before = [*(line for line in _imports((args, kwargs)) if line not in before), *before]
        if "driver" in request:
            place, _, function = request["driver"].partition(":")
            package, _, module = place.rpartition(".")
            called = f"{DRIVER}.{function}"
            arrays = _imports((args, kwargs), grids=True)
            before = [f"from {package} import {module} as {DRIVER}", *arrays]
            words.insert(0, self._thing(request.get("name")))
        elif "name" in request:
            called = request["name"]
        elif request.get("method", "__call__") != "__call__":
            called += f".{request['method']}"
        text = f"{called}({', '.join(words)})"
        if len(text) > MAX_CALL or len(before) > MAX_LINES:
            raise NoText("too long")
        empty = any(map(is_empty, (*args, *kwargs.values())))
        if "leaves" in request:
            if kwargs:
                raise NoText("keyword arguments that the call changes")
            lines = [f"{ARGUMENTS} = [{', '.join(words)}]", f"{called}(*{ARGUMENTS})"]
            return Call(ARGUMENTS, (*before, *lines), empty=empty)
        effect = "prints" in request or "draws" in request
        return Call(text, tuple(before), driven="driver" in request, empty=empty, effect=effect)

    def _thing(self, name: str | None) -> str:
        if name is None and isinstance(self._check.right, dict):
            return "{" + ", ".join(f"{one!r}: {one}" for one in self._check.names) + "}"
        return name or self._check.name


def own(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply with copies of its containers, because a case may remove items from them."""
    return mapped(lambda one: one, reply)


def argument(value: Any) -> str:
    """Return the literal of an argument. A mapping, such as a dict of weights, may be long.

    Raises Unprintable if the argument has no short literal.
    """
    if not isinstance(value, Mapping):
        return literal(value)
    if len(value) > MAX_CALL:
        raise Unprintable("too long")
    return "{" + ", ".join(f"{literal(key)}: {literal(v)}" for key, v in value.items()) + "}"


def is_empty(value: Any) -> bool:
    """Return whether an argument has a tensor, array or container without items."""
    if row := grid(value):
        return row.count(value) == 0
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (tuple, list, *SETS)):
        return False
    return not value or any(map(is_empty, value))


def laid_out(call: str) -> str:
    """Break a long call after each argument, and a long mapping after each item.

    In nested calls, break the outermost call that has several arguments.
    """
    if len(call) <= LINE:
        return call
    calls = [node for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Call)]
    all_words: list[list[ast.expr | ast.keyword]] = [[*one.args, *one.keywords] for one in calls]
    words = next((one for one in all_words if len(one) > 1), next(filter(None, all_words), []))
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


def _imports(value: Any, grids: bool = False) -> list[str]:
    """Return the imports that a value's literal needs.

    The imports of arrays and data classes are left out, because labs already have them. With
    ``grids``, these imports are returned too: lines that call a driver must be complete.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [f"from {type(value).__module__} import {type(value).__name__}"] if grids else []
    if row := kind(value):
        return list(row.imports) if grids or not row.is_grid else []
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (tuple, list, *SETS)):
        return []
    return sorted({line for item in value for line in _imports(item, grids)})
