"""Serve the pages on a Jupyter server, behind its login, its XSRF token and a content policy."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, HTTPError, JupyterHandler
from jupyter_server.utils import url_path_join

from hood.classroom.marking import origin, page
from hood.classroom.marking.book import Marker
from hood.classroom.marking.routes import Marking, RefusedError, Reply, Visitor

NAME = "marking"
# The address that the menu opens (jupyter/labconfig). JupyterLab reads this address relative to
# JupyterLab's current page, whose depth varies. It can't contain the server's base address.
OPENED = "answers-in-words"
ANONYMOUS = "Anonymous "  # prefix of names that a token-only server invents


def add_handlers(server: Any) -> None:
    """Add the pages for the course in a Jupyter server's folder, below the address ``marking/``."""
    marking = Marking(Path(server.root_dir))
    top = server.web_app.settings["base_url"]
    base = url_path_join(top, NAME)
    given = {"marking": marking}
    server.web_app.add_handlers(
        ".*$",
        [
            (url_path_join(top, rf"(?:.*/)?{OPENED}"), MenuHandler, given),
            (f"{base}/(api/.+)", DataHandler, given),
            (f"{base}/?()", PageHandler, given),
            (f"{base}/(.+)", PageHandler, given),
        ],
    )
    server.log.info("The pages for marking are at %s of this server", base)


class _Jupyter:
    """The base class of all handlers: it identifies the marker and checks each request's origin."""

    auth_resource = NAME

    def initialize(self, marking: Marking) -> None:
        self.marking = marking

    @property
    def base(self) -> str:
        """The address of these pages, with a slash at its end."""
        return url_path_join(self.base_url, NAME) + "/"  # type: ignore[attr-defined]

    def closed(self) -> str:
        """Return why this request is refused; empty if it is allowed."""
        request = self.request  # type: ignore[attr-defined]
        path = request.path.removeprefix(self.base)
        return origin.problem(request.method, path, request.headers, origin.is_shared())

    def visitor(self, xsrf: str = "") -> Visitor:
        """Return who is logged in.

        A server that has only a token invents a name for each browser. On such a server, sections
        may also use the name of the server's owner for the visitor.
        """
        user = self.current_user  # type: ignore[attr-defined]
        known, name = user.display_name, user.username
        if known.startswith(ANONYMOUS):
            name = getpass.getuser()
            known = f"{name} ({known})"
        formgrader = url_path_join(self.base_url, "formgrader/submissions/")  # type: ignore[attr-defined]
        marker = Marker(user.username, known)
        return Visitor(marker, frozenset([name]), self.base, xsrf, formgrader)

    async def reply(self, path: str, xsrf: str = "") -> Reply:
        """Return the reply to this request, without blocking the server's event loop."""
        request = self.request  # type: ignore[attr-defined]
        asked = request.method, path, request.body, self.visitor(xsrf)
        try:
            return await asyncio.to_thread(self.marking.reply, *asked)
        except RefusedError as error:
            raise HTTPError(error.status, str(error)) from error


class _Page(_Jupyter, JupyterHandler):
    @property
    def content_security_policy(self) -> str:
        return page.POLICY

    async def prepare(self) -> None:  # type: ignore[override]
        """If nobody is logged in, redirect to the login page, which leads back to this page."""
        await super().prepare()
        if self._finished:
            return
        if why := self.closed():
            self.set_status(403)
            self.show(Reply(page.problem_page(why, self.base)))
            return
        login = self.get_login_url()
        if not self.current_user:
            asked = quote(self.request.uri or self.base, safe="")
            self.redirect(login if "?" in login else f"{login}?next={asked}")

    def show(self, reply: Reply) -> None:
        """Send a page, or a file that a page loads."""
        self.set_header("Content-Type", f"{reply.kind}; charset=utf-8")
        for name, value in page.HEADERS.items():
            self.set_header(name, value)
        self.finish(reply.text)


class MenuHandler(_Page):
    """Handles the address that the menu opens: it redirects to the list of questions.

    A server adds extensions in the order of their names, so this handler comes before JupyterLab's
    pages.
    """

    @authorized
    async def get(self) -> None:
        self.redirect(self.base)


class PageHandler(_Page):
    """Serves the list of questions, the page of a question, and their style and script."""

    @authorized
    async def get(self, path: str) -> None:
        self.show(await self.reply(path, self.xsrf_token.decode()))


class DataHandler(_Jupyter, APIHandler):
    """Serves the data of a page: answers, their marks, and learners' names."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse a request that another page sent."""
        await super().prepare()
        if why := self.closed():
            raise HTTPError(403, why)

    @authorized
    async def get(self, path: str) -> None:
        reply = await self.reply(path)
        self.set_status(reply.status)
        self.finish(reply.text)

    put = post = get
