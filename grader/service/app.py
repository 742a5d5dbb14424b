"""The web application: who may ask for what, within which limits, and what it answers.

FastAPI reads the annotations of the endpoints, which stand in a function, so here they are objects.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Self

from fastapi import Depends, FastAPI, HTTPException, Query, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grader.service.desk import Desk, RefusedError
from grader.service.people import People, Person
from grader.service.queue import ENDED, Busy, Look, State

MAX_BODY = 1 << 20  # bytes of a request
BODY_SECONDS = 10.0  # in which a request's body has to arrive
LONGEST_WAIT = 25.0  # seconds that a request for a check's state is held open
MAX_CELLS = 500


class Cell(BaseModel):
    """A cell that the learner's kernel has run."""

    id: Annotated[str, Field(max_length=64)]
    source: Annotated[str, Field(max_length=150_000)]


class Asked(BaseModel):
    """What to check. Whose check it is stands in no body: the token says it."""

    exercise: Annotated[str, Field(min_length=1, max_length=200)]
    cells: Annotated[list[Cell], Field(max_length=MAX_CELLS)]


class Progress(BaseModel):
    """How far a check is; the card, a MIME bundle, when it has ended."""

    id: str
    state: State
    place: int = 0
    seconds: float = 0.0
    card: dict[str, str] = {}

    @classmethod
    def of(cls, check_id: str, look: Look) -> Self:
        return cls(
            id=check_id,
            state=look.state,
            place=look.place,
            seconds=round(look.seconds, 1),
            card=dict(look.card),
        )


class Bells:
    """Wakes the requests that wait for a check, in the server's own loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def ring(self, check_id: str) -> None:
        for event in self._waiting.get(check_id, ()):
            event.set()

    async def wait(self, check_id: str, seconds: float, ended: Callable[[], bool]) -> None:
        """Return after ``seconds``, or when the check has ended."""
        event = asyncio.Event()
        self._waiting.setdefault(check_id, set()).add(event)
        try:
            if not await asyncio.to_thread(ended):
                async with asyncio.timeout(seconds):
                    await event.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting[check_id].discard(event)
            if not self._waiting[check_id]:
                del self._waiting[check_id]


def make_app(desk: Desk, people: People, prefix: str = "") -> FastAPI:
    """Return the application. It starts and ends the desk's workers.

    Args:
        people: knows who has which token.
        prefix: the path below which a proxy serves it, such as ``/services/open-the-hood``.
    """
    bells = Bells()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def tell(check: str) -> None:
            loop.call_soon_threadsafe(bells.ring, check)

        desk.when_ended(tell)
        await asyncio.to_thread(desk.__enter__)
        try:
            yield
        finally:
            await asyncio.to_thread(desk.__exit__)

    app = FastAPI(title="Open the Hood: verdicts", lifespan=lifespan)
    app.add_middleware(Bounded)
    bearer = HTTPBearer(description="JupyterHub's token, or one that the instructor handed out")

    def who(given: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]) -> Person:
        person = people.whose(given.credentials)
        if person is None:
            raise HTTPException(403, "this token is not one of this course's")
        return person

    Who = Annotated[Person, Depends(who)]

    @app.post(
        f"{prefix}/checks",
        status_code=202,
        responses={code: {} for code in (403, 404, 413, 422, 429)},
    )
    def ask(asked: Asked, person: Who, response: Response) -> Progress:
        """Let a check wait for its turn, in place of an older one of the same person."""
        try:
            new = desk.ask(person, asked.exercise, [(cell.id, cell.source) for cell in asked.cells])
        except RefusedError as error:
            raise HTTPException(error.status, str(error)) from None
        except Busy as error:
            after = {"Retry-After": str(math.ceil(error.seconds))}
            raise HTTPException(429, str(error), headers=after) from None
        response.headers["Location"] = f"{prefix}/checks/{new}"
        return _progress(person, new)

    @app.get(f"{prefix}/checks/{{check}}", responses={code: {} for code in (403, 404)})
    async def look(
        check: str,
        person: Who,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0.0,
    ) -> Progress:
        """Tell how far a check is; with ``wait``, once it has ended or after so many seconds."""

        def ended() -> bool:
            found = desk.look(person, check)
            return found is None or found.state in ENDED

        if wait:
            await bells.wait(check, wait, ended)
        return await asyncio.to_thread(_progress, person, check)

    def _progress(person: Person, check: str) -> Progress:
        found = desk.look(person, check)
        if found is None:
            raise HTTPException(404, "you have no check of this id")
        return Progress.of(check, found)

    return app


class Bounded:
    """Refuses a request whose body is too large, or does not arrive in time."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _whole(receive)
        except TimeoutError:
            await Response("the request's body took too long", 408)(scope, receive, send)
            return
        if body is None:
            said = f"a request has at most {MAX_BODY} bytes"
            await Response(said, 413, {"Connection": "close"})(scope, receive, send)
            return
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)


async def _whole(receive: Receive) -> bytes | None:
    """Return a request's body; None when it has more than ``MAX_BODY`` bytes."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message: dict[str, Any] = dict(await receive())
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        more = message.get("more_body", False)
        if size > MAX_BODY:
            return None
    return b"".join(parts)
