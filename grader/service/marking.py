"""The pages for marking answers in words, behind the service's login.

A browser has no token to send, so here a cookie holds it, which is sent to these pages alone: the
hub's, after its login, or one that the instructor handed out and that a person types in. A save
carries a word of the page's own as well, which a page from elsewhere can't know.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from grader.marking import page
from grader.marking.book import Marker
from grader.marking.routes import Marking, RefusedError, Reply, Visitor
from grader.service.door import COOKIE, LOG_IN
from grader.service.people import People, Person, service_key

NAME, CALLBACK = "marking", "oauth_callback"
STATE = "open-the-hood-login"  # a cookie, until the hub has answered
SECONDS_TO_LOG_IN = 600
LASTS = 14 * 24 * 3600  # seconds that a browser keeps a token; whether it holds is asked anew
MAX_FORM = 4096  # bytes
ASSETS = ("marking.css", "marking.js")  # the page that asks for a token has them, too
NOT_YOURS = "only those who teach may do this"


def marking_pages(root: Path, people: People, prefix: str) -> APIRouter:
    """Return the pages below ``prefix/marking/``, and what a hub's login comes back to.

    Args:
        root: the course's folder.
        prefix: the path below which a proxy serves the service.
    """
    router, marking, key = APIRouter(include_in_schema=False), Marking(root), service_key(root)
    base = f"{prefix}/{NAME}/"

    def word(token: str) -> str:
        return hmac.new(key, f"{NAME} {token}".encode(), hashlib.sha256).hexdigest()

    def with_cookie(reply: Response, request: Request, name: str, value: str) -> Response:
        secure = request.url.scheme == "https"
        path, age = (base, LASTS) if name == COOKIE else (f"{prefix}/{CALLBACK}", SECONDS_TO_LOG_IN)
        reply.set_cookie(name, value, age, path=path, secure=secure, httponly=True, samesite="lax")
        return reply

    def to_login(request: Request, problem: str = "") -> Response:
        if begun := people.begin_login():
            address, state = begun
            return with_cookie(RedirectResponse(address, 303), request, STATE, state)
        reply = _sent(Reply(page.login_page(problem, base), status=401))
        form = page.POLICY.replace("form-action 'none'", "form-action 'self'")
        reply.headers["Content-Security-Policy"] = form
        return reply

    def answered(request: Request, path: str, body: bytes) -> Response:
        token = request.cookies.get(COOKIE, "")
        person: Person | None = request.state.person
        is_page = not path.startswith("api/")
        if path not in ASSETS:
            if person is None:
                if is_page and request.method == "GET":
                    return to_login(request)
                raise RefusedError(403, "you are not logged in any more: load this page again")
            if not person.teaches:
                raise RefusedError(403, NOT_YOURS)
            carried = request.headers.get("X-XSRFToken", "")
            if request.method != "GET" and not hmac.compare_digest(
                carried.encode(), word(token).encode()
            ):
                raise RefusedError(403, "this was not sent by a page of the service")
        name = person.name if person else ""
        visitor = Visitor(Marker(name, name), frozenset([name]), base, word(token))
        return _sent(marking.reply(request.method, path, body, visitor))

    @router.get(f"{prefix}/{NAME}")
    def index() -> Response:
        return RedirectResponse(base, 308)

    @router.post(f"{base}{LOG_IN}", max_body_size=MAX_FORM)
    async def log_in(request: Request) -> Response:
        said = parse_qs((await request.body()).decode(errors="replace"))
        token = said.get("token", [""])[0].rpartition(",")[2].strip()  # perhaps `NAME,TOKEN`
        person = await run_in_threadpool(people.whose, token)
        if person is None or not person.teaches:
            problem = NOT_YOURS if person else "This is no token of this course."
            return to_login(request, problem)
        return with_cookie(RedirectResponse(base, 303), request, COOKIE, token)

    @router.get(f"{prefix}/{CALLBACK}")
    def come_back(request: Request, code: str = "", state: str = "") -> Response:
        known = request.cookies.get(STATE, "")
        if not (code and known and hmac.compare_digest(known.encode(), state.encode())):
            return _refused(403, f"this login was not begun here: begin again at {base}", True)
        token = people.end_login(code, state)
        return with_cookie(RedirectResponse(base, 303), request, COOKIE, token)

    @router.api_route(f"{base}{{path:path}}", methods=["GET", "PUT", "POST"])
    async def marking_page(path: str, request: Request) -> Response:
        body = await request.body()
        try:
            return await run_in_threadpool(answered, request, path, body)
        except RefusedError as error:
            return _refused(error.status, str(error), not path.startswith("api/"))

    return router


def _sent(reply: Reply) -> Response:
    headers = {"Content-Security-Policy": page.POLICY, **page.HEADERS}
    return Response(reply.text, reply.status, headers, f"{reply.kind}; charset=utf-8")


def _refused(status: int, why: str, is_page: bool) -> Response:
    if is_page:
        return _sent(Reply(why, "text/plain", status))
    return _sent(Reply(json.dumps({"message": why}), "application/json", status))
