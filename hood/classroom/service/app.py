"""Define the web application: its endpoints, who may use each endpoint, and the limits.

The endpoints are inside a function, and FastAPI reads their annotations. So in this module
annotations are objects, not strings.
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
from hood.addresses import lesson_url
from hood.classroom.gradebook.service_jobs import ENDED, State
from hood.classroom.hand_ins.store import TooManyError
from hood.classroom.lesson_links import settled_file
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
MAX_BODY = 1 << 20  # bytes of a request without a hand-in
MAX_NOTEBOOK = 20_000_000  # bytes of a notebook that is handed in through the service
NOTEBOOK = "application/x-ipynb+json"
MOST_ARRIVING = 2  # notebooks of one learner that may arrive at the same time, to protect the disk
AGAIN = 5.0  # seconds after which an arriving notebook is probably complete
# Feedback has no script, and these headers give it no rights in a browser.
SEALED = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:",
    "X-Content-Type-Options": "nosniff",
}
LONGEST_WAIT = 25.0  # the longest wait of a request for a job's state, in seconds
MAX_CELLS = 500  # cells in a request for a verdict
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"description": said}
    for code, said in {
        401: "the request has no valid token",
        403: "the request is not allowed with this token, or not allowed now",
        404: "the request names something that does not exist, or is not released yet",
        408: "the body did not arrive in time",
        409: "a lab is being graded",
        413: "the body is too large",
        422: "the request is malformed",
        429: "too many of these requests at a time or in a day",
        503: "the course's settings can't be used",
    }.items()
}


class Cell(BaseModel):
    """A cell that the learner's kernel has run.

    Attributes:
        id: the cell's id in the notebook.
        source: the cell's code when it was last run.
    """

    id: Annotated[str, Field(max_length=64)]
    source: Annotated[str, Field(max_length=150_000)]


class Asked(BaseModel):
    """The exercise to check. The token identifies the learner.

    Attributes:
        exercise: the exercise's name, as in ``check(...)``.
        cells: the cells that the kernel has run, in the order of their last runs.
    """

    exercise: Annotated[str, Field(min_length=1, max_length=200)]
    cells: Annotated[list[Cell], Field(max_length=MAX_CELLS)]


class Progress(BaseModel):
    """The progress of a job.

    Attributes:
        id: the job's id.
        state: the state of the job.
        place: how many jobs come before this job, as long as it waits.
        seconds: the estimated number of seconds until there is a verdict.
        card: the verdict as a MIME bundle, after the job has ended.
    """

    id: str
    state: State
    place: int = 0
    seconds: float = 0.0
    card: dict[str, Any] = {}

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
    """One of the sender's jobs.

    Attributes:
        id: the job's id.
        exercise: the name of the exercise.
        state: the state of the job.
        received: the time at which the service got the job.
        earned: the points that the verdict gives.
        most: the maximum of these points.
    """

    id: str
    exercise: str
    state: State
    received: datetime
    earned: float | None = None
    most: float | None = None


class OwnRequest(BaseModel):
    """One of the sender's requests for a regrade, after the submission was graded.

    Attributes:
        lab: the name of the lab.
        exercise: the name of the exercise.
        why: the learner's reason.
        answered: whether a person has answered the request.
    """

    lab: str
    exercise: str
    why: str
    answered: bool


class RequestShown(OwnRequest):
    """A learner's request for a regrade, for teachers.

    Attributes:
        lab: the name of the lab.
        exercise: the name of the exercise.
        why: the learner's reason.
        answered: whether a person has answered the request.
        learner: the learner's id.
        name: the learner's name.
        earlier: the points of the verdict before the request.
        now: the points of the verdict now.
        earlier_time: whether the request is the only change in the hand-in. If so, the time of the
            earlier hand-in counts.
    """

    learner: str
    name: str
    earlier: str
    now: str
    earlier_time: bool


class QueueShown(BaseModel):
    """The load of the service.

    Attributes:
        waiting: the number of jobs that wait.
        running: the number of jobs that are being judged.
        workers: how many jobs can be judged at a time.
        done_in_last_hour: the number of jobs that ended in the last hour.
    """

    waiting: int
    running: int
    workers: int
    done_in_last_hour: int


class Bells:
    """Wakes, in the server's event loop, the requests that wait for a job."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def ring(self, job_id: str) -> None:
        for event in self._waiting.get(job_id, ()):
            event.set()

    async def wait(self, job_id: str, seconds: float, ended: Callable[[], bool]) -> None:
        """Wait for the end of the job, but at most ``seconds``."""
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
    """Return the application, which starts the dispatcher's workers and ends them.

    Args:
        people: finds the owner of a token.
        prefix: the path below which a proxy serves the application, such as
            ``/services/open-the-hood``.
        own: an origin that only the service's own pages have; see
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

    # FastAPI's documentation pages load scripts from elsewhere
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
        # FastAPI's usual reply quotes the request, which may not be valid text
        said = ascii(f"the request is malformed: {place}: {first['msg']}")[1:-1]
        return JSONResponse({"detail": said}, 422)

    @app.exception_handler(UserError)
    def unusable(_: Request, error: UserError) -> JSONResponse:
        LOG.error("%s", error)
        said = "this course's settings have an error; the course's instructor can read the details"
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
    bearer = HTTPBearer(
        description="a token from JupyterHub, or a token that the instructor gave to the person"
    )

    def who(
        request: Request, _: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]
    ) -> Person:
        person: Person | None = request.state.person
        if person is None:
            raise HTTPException(403, "this token does not belong to this course")
        if problem := id_problem(nfc(person.name)):  # folders have this name
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
        """Queue a check as a job, which replaces an older waiting job of the same person."""
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
        """Wait for the end of a job, but at most ``wait`` seconds; return the job's progress."""

        def ended() -> bool:
            found = dispatcher.progress(person, job)
            return found is None or found.state in ENDED

        if wait:
            await bells.wait(job, wait, ended)
        return await asyncio.to_thread(_progress, person, job)

    def _progress(person: Person, job: str) -> Progress:
        found = dispatcher.progress(person, job)
        if found is None:
            raise HTTPException(404, "you have no job with this id")
        return Progress.of(job, found)

    @app.get(f"{prefix}/jobs", responses=REFUSALS)
    def past(person: Who) -> list[PastJob]:
        """List your last jobs, the newest first."""
        return [PastJob(**row) for row in dispatcher.queue.of(person.name)]

    @app.get(f"{prefix}/labs", responses=REFUSALS)
    def labs(person: Who) -> list[LabState]:
        """List the released labs, each with its due date, your hand-ins and your points."""
        rules, course = read_course_file(dispatcher.course.root), dispatcher.course
        return lab_states(course, rules, inbox, person.name, _seen_by(person, rules))

    @app.get(f"{prefix}/labs/{{lab}}/notebook", responses=REFUSALS)
    def notebook(lab: str, person: Who) -> Response:
        """Send the notebook of a released lab. Its links lead to the lessons on the class's site.

        If the class has no site, the links lead to the lessons in the learner's archive.
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
        """Store a notebook as your newest hand-in, and return a receipt.

        The body of the request is the notebook's file.
        """
        nonlocal arriving
        rules = await asyncio.to_thread(_require, person, lab)
        if arriving[person.name] >= MOST_ARRIVING:
            said = f"{MOST_ARRIVING} of your notebooks are already being received"
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
            arriving += Counter()  # keeps only counts above zero

    @app.get(f"{prefix}/labs/{{lab}}/feedback", responses=REFUSALS)
    def feedback(lab: str, person: Who) -> FileResponse:
        """Send your feedback page on a lab."""
        _require(person, lab)
        path = feedback_page(dispatcher.course, person.name, lab)
        if path is None:
            raise HTTPException(404, f"there is no feedback on {lab} for you yet")
        return FileResponse(path, media_type="text/html", headers=SEALED)

    @app.get(f"{prefix}/requests", responses=REFUSALS)
    def own_requests(person: Who) -> list[OwnRequest]:
        """List your requests for a regrade in the released labs."""
        rules = read_course_file(dispatcher.course.root)
        return [
            OwnRequest(lab=lab, exercise=one.exercise, why=one.why, answered=one.answered)
            for lab in _seen_by(person, rules)
            for _, one in requests_in(dispatcher.course, lab, only=[nfc(person.name)])
        ]

    @app.get(f"{prefix}/labs/{{lab}}/requests", responses=REFUSALS)
    def requests(lab: str, _: Teacher) -> list[RequestShown]:
        """List all requests for a regrade in a lab, the answered requests last; for teachers."""
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
        """Return the load of the service, for teachers."""
        return QueueShown(workers=dispatcher.size, **dispatcher.queue.load())

    @app.post(f"{prefix}/labs/{{lab}}/grading", status_code=202, responses=REFUSALS)
    def grade(lab: str, _: Teacher) -> Grading:
        """Start grading the new submissions to a lab, as in a terminal; for teachers.

        The lock and the records are the same as in ``python -m hood grade``.
        """
        if lab not in dispatcher.labs.names():
            raise HTTPException(404, f"there is no lab {lab}")
        try:
            return gradings.start(lab)
        except UserError as error:
            raise HTTPException(409, str(error)) from None

    @app.get(f"{prefix}/grading", responses=REFUSALS)
    def grading(_: Teacher) -> Grading:
        """Return the state and the output of the last grading; for teachers."""
        return gradings.now()

    def _require(person: Person, lab: str) -> ClassRules | None:
        rules = read_course_file(dispatcher.course.root)
        out = _seen_by(person, rules)
        if lab not in out:
            known = ", ".join(out) or "none"
            raise HTTPException(404, f"no released lab is called {lab!r}; released: {known}")
        return rules

    def _seen_by(person: Person, rules: ClassRules | None) -> list[str]:
        now, every = datetime.now(UTC), dispatcher.labs.names()
        return [lab for lab in every if person.teaches or is_out(rules, lab, now)]

    return app


async def _save(request: Request, path: Path) -> None:
    """Write the body of a request into a file while it arrives."""
    size = 0
    try:
        with path.open("xb") as file:
            async for part in request.stream():
                size += len(part)
                file.write(part)
    except ClientDisconnect:
        raise HTTPException(400, "the connection ended before the whole notebook arrived") from None
    if not size:
        raise HTTPException(422, "the notebook is empty: save it and hand it in again")
