"""Identify the sender of a browser's requests for the service's pages.

A browser does not send a token by itself, so a cookie contains the token. This token comes either
from the hub's login or from the instructor. A token from the instructor is typed in. The browser
sends the cookie only to this service, and only the service's pages accept it.
"""

from __future__ import annotations

import hmac
import json
from urllib.parse import parse_qs, urlparse

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from hood.classroom.marking import origin, page
from hood.classroom.marking.routes import Reply
from hood.classroom.service.people import People, Person

CALLBACK = "oauth_callback"
MARKING = "marking"
TOKEN, STATE = "open-the-hood", "open-the-hood-login"  # cookies
SECONDS_TO_LOG_IN = 600
LASTS = 14 * 24 * 3600  # seconds that a browser keeps a token; it is checked at each request
MAX_FORM = 4096  # bytes
NOT_YOURS = "only teachers may do this"


class Login:
    """The login for the pages of one service.

    Args:
        prefix: the path below which a proxy serves the service.
        own: an origin such as ``https://marking.example.org`` that has the service's pages but no
            learners' pages; empty if there is no such origin.
    """

    def __init__(self, people: People, prefix: str, own: str = ""):
        self._people = people
        self._prefix = prefix
        self._own = own
        self.shared = not own and origin.is_shared()  # whether learners' pages have the same origin
        self.marking = f"{prefix}/{MARKING}/"
        self.address = f"{self.marking}login"  # the path to which a typed token is sent
        self._pages = {"": f"{prefix}/", MARKING: self.marking}  # pages, by their names in a cookie

    def token(self, request: Request) -> str:
        """Return the token in a request's cookie, not yet checked; empty without such a cookie."""
        return request.cookies.get(TOKEN, "")

    def is_page(self, path: str) -> bool:
        """Return whether a path belongs to the pages, whose requests have the token in a cookie."""
        return path == f"{self._prefix}/" or path.startswith(self.marking)

    def closed(self, request: Request) -> Response | None:
        """Return a refusal or redirect if this request must not reach the page, otherwise None."""
        here = request.headers.get("Host", "").lower()
        if self._own and here != urlparse(self._own).netloc.lower():
            if request.method == "GET":
                return RedirectResponse(f"{self._own}{request.scope['path']}", 307)
            return refused(403, f"the pages of this service are at {self._own}{self.marking}")
        path = request.scope["path"]
        if not path.startswith(self.marking):
            return None
        path = path.removeprefix(self.marking)
        why = origin.problem(request.method, path, request.headers, self.shared)
        if not why:
            return None
        if path.startswith("api/"):
            return sent(Reply(json.dumps({"message": why}), "application/json", 403))
        return sent(Reply(page.problem_page(why, self.marking), status=403))

    def person(self, request: Request) -> Person | None:
        """Return the person who requests a page; None if nobody is logged in."""
        known: Person | None = request.state.person
        return known

    def begin(self, request: Request, to: str, problem: str = "") -> Response:
        """Send a browser to the hub's login, or ask for a token.

        Args:
            to: the page to open after the login: ``marking``, or empty for the home page.
            problem: why the previous token was refused; empty if no token was refused.
        """
        if begun := self._people.begin_login():
            address, state = begun
            to_hub = RedirectResponse(address, 303)
            return self._with_cookie(to_hub, request, STATE, f"{to}:{state}")
        reply = sent(Reply(page.login_page(problem, self.marking, to), status=401))
        form = page.POLICY.replace("form-action 'none'", "form-action 'self'")
        reply.headers["Content-Security-Policy"] = form
        return reply

    def routes(self) -> APIRouter:
        """Return two routes: one takes a typed token, the other completes a login at the hub."""
        router = APIRouter(include_in_schema=False)

        @router.post(self.address, max_body_size=MAX_FORM)
        async def log_in(request: Request) -> Response:
            said = parse_qs((await request.body()).decode(errors="replace"))
            to = MARKING if said.get("to") == [MARKING] else ""
            token = said.get("token", [""])[0].rpartition(",")[2].strip()  # perhaps `NAME,TOKEN`
            person = await run_in_threadpool(self._people.whose, token)
            if person is None or (to and not person.teaches):
                problem = NOT_YOURS if person else "This is not a token of this course."
                return self.begin(request, to, problem)
            return self._let_in(request, to, token)

        @router.get(f"{self._prefix}/{CALLBACK}")
        def come_back(request: Request, code: str = "", state: str = "") -> Response:
            to, _, known = request.cookies.get(STATE, "").partition(":")
            if not (code and known and hmac.compare_digest(known.encode(), state.encode())):
                place = self._pages.get(to, self._pages[""])
                return refused(403, f"this login did not start here: start again at {place}")
            return self._let_in(request, to, self._people.end_login(code, state))

        return router

    def _let_in(self, request: Request, to: str, token: str) -> Response:
        reply = RedirectResponse(self._pages.get(to, self._pages[""]), 303)
        return self._with_cookie(reply, request, TOKEN, token)

    def _with_cookie(self, reply: Response, request: Request, name: str, value: str) -> Response:
        secure = request.url.scheme == "https"
        path, age = f"{self._prefix}/", LASTS
        if name == STATE:
            path, age = f"{self._prefix}/{CALLBACK}", SECONDS_TO_LOG_IN
        reply.set_cookie(name, value, age, path=path, secure=secure, httponly=True, samesite="lax")
        return reply


def sent(reply: Reply) -> Response:
    """Return a page or its data as a response, with the headers that all pages have."""
    headers = {"Content-Security-Policy": page.POLICY, **page.HEADERS}
    return Response(reply.text, reply.status, headers, f"{reply.kind}; charset=utf-8")


def refused(status: int, why: str) -> Response:
    """Return a plain page that says why the request is refused."""
    return sent(Reply(why, "text/plain", status))
