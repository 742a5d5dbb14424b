"""Call the learner's code from the trusted side: in this process, or over a socket."""

from __future__ import annotations

import itertools
import os
import secrets
import select
import socket
from collections.abc import Callable
from typing import Any, Protocol

from hood.judge.connection import codec
from hood.judge.connection.rpc_server import Answerer

# Late replies to an earlier cell's requests are ignored. If there are more of them than this, the
# connection ends.
MAX_STALE = 100
# Limit on the bytes of all replies of one exercise. A byte of JSON counts JSON_COSTS times, because
# JSON must be parsed and storages need no parsing.
MAX_TOTAL = 1 << 28
JSON_COSTS = 8


class OutOfTime(Exception):
    """The learner's code was interrupted at a time limit.

    The message names the limit, if it is known.
    """


class OutOfOutput(OutOfTime):
    """The learner's code was interrupted because it printed too much; the message says how much."""


class ConnectionLost(Exception):
    """The learner's code can no longer be called; the message says why, for a report."""


class Connection(Protocol):
    """A connection for requests; :class:`.rpc_server.Answerer` describes them."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the reply.

        Raises:
            OutOfTime: the learner's code was interrupted.
            ConnectionLost: there will be no more replies.
            NotByValue: the request or the result cannot be sent.
        """


class InProcess:
    """A connection to code in this process.

    All values are encoded and decoded, as over a socket.
    """

    def __init__(self, thing: Any):
        self._answerer = Answerer(thing)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        sent = codec.unpack(codec.pack({**request, "id": ""}))
        return _checked(codec.unpack(self._answerer.answer(sent)))


class OverSocket:
    """A connection to :func:`hood.judge.connection.rpc_server.serve` at the other end of a socket.

    The connection reads only while a request waits for its reply, and accepts only a reply with the
    request's random id. ``waits`` is called with True when a request begins to wait, and with False
    when the wait ends.
    """

    def __init__(self, end: socket.socket, waits: Callable[[bool], None] = lambda _: None):
        self._end = end
        self._waits = waits
        self._end.setblocking(False)
        self._left = MAX_TOTAL
        self._cut, self._cutter = os.pipe()
        self._why = ""
        self._too_much = ""
        self.limit = ""  # the time limit in words, for the message of OutOfTime

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        number = secrets.token_hex(8)
        sent = codec.pack({**request, "id": number})
        self._waits(True)
        try:
            self._send(sent)
            for _ in itertools.repeat(None, MAX_STALE):
                reply = self._receive()
                if isinstance(reply, dict) and reply.get("id") == number:
                    return self._checked(reply)
            raise ConnectionLost("the code sent too many replies to other requests")
        finally:
            self._waits(False)

    def end(self) -> None:
        """Tell the other side that no more requests follow."""
        self._send(codec.pack({"do": "end"}))

    def cut(self, why: str) -> None:
        """Make the waiting request and all later requests raise ConnectionLost with this message.

        Any thread may call this.
        """
        self._why = why
        os.write(self._cutter, b"x")

    def printed_too_much(self, said: str) -> None:
        """If the waiting request is interrupted, raise OutOfOutput with this message."""
        self._too_much = said

    def _checked(self, reply: Any) -> dict[str, Any]:
        try:
            return _checked(reply)
        except OutOfTime:
            if self._too_much:
                raise OutOfOutput(self._too_much) from None
            raise OutOfTime(self.limit) from None

    def close(self) -> None:
        """Close the connection's own pipe; the owner of the socket closes the socket."""
        os.close(self._cut)
        os.close(self._cutter)

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._refuse_if_cut()
            try:
                view = view[self._end.send(view) :]
            except BlockingIOError:
                self._wait(for_writing=True)
            except OSError:
                raise ConnectionLost("the code's process is gone") from None

    def _receive(self) -> Any:
        self._wait()  # the learner's code may take long
        header = self._exactly(codec.HEADER.size)
        try:
            text, blobs = codec.sizes(header)
        except codec.NotByValue as error:  # the start of the next message is unknown
            raise ConnectionLost(f"the code answered with {error}") from None
        self._left -= JSON_COSTS * text + blobs
        if self._left < 0:
            raise ConnectionLost(
                f"the code's replies exceed {MAX_TOTAL >> 20} MiB in total (each byte of text and "
                f"numbers counts {JSON_COSTS} times)"
            )
        return codec.unpack(header + self._exactly(text + blobs))

    def _exactly(self, count: int) -> bytes:
        chunks = []
        while count:
            self._refuse_if_cut()
            try:
                chunk = self._end.recv(min(count, 1 << 20))
            except BlockingIOError:
                self._wait()
                continue
            except OSError:
                chunk = b""
            if not chunk:
                raise ConnectionLost("the code's process is gone")
            chunks.append(chunk)
            count -= len(chunk)
        return b"".join(chunks)

    def _refuse_if_cut(self) -> None:
        if self._why:
            raise ConnectionLost(self._why)

    def _wait(self, for_writing: bool = False) -> None:
        waiting = select.poll()  # select.select fails for descriptors above 1023
        waiting.register(self._cut, select.POLLIN)
        try:
            waiting.register(self._end, select.POLLOUT if for_writing else select.POLLIN)
        except ValueError:  # the owner has closed the socket
            raise ConnectionLost("the code's process is gone") from None
        waiting.poll()


def _checked(reply: Any) -> dict[str, Any]:
    """Return a valid reply; otherwise raise the error that the reply describes."""
    if isinstance(reply, dict):
        if reply.get("interrupted") is True:
            raise OutOfTime
        if isinstance(reply.get("refused"), str):
            raise codec.NotByValue(reply["refused"][:200])
        return reply
    raise codec.NotByValue("something that is not a reply")
