"""Receive HTTP requests: identify the sender, then limit the size, and only then read the body.

Each route sets its own limit (``max_body_size``), and the application sets the default. `Door` does
all other steps before any route runs. `Connection` adds timeouts to the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any

import h11
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from fastapi.security.utils import get_authorization_scheme_param
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from hood.classroom.service.login import Login
from hood.classroom.service.people import AskAgainError, People

LOG = logging.getLogger(__name__)
HEAD_SECONDS = 10.0  # for the first line and the headers of a request
BODY_SECONDS = 10.0  # for a small body
LEAST_RATE = 400_000  # the slowest accepted rate of a large body, in bytes per second
END = "http.disconnect"  # ASGI's message for a closed connection


class Door:
    """Sets ``request.state.person`` to the sender, or to None if the sender is unknown.

    If the sender is unknown, the body of the request is not read, except for a login. A browser's
    request for a page is refused if a learner's page may have sent it.

    Args:
        login: says which requests have the token in a cookie.
    """

    def __init__(self, app: ASGIApp, people: People, login: Login):
        self._app = app
        self._people = people
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        is_page = self._login.is_page(scope["path"])
        if is_page and (closed := self._login.closed(request)):
            await closed(scope, receive, send)
            return
        try:
            token = self._login.token(request) if is_page else _bearer(request)
            person = await run_in_threadpool(self._people.whose, token) if token else None
        except AskAgainError as error:
            await ask_again(error)(scope, receive, send)
            return
        request.state.person = person
        logs_in = scope["method"] == "POST" and scope["path"] == self._login.address
        if scope["method"] in ("GET", "HEAD") or person is None and not logs_in:
            await self._app(scope, _nothing(receive), send)
        else:
            await self._app(scope, _in_time(receive), send)


def _bearer(request: Request) -> str:
    scheme, given = get_authorization_scheme_param(request.headers.get("Authorization"))
    return given if scheme.lower() == "bearer" else ""


def _nothing(receive: Receive) -> Receive:
    """Return a receiver for a request without a body: it gives an empty body, then the end.

    If a body comes in spite of this, the receiver says that the connection has ended.
    """
    said = False

    async def next_part() -> Message:
        nonlocal said
        if not said:
            said = True
            return {"type": "http.request", "body": b"", "more_body": False}
        with contextlib.suppress(HTTPException):  # for a body that is too large
            while not (message := await receive()).get("body") and message["type"] != END:
                pass
        return {"type": END}

    return next_part


def _in_time(receive: Receive) -> Receive:
    """Return a receiver that raises HTTPException if the body comes too slowly."""
    size, begun, more = 0, 0.0, True

    async def next_part() -> Message:
        nonlocal size, begun, more
        if not more:  # wait for the end of the connection
            return await receive()
        now = time.monotonic()
        begun = begun or now
        try:
            async with asyncio.timeout(begun + BODY_SECONDS + size / LEAST_RATE - now):
                message = await receive()
        except TimeoutError:
            raise HTTPException(
                408, f"the body comes too slowly: expected {LEAST_RATE:,} bytes per second"
            ) from None
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
        return message

    return next_part


def ask_again(error: AskAgainError) -> JSONResponse:
    """Return the response for a request whose sender the hub can't identify now."""
    LOG.error("%s", error)
    said = "the hub could not say who you are; try again in a minute"
    return JSONResponse({"detail": said}, 503, {"Retry-After": "60"})


class Connection(H11Protocol):
    """A connection that is closed if the head of a request does not come in time.

    A request may be answered before its whole body has come. Then the rest of the body is read and
    dropped for ``HEAD_SECONDS`` seconds, so that the sender can read the response. After that, the
    connection is closed.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._watch()

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()  # a request is being answered
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
