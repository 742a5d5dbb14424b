"""What the server answers to the pages, behind its login, its XSRF token and a content policy."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, HTTPError, JupyterHandler
from jupyter_server.utils import url_path_join

from grader import UserError
from grader.course import open_course
from grader.marking import page
from grader.marking.answers import Answer, Reader
from grader.marking.book import Book, Marker, Shown, StaleError, Wanted
from grader.marking.share import Share, share_of

NAME = "marking"
# What the menu opens (jupyter/labconfig). JupyterLab takes its address as relative to its own page,
# of whatever depth, and has no way to say where the server's addresses begin.
OPENED = "answers-in-words"
ID = r"([0-9a-f]{32})"
MAX_BODY = 1 << 16  # bytes of a save
MAX_BOXES = 100
ANONYMOUS = "Anonymous "  # how the names begin that a server with a token alone invents
T = TypeVar("T")


class Desk:
    """What the handlers of one server share: the course's gradebook, and the reader of answers."""

    def __init__(self, root: Path):
        self.root = root
        self.reader = Reader()

    @cached_property
    def book(self) -> Book:
        """The gradebook of the course in the server's folder; its settings are read once."""
        return Book(open_course(self.root))

    def answer(self, grade_id: str) -> Answer:
        """Return the answer that a grade is for."""
        place = self.book.place(grade_id)
        return self.reader.answer(place.path, place.cell)


def add_handlers(server: Any) -> None:
    """Add the pages to a Jupyter server, below ``marking/``, for the course in its folder."""
    desk = Desk(Path(server.root_dir))
    top = server.web_app.settings["base_url"]
    base = url_path_join(top, NAME)
    given = {"desk": desk}
    server.web_app.add_handlers(
        ".*$",
        [
            (f"{base}/?", IndexHandler, given),
            (url_path_join(top, rf"(?:.*/)?{OPENED}"), MenuHandler, given),
            (f"{base}/(marking.css|marking.js)", AssetHandler, given),
            (f"{base}/question/{ID}", QuestionHandler, given),
            (f"{base}/api/names/{ID}", NamesHandler, given),
            (f"{base}/api/answer/{ID}", AnswerHandler, given),
            (f"{base}/api/undo/{ID}", UndoHandler, given),
        ],
    )
    server.log.info("Answers in words are marked at %s of this server", base)


class _Desk:
    """What all handlers have: the desk, and the marker."""

    auth_resource = NAME

    def initialize(self, desk: Desk) -> None:
        self.desk = desk

    @property
    def base(self) -> str:
        """The address of these pages, with a slash at its end."""
        return url_path_join(self.base_url, NAME) + "/"  # type: ignore[attr-defined]

    @property
    def marker(self) -> Marker:
        """Who is logged in. A server with a token alone invents a name for each browser."""
        user = self.current_user  # type: ignore[attr-defined]
        known = user.display_name
        if known.startswith(ANONYMOUS):
            known = f"{getpass.getuser()} ({known})"
        return Marker(user.username, known)

    def share(self) -> Share:
        """Return whose answers this person marks; on a server with a token alone, its owner."""
        user = self.current_user  # type: ignore[attr-defined]
        anonymous = user.display_name.startswith(ANONYMOUS)
        return share_of(self.desk.root, {getpass.getuser() if anonymous else user.username})

    async def off_loop(self, function: Callable[..., T], *given: Any) -> T:
        """Run what waits for a disk, a database or a process beside the server's loop."""
        try:
            return await asyncio.to_thread(function, *given)
        except KeyError as error:
            raise HTTPError(404, "there is no such question or answer") from error
        except UserError as error:
            raise HTTPError(503, reason=None, log_message=str(error)) from error


class _Page(_Desk, JupyterHandler):
    @property
    def content_security_policy(self) -> str:
        return page.POLICY

    async def prepare(self) -> None:  # type: ignore[override]
        """Lead somebody who is not logged in to the login, and from there back."""
        await super().prepare()
        login = self.get_login_url()
        if not (self.current_user or self._finished):
            asked = quote(self.request.uri or self.base, safe="")
            self.redirect(login if "?" in login else f"{login}?next={asked}")

    def finish_page(self, text: str, kind: str = "text/html") -> None:
        """Send a text, which no browser may keep."""
        self.set_header("Content-Type", f"{kind}; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.finish(text)


class IndexHandler(_Page):
    """The list of questions."""

    @authorized
    async def get(self) -> None:
        try:
            share = await asyncio.to_thread(self.share)
            questions = await asyncio.to_thread(lambda: self.desk.book.questions(share))
        except UserError as error:
            self.finish_page(page.problem_page(str(error), self.base))
        else:
            self.finish_page(page.index_page(questions, share, self.base))
            if questions:  # who reads the list soon opens one, for which a process must be there
                await asyncio.to_thread(self.desk.reader.rendered, [""])


class MenuHandler(_Page):
    """The address that the menu opens; it leads to the list of questions.

    A server adds extensions by their names, so this is asked before JupyterLab's own pages.
    """

    @authorized
    async def get(self) -> None:
        self.redirect(self.base)


class QuestionHandler(_Page):
    """One question; its answers are fetched one by one."""

    @authorized
    async def get(self, cell_id: str) -> None:
        share = await self.off_loop(self.share)
        sheet = await self.off_loop(lambda: self.desk.book.sheet(cell_id, share))
        texts = [sheet.text, sheet.rubric.intro, *sheet.rubric.boxes]
        rendered = await self.off_loop(self.desk.reader.rendered, texts)
        token = self.xsrf_token.decode()
        self.finish_page(page.question_page(sheet, share, rendered, self.base, token))


class AssetHandler(_Page):
    """The style and the script."""

    @authorized
    async def get(self, name: str) -> None:
        if name == "marking.css":
            self.finish_page(page.stylesheet(), "text/css")
        else:
            self.finish_page(page.script(), "text/javascript")


class _Data(_Desk, APIHandler):
    def send(self, shown: Shown, **more: Any) -> None:
        """Send a mark, with what else belongs to it."""
        self.finish(json.dumps(asdict(shown) | {"state": shown.mark.state} | more))

    async def refuse(self, now: Shown, answer: Answer) -> None:
        """Say that what was seen is not there any more, and what is."""
        self.set_status(409)
        self.send(now, html=answer.html, problem=answer.problem, cut=answer.cut)

    def body(self) -> dict[str, Any]:
        """Return what a browser sends.

        Raises:
            HTTPError: for anything but a small object of JSON.
        """
        if len(self.request.body) > MAX_BODY:
            raise HTTPError(413, f"a save has at most {MAX_BODY:,} bytes")
        found = self.get_json_body()
        if not isinstance(found, dict):
            raise HTTPError(400, "a save is an object of JSON")
        return found


class NamesHandler(_Data):
    """Whose the answers are; asked for only when the marker wants to see it."""

    @authorized
    async def get(self, cell_id: str) -> None:
        names = await self.off_loop(lambda: self.desk.book.names(cell_id))
        self.finish(json.dumps(names))


class AnswerHandler(_Data):
    """An answer and its mark; a mark is put here, too."""

    @authorized
    async def get(self, grade_id: str) -> None:
        answer = await self.off_loop(self.desk.answer, grade_id)
        shown = await self.off_loop(self.desk.book.shown, grade_id, answer)
        place = await self.off_loop(self.desk.book.place, grade_id)
        notebook = url_path_join(self.base_url, "formgrader/submissions", place.submission, "/")
        self.send(
            shown, html=answer.html, problem=answer.problem, cut=answer.cut, notebook=notebook
        )

    @authorized
    async def put(self, grade_id: str) -> None:
        version, wanted = read_save(self.body())
        answer = await self.off_loop(self.desk.answer, grade_id)
        give = self.desk.book.give
        try:
            shown = await self.off_loop(give, grade_id, version, wanted, self.marker, answer)
        except StaleError as stale:
            await self.refuse(stale.now, answer)
        except ValueError as error:
            raise HTTPError(400, str(error)) from error
        else:
            self.send(shown)


class UndoHandler(_Data):
    """Take back this marker's last mark for a question."""

    @authorized
    async def post(self, cell_id: str) -> None:
        grade_id = await self.off_loop(lambda: self.desk.book.last(cell_id, self.marker))
        if not grade_id:
            raise HTTPError(404, "there is no mark of yours to take back")
        answer = await self.off_loop(self.desk.answer, grade_id)
        try:
            back = self.desk.book.take_back
            shown = await self.off_loop(back, grade_id, self.marker, answer)
        except StaleError as stale:
            await self.refuse(stale.now, answer)
        else:
            self.send(shown)


def read_save(body: dict[str, Any]) -> tuple[str, Wanted]:
    """Return the version that a save carries, and the mark.

    Raises:
        HTTPError: when something is missing, or is not what it should be.
    """
    version, score, remark = body.get("version"), body.get("score"), body.get("remark", "")
    boxes = body.get("boxes", [])
    number = isinstance(score, (int, float)) and not isinstance(score, bool)
    if not isinstance(version, str):
        raise HTTPError(400, "a save carries the `version` that was seen, a string")
    if not (score is None or number):
        raise HTTPError(400, "`score` is a number, or null for none")
    if not isinstance(remark, str):
        raise HTTPError(400, "`remark` is a string")
    if not (
        isinstance(boxes, list)
        and len(boxes) <= MAX_BOXES
        and all(type(one) is int and 0 <= one < MAX_BOXES for one in boxes)
    ):
        raise HTTPError(400, f"`boxes` are whole numbers below {MAX_BOXES}")
    return version, Wanted(score, remark.strip(), tuple(boxes))
