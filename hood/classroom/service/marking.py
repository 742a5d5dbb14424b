"""Serve the pages for marking written answers, behind the service's login.

Besides the cookie, a request from a page's script must contain a token that only the page knows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from hood.classroom.marking.book import Marker
from hood.classroom.marking.origin import STATIC
from hood.classroom.marking.routes import Marking, RefusedError, Reply, Visitor
from hood.classroom.service.login import MARKING, NOT_YOURS, Login, refused, sent
from hood.classroom.service.people import service_key


def marking_pages(root: Path, login: Login, prefix: str) -> APIRouter:
    """Return the routes of the pages below ``prefix/marking/``.

    Args:
        root: the course's folder.
        prefix: the path below which a proxy serves the service.
    """
    router, marking, key = APIRouter(include_in_schema=False), Marking(root), service_key(root)
    base = login.marking

    def word(token: str) -> str:
        return hmac.new(key, f"{MARKING} {token}".encode(), hashlib.sha256).hexdigest()

    def answered(request: Request, path: str, body: bytes) -> Response:
        token, person = login.token(request), login.person(request)
        is_page = not path.startswith("api/")
        if path not in STATIC:  # the page that asks for a token uses these files too
            if person is None:
                if is_page and request.method == "GET":
                    return login.begin(request, MARKING)
                raise RefusedError(403, "you are not logged in any more: reload this page")
            if not person.teaches:
                raise RefusedError(403, NOT_YOURS)
            carried = request.headers.get("X-XSRFToken", "").encode()
            is_script = request.method != "GET" or not is_page
            if is_script and not hmac.compare_digest(carried, word(token).encode()):
                raise RefusedError(403, "this request did not come from a page of the service")
        name = person.name if person else ""
        visitor = Visitor(Marker(name, name), frozenset([name]), base, word(token))
        return sent(marking.reply(request.method, path, body, visitor))

    @router.get(f"{prefix}/{MARKING}")
    def index() -> Response:
        return RedirectResponse(base, 308)

    @router.api_route(f"{base}{{path:path}}", methods=["GET", "PUT", "POST"])
    async def marking_page(path: str, request: Request) -> Response:
        body = await request.body()
        try:
            return await run_in_threadpool(answered, request, path, body)
        except RefusedError as error:
            if not path.startswith("api/"):
                return refused(error.status, str(error))
            said = json.dumps({"message": str(error)})
            return sent(Reply(said, "application/json", error.status))

    return router
