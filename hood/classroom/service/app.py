"""The web application: who may ask for what, within which limits, and what it answers.

FastAPI reads the annotations of the endpoints, which stand in a function, so here they are objects.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field
from starlette.middleware.body_limit import MAX_BODY_SIZE_SCOPE_KEY
from starlette.requests import ClientDisconnect

from hood import UserError
from hood.classroom.gradebook.service_jobs import ENDED, State
from hood.classroom.hand_ins.store import TooManyError
from hood.classroom.lesson_links import lesson_url, settled_file
from hood.classroom.rules.reading import read_course_file
from hood.classroom.rules.schema import ClassRules
from hood.classroom.service.dispatcher import Dispatcher, RefusedError
from hood.classroom.service.door import Door, ask_again
from hood.classroom.service.home import home_page, home_routes
from hood.classroom.service.inbox import Inbox, Receipt
from hood.classroom.service.lab_state import (
    LabState,
    by_clock,
    feedback_page,
    is_out,
    lab_states,
    requests_in,
)
from hood.classroom.service.login import NOT_YOURS, Login
from hood.classroom.service.marking import marking_pages
from hood.classroom.service.people import AskAgainError, People, Person
from hood.classroom.service.queue import JobProgress
from hood.classroom.service.staff import Grading, Gradings
from hood.grader.submission.names import id_problem, nfc
from hood.grader.submission.released import remember_release

LOG = logging.getLogger(__name__)
MAX_BODY = 1 << 20  # bytes of a request
MAX_NOTEBOOK = 20_000_000  # bytes
NOTEBOOK = "application/x-ipynb+json"
MOST_ARRIVING = 2  # notebooks of one learner at a time; they fill the disk
AGAIN = 5.0  # seconds after which one of them has probably arrived
# Feedback has no script; a browser that opens it from here gives it no rights at all.
SEALED = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:",
    "X-Content-Type-Options": "nosniff",
}
LONGEST_WAIT = 25.0  # seconds that a request for a job's state is held open
MAX_CELLS = 500
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"description": said}
    for code, said in {
        401: "no token",
        403: "not this token, or not now",
        404: "there is none, or none that is out",
        408: "the body took too long",
        409: "another one runs",
        413: "the body is too large",
        422: "the request is malformed",
        429: "too many",
        503: "the course's settings can't be used",
    }.items()
}


class Cell(BaseModel):
    """A cell that the learner's kernel has run."""

    id: Annotated[str, Field(max_length=64)]
    source: Annotated[str, Field(max_length=150_000)]


class Asked(BaseModel):
    """What to check. Whose job it is stands in no body: the token says it."""

    exercise: Annotated[str, Field(min_length=1, max_length=200)]
    cells: Annotated[list[Cell], Field(max_length=MAX_CELLS)]


class Progress(BaseModel):
    """How far a job is; the card, a MIME bundle, when it has ended."""

    id: str
    state: State
    place: int = 0
    seconds: float = 0.0
    card: dict[str, str] = {}

    @classmethod
    def of(cls, job_id: str, progress: JobProgress) -> Self:
        return cls(
            id=job_id,
            state=progress.state,
            place=progress.place,
            seconds=round(progress.seconds, 1),
            card=dict(progress.card),
        )


class PastJob(BaseModel):
    """A job of one's own that has ended or waits."""

    id: str
    exercise: str
    state: State
    received: datetime
    earned: float | None = None
    most: float | None = None


class OwnRequest(BaseModel):
    """One's own request for a regrade, as it was graded."""

    lab: str
    exercise: str
    why: str
    answered: bool


class RequestShown(OwnRequest):
    """A learner's request for a regrade, for those who teach.

    ``earlier`` and ``now`` are what the verdict gave before it and gives now; ``earlier_time``
    says whether nothing else is new, so that the earlier time counts.
    """

    learner: str
    name: str
    earlier: str
    now: str
    earlier_time: bool


class QueueShown(BaseModel):
    """How much the service has to do."""

    waiting: int
    running: int
    workers: int
    done_in_last_hour: int


class Bells:
    """Wakes the requests that wait for a job, in the server's own loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def ring(self, job_id: str) -> None:
        for event in self._waiting.get(job_id, ()):
            event.set()

    async def wait(self, job_id: str, seconds: float, ended: Callable[[], bool]) -> None:
        """Return after ``seconds``, or when the job has ended."""
        event = asyncio.Event()
        self._waiting.setdefault(job_id, set()).add(event)
        try:
            if not await asyncio.to_thread(ended):
                async with asyncio.timeout(seconds):
                    await event.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting[job_id].discard(event)
            if not self._waiting[job_id]:
                del self._waiting[job_id]


def make_app(dispatcher: Dispatcher, people: People, prefix: str = "", own: str = "") -> FastAPI:
    """Return the application. It starts and ends the dispatcher's workers.

    Args:
        people: knows who has which token.
        prefix: the path below which a proxy serves it, such as ``/services/open-the-hood``.
        own: the origin at which its pages alone are; see
        :class:`~hood.classroom.service.login.Login`.
    """
    arriving: Counter[str] = Counter()  # notebooks, by learner
    bells, inbox, gradings = Bells(), Inbox(dispatcher.course), Gradings(dispatcher.course.root)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def tell(job: str) -> None:
            loop.call_soon_threadsafe(bells.ring, job)

        dispatcher.when_ended(tell)
        await asyncio.to_thread(inbox.finish)
        await asyncio.to_thread(dispatcher.__enter__)
        try:
            yield
        finally:
            await asyncio.to_thread(dispatcher.__exit__)

    # its pages of documentation load scripts from elsewhere
    app = FastAPI(
        title="Open the Hood: verdicts",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        max_body_size=MAX_BODY,
    )
    login = Login(people, prefix, own)
    app.add_middleware(Door, people=people, login=login)

    @app.exception_handler(RequestValidationError)
    def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        # FastAPI's own answer repeats what was sent, which may be no text
        said = ascii(f"the request is malformed: {place}: {first['msg']}")[1:-1]
        return JSONResponse({"detail": said}, 422)

    @app.exception_handler(UserError)
    def unusable(_: Request, error: UserError) -> JSONResponse:
        LOG.error("%s", error)
        said = "something is wrong in this course's settings; its instructor can read what"
        return JSONResponse({"detail": said}, 503)

    @app.exception_handler(AskAgainError)
    def unknown(_: Request, error: AskAgainError) -> JSONResponse:
        return ask_again(error)

    @app.exception_handler(TooManyError)
    def too_many(_: Request, error: TooManyError) -> JSONResponse:
        after = {"Retry-After": str(math.ceil(error.seconds))}
        return JSONResponse({"detail": str(error)}, 429, after)

    @app.exception_handler(413)
    def too_large(request: Request, _: Exception) -> JSONResponse:
        most = request.scope[MAX_BODY_SIZE_SCOPE_KEY]
        return JSONResponse({"detail": f"the body is too large: at most {most:,} bytes"}, 413)

    def at_home(person: Person) -> dict[str, Any]:
        rules = read_course_file(dispatcher.course.root)
        labs = _seen_by(person, rules)
        return home_page(dispatcher.course, rules, inbox, person, labs, login.shared)

    app.include_router(login.routes())
    app.include_router(home_routes(login, prefix, at_home))
    app.include_router(marking_pages(dispatcher.course.root, login, prefix))
    bearer = HTTPBearer(description="JupyterHub's token, or one that the instructor handed out")

    def who(
        request: Request, _: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]
    ) -> Person:
        person: Person | None = request.state.person
        if person is None:
            raise HTTPException(403, "this token is not one of this course's")
        if problem := id_problem(nfc(person.name)):  # it names folders
            raise HTTPException(403, f"your name can't be a learner's id: {problem}")
        return person

    def who_teaches(person: Annotated[Person, Depends(who)]) -> Person:
        if not person.teaches:
            raise HTTPException(403, NOT_YOURS)
        return person

    Who = Annotated[Person, Depends(who)]
    Teacher = Annotated[Person, Depends(who_teaches)]

    @app.post(f"{prefix}/jobs", status_code=202, responses=REFUSALS)
    def ask(asked: Asked, person: Who, response: Response) -> Progress:
        """Let a check wait as a job, in place of an older one of the same person that waits."""
        try:
            cells = [(cell.id, cell.source) for cell in asked.cells]
            new = dispatcher.ask(person, asked.exercise, cells)
        except RefusedError as error:
            raise HTTPException(error.status, str(error)) from None
        response.headers["Location"] = f"{prefix}/jobs/{new}"
        return _progress(person, new)

    @app.get(f"{prefix}/jobs/{{job}}", responses=REFUSALS)
    async def look(
        job: str,
        person: Who,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0.0,
    ) -> Progress:
        """Tell how far a job is; with ``wait``, once it has ended or after so many seconds."""

        def ended() -> bool:
            found = dispatcher.progress(person, job)
            return found is None or found.state in ENDED

        if wait:
            await bells.wait(job, wait, ended)
        return await asyncio.to_thread(_progress, person, job)

    def _progress(person: Person, job: str) -> Progress:
        found = dispatcher.progress(person, job)
        if found is None:
            raise HTTPException(404, "you have no job of this id")
        return Progress.of(job, found)

    @app.get(f"{prefix}/jobs", responses=REFUSALS)
    def past(person: Who) -> list[PastJob]:
        """List one's own last jobs, the newest first."""
        return [PastJob(**row) for row in dispatcher.queue.of(person.name)]

    @app.get(f"{prefix}/labs", responses=REFUSALS)
    def labs(person: Who) -> list[LabState]:
        """List the labs that are out: when each is due, what was handed in, and its points."""
        rules, course = read_course_file(dispatcher.course.root), dispatcher.course
        return lab_states(course, rules, inbox, person.name, _seen_by(person, rules))

    @app.get(f"{prefix}/labs/{{lab}}/notebook", responses=REFUSALS)
    def notebook(lab: str, person: Who) -> Response:
        """Send the released notebook of a lab, in which links to lessons lead to the class's site.

        Without a site they lead to the lessons that the learner's archive has.
        """
        _require(person, lab)
        course = dispatcher.course
        path = course.folder("release", ".", lab) / f"{lab}.ipynb"
        if not path.is_file():
            raise HTTPException(404, f"{lab} has not been released")
        remember_release(course, lab)
        data, url = path.read_bytes(), lesson_url(course.root)
        return Response(settled_file(data, url) if url else data, media_type=NOTEBOOK)

    @app.put(
        f"{prefix}/labs/{{lab}}/notebook",
        status_code=201,
        responses=REFUSALS,
        max_body_size=MAX_NOTEBOOK,
    )
    async def hand_in(lab: str, person: Who, request: Request) -> Receipt:
        """Take in a notebook as one's newest submission; the receipt says that it is stored."""
        nonlocal arriving
        rules = await asyncio.to_thread(_require, person, lab)
        if arriving[person.name] >= MOST_ARRIVING:
            said = f"{MOST_ARRIVING} notebooks of yours are arriving already"
            raise TooManyError(said, AGAIN)
        arriving[person.name] += 1
        arrived = inbox.arriving()
        try:
            await _save(request, arrived)
            receipt = await asyncio.to_thread(inbox.take, rules, person.name, lab, arrived)
            return by_clock(rules, receipt)
        finally:
            arrived.unlink(missing_ok=True)
            arriving[person.name] -= 1
            arriving += Counter()  # keeps those above zero

    @app.get(f"{prefix}/labs/{{lab}}/feedback", responses=REFUSALS)
    def feedback(lab: str, person: Who) -> FileResponse:
        """Send the page of feedback that was made for the one who asks."""
        _require(person, lab)
        path = feedback_page(dispatcher.course, person.name, lab)
        if path is None:
            raise HTTPException(404, f"there is no feedback on {lab} for you yet")
        return FileResponse(path, media_type="text/html", headers=SEALED)

    @app.get(f"{prefix}/requests", responses=REFUSALS)
    def own_requests(person: Who) -> list[OwnRequest]:
        """List one's own requests for a regrade in the labs that are out."""
        rules = read_course_file(dispatcher.course.root)
        return [
            OwnRequest(lab=lab, exercise=one.exercise, why=one.why, answered=one.answered)
            for lab in _seen_by(person, rules)
            for _, one in requests_in(dispatcher.course, lab, only=[nfc(person.name)])
        ]

    @app.get(f"{prefix}/labs/{{lab}}/requests", responses=REFUSALS)
    def requests(lab: str, _: Teacher) -> list[RequestShown]:
        """List all requests for a regrade in a lab, those that are answered last."""
        if lab not in dispatcher.labs.names():
            raise HTTPException(404, f"there is no lab {lab}")
        found = [
            RequestShown(
                lab=lab,
                exercise=one.exercise,
                why=one.why,
                answered=one.answered,
                learner=graded.student,
                name=graded.name,
                earlier=one.earlier,
                now=one.now,
                earlier_time=one.asks_alone,
            )
            for graded, one in requests_in(dispatcher.course, lab)
        ]
        return sorted(found, key=lambda one: one.answered)

    @app.get(f"{prefix}/queue", responses=REFUSALS)
    def queue(_: Teacher) -> QueueShown:
        """Tell those who teach how much waits."""
        return QueueShown(workers=dispatcher.size, **dispatcher.queue.load())

    @app.post(f"{prefix}/labs/{{lab}}/grading", status_code=202, responses=REFUSALS)
    def grade(lab: str, _: Teacher) -> Grading:
        """Start to grade what is new of a lab, with the command's own lock and records."""
        if lab not in dispatcher.labs.names():
            raise HTTPException(404, f"there is no lab {lab}")
        try:
            return gradings.start(lab)
        except UserError as error:
            raise HTTPException(409, str(error)) from None

    @app.get(f"{prefix}/grading", responses=REFUSALS)
    def grading(_: Teacher) -> Grading:
        """Tell how far the grading that was started last is, and what it wrote."""
        return gradings.now()

    def _require(person: Person, lab: str) -> ClassRules | None:
        rules = read_course_file(dispatcher.course.root)
        out = _seen_by(person, rules)
        if lab not in out:
            known = ", ".join(out) or "none"
            raise HTTPException(404, f"no lab that is out is called {lab!r}; out: {known}")
        return rules

    def _seen_by(person: Person, rules: ClassRules | None) -> list[str]:
        now, every = datetime.now(UTC), dispatcher.labs.names()
        return [lab for lab in every if person.teaches or is_out(rules, lab, now)]

    return app


async def _save(request: Request, path: Path) -> None:
    """Write a request's body into a file as it arrives."""
    size = 0
    try:
        with path.open("xb") as file:
            async for part in request.stream():
                size += len(part)
                file.write(part)
    except ClientDisconnect:
        raise HTTPException(400, "the connection ended before the notebook had arrived") from None
    if not size:
        raise HTTPException(422, "the notebook is empty: save it and hand it in again")
