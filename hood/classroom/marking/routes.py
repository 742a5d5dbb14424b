"""Reply to requests for the pages for marking, on any server.

Jupyter's server (:mod:`.handlers`) and the service (``hood/classroom/service/marking.py``) identify
the sender of a request, and admit only people who may mark. This module does everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hood import UserError
from hood.classroom.marking import page
from hood.classroom.marking.answer_reader import Answer, Reader
from hood.classroom.marking.book import Book, Marker, Shown, StaleError, Wanted
from hood.classroom.marking.share import Share, share_of
from hood.grader.course import open_course

ID = r"([0-9a-f]{32})"
PAGES = re.compile(rf"|marking\.(?:css|js)|question/{ID}")
DATA = re.compile(rf"api/(?:names|answer|undo|blank)/{ID}")
MAX_BODY = 1 << 16  # bytes of a save
MAX_LIST = 1 << 22  # bytes of a list of ids of answers; an id has 36 bytes
MAX_BOXES = 100


@dataclass(frozen=True)
class Visitor:
    """A person who marks, with the data that their server has for the pages.

    Attributes:
        names: names that the sections of ``course.yml`` may use for this person.
        base: the address of these pages, with a slash at its end.
        xsrf: the token that a page must send with each save; the server compares it.
        formgrader: the address below which formgrader shows submissions; empty without formgrader.
    """

    marker: Marker
    names: frozenset[str]
    base: str
    xsrf: str = ""
    formgrader: str = ""


@dataclass(frozen=True)
class Reply:
    """A text to send, with its MIME type."""

    text: str
    kind: str = "text/html"
    status: int = 200


class RefusedError(Exception):
    """A refused request: the message says why, and ``status`` is the HTTP status."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


class Marking:
    """The marking of one course: its gradebook, and the reader of its answers."""

    def __init__(self, root: Path):
        self.root = root
        self.reader = Reader()

    @cached_property
    def book(self) -> Book:
        """The course's gradebook. The course's settings are read only once."""
        return Book(open_course(self.root))

    def reply(self, method: str, path: str, body: bytes, visitor: Visitor) -> Reply:
        """Return the reply to a request, after waiting for the disk, the database and a process.

        Args:
            path: the path below the address of these pages, without a leading slash.

        Raises RefusedError if the request is refused.
        """
        replies: dict[tuple[str, str], Callable[..., Reply]] = {
            ("GET", ""): self._index,
            ("GET", "marking.css"): lambda _: Reply(page.stylesheet(), "text/css"),
            ("GET", "marking.js"): lambda _: Reply(page.script(), "text/javascript"),
            ("GET", "question"): self._question,
            ("GET", "api/names"): lambda _, cell_id: _data(self.book.names(cell_id)),
            ("GET", "api/answer"): self._answer,
            ("PUT", "api/answer"): lambda who, grade: self._give(who, grade, read_save(body)),
            ("POST", "api/undo"): self._take_back,
            ("GET", "api/blank"): lambda _, cell_id: _data(list(self._blank(cell_id))),
            ("POST", "api/blank"): lambda who, cell_id: self._give_blank(who, cell_id, body),
        }
        found = PAGES.fullmatch(path) or DATA.fullmatch(path)
        if not found:
            raise RefusedError(404, "there is no such page")
        given = [found[1]] if found[1] else []
        name = path.rpartition("/")[0] if given else path
        if (method, name) not in replies:
            raise RefusedError(405, f"the method {method} is not allowed here")
        try:
            return replies[method, name](visitor, *given)
        except KeyError as error:
            raise RefusedError(404, "there is no such question or answer") from error
        except UserError as error:
            raise RefusedError(503, str(error)) from error

    def _share(self, visitor: Visitor) -> Share:
        return share_of(self.root, visitor.names)

    def _index(self, visitor: Visitor) -> Reply:
        try:
            share = self._share(visitor)
            questions = self.book.questions(share)
        except UserError as error:
            return Reply(page.problem_page(str(error), visitor.base))
        if questions:  # somebody will soon open a question, which needs the reading process
            self.reader.start()
        return Reply(page.index_page(questions, share, visitor.base))

    def _question(self, visitor: Visitor, cell_id: str) -> Reply:
        share = self._share(visitor)
        sheet = self.book.sheet(cell_id, share)
        texts = [sheet.text, sheet.rubric.intro, *sheet.rubric.boxes]
        rendered = self.reader.rendered(texts)
        return Reply(page.question_page(sheet, share, rendered, visitor.base, visitor.xsrf))

    def _read(self, grade_id: str) -> Answer:
        place = self.book.location(grade_id)
        return self.reader.answer(place.path, place.cell)

    def _answer(self, visitor: Visitor, grade_id: str) -> Reply:
        answer = self._read(grade_id)
        shown = self.book.shown(grade_id, answer)
        submission = self.book.location(grade_id).submission
        notebook = visitor.formgrader and f"{visitor.formgrader}{submission}/"
        return _shown(shown, answer, notebook=notebook)

    def _give(self, visitor: Visitor, grade_id: str, save: tuple[str, Wanted]) -> Reply:
        version, wanted = save
        answer = self._read(grade_id)
        try:
            return _shown(self.book.give(grade_id, version, wanted, visitor.marker, answer))
        except (
            StaleError
        ) as stale:  # the mark that the marker saw has changed; show the current one
            return _shown(stale.now, answer, status=409)
        except ValueError as error:
            raise RefusedError(400, str(error)) from error

    def _blank(self, cell_id: str) -> dict[str, Answer]:
        """Return the blank answers that wait for a mark, keyed by the ids of their grades."""
        found = {grade: self._read(grade) for grade in self.book.waiting(cell_id)}
        return {grade: answer for grade, answer in found.items() if answer.blank}

    def _give_blank(self, visitor: Visitor, cell_id: str, body: bytes) -> Reply:
        confirmed = read_grades(body)
        blank = {grade: one for grade, one in self._blank(cell_id).items() if grade in confirmed}
        return _data(self.book.give_blank(cell_id, blank, visitor.marker))

    def _take_back(self, visitor: Visitor, cell_id: str) -> Reply:
        grade_id = self.book.last(cell_id, visitor.marker)
        if not grade_id:
            raise RefusedError(404, "there is no mark of yours to take back")
        answer = self._read(grade_id)
        try:
            return _shown(self.book.take_back(grade_id, visitor.marker, answer))
        except StaleError as stale:
            return _shown(stale.now, answer, status=409)


def _data(found: Any, status: int = 200) -> Reply:
    return Reply(json.dumps(found), "application/json", status)


def _shown(shown: Shown, answer: Answer | None = None, status: int = 200, **more: Any) -> Reply:
    """Return a reply with a mark, and with the answer if the page does not have the answer yet."""
    if answer:
        more |= {"html": answer.html, "problem": answer.problem, "cut": answer.cut}
    return _data(asdict(shown) | {"state": shown.mark.state} | more, status)


def read_grades(body: bytes) -> set[str]:
    """Return the list of grades' ids in a request. Raises RefusedError for any other body."""
    if len(body) > MAX_LIST:
        raise RefusedError(413, f"expected a list of at most {MAX_LIST:,} bytes")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not (isinstance(said, list) and all(isinstance(one, str) for one in said)):
        raise RefusedError(400, "expected a list of ids, as JSON")
    return set(said)


def read_save(body: bytes) -> tuple[str, Wanted]:
    """Read the version and the mark that a page wants to save.

    Raises RefusedError if the request is too large, incomplete or malformed.
    """
    if len(body) > MAX_BODY:
        raise RefusedError(413, f"expected a save of at most {MAX_BODY:,} bytes")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise RefusedError(400, "expected a save as a JSON object")
    version, score, remark = said.get("version"), said.get("score"), said.get("remark", "")
    boxes = said.get("boxes", [])
    number = isinstance(score, (int, float)) and not isinstance(score, bool)
    if not isinstance(version, str):
        raise RefusedError(
            400, "expected a save with `version`, a string: the version of the mark that was shown"
        )
    if not (score is None or number):
        raise RefusedError(400, "expected `score` to be a number, or null for no mark")
    if not isinstance(remark, str):
        raise RefusedError(400, "expected `remark` to be a string")
    if not (
        isinstance(boxes, list)
        and len(boxes) <= MAX_BOXES
        and all(type(box) is int and 0 <= box < MAX_BOXES for box in boxes)
    ):
        raise RefusedError(400, f"expected `boxes` to be a list of whole numbers below {MAX_BOXES}")
    return version, Wanted(score, remark.strip(), tuple(boxes))
