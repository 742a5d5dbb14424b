"""The pages on a Jupyter server, behind its login, its XSRF token and a content policy."""

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
# What the menu opens (jupyter/labconfig). JupyterLab takes its address as relative to its own page,
# of whatever depth, and has no way to say where the server's addresses begin.
OPENED = "answers-in-words"
ANONYMOUS = "Anonymous "  # how the names begin that a server with a token alone invents


def add_handlers(server: Any) -> None:
    """Add the pages to a Jupyter server, below ``marking/``, for the course in its folder."""
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
    server.log.info("Answers in words are marked at %s of this server", base)


class _Jupyter:
    """What all handlers have: the marking, who marks, and from where it may be asked."""

    auth_resource = NAME

    def initialize(self, marking: Marking) -> None:
        self.marking = marking

    @property
    def base(self) -> str:
        """The address of these pages, with a slash at its end."""
        return url_path_join(self.base_url, NAME) + "/"  # type: ignore[attr-defined]

    def closed(self) -> str:
        """Return why this request is refused; empty if it is not."""
        request = self.request  # type: ignore[attr-defined]
        path = request.path.removeprefix(self.base)
        return origin.problem(request.method, path, request.headers, origin.is_shared())

    def visitor(self, xsrf: str = "") -> Visitor:
        """Return who is logged in. A server with a token alone invents a name for each browser.

        There the sections may name its owner.
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
        """Return what is answered to this request, without holding up the server's loop."""
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
        """Lead somebody who is not logged in to the login, and from there back."""
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
        """Send a page, or what one loads."""
        self.set_header("Content-Type", f"{reply.kind}; charset=utf-8")
        for name, value in page.HEADERS.items():
            self.set_header(name, value)
        self.finish(reply.text)


class MenuHandler(_Page):
    """The address that the menu opens; it leads to the list of questions.

    A server adds extensions by their names, so this is asked before JupyterLab's own pages.
    """

    @authorized
    async def get(self) -> None:
        self.redirect(self.base)


class PageHandler(_Page):
    """The list of questions, a question, and their style and script."""

    @authorized
    async def get(self, path: str) -> None:
        self.show(await self.reply(path, self.xsrf_token.decode()))


class DataHandler(_Jupyter, APIHandler):
    """Answers, their marks, and whose they are."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse what another page asks."""
        await super().prepare()
        if why := self.closed():
            raise HTTPError(403, why)

    @authorized
    async def get(self, path: str) -> None:
        reply = await self.reply(path)
        self.set_status(reply.status)
        self.finish(reply.text)

    put = post = get
