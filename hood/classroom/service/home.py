"""Make the home page, for people who open the address of the service."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from hood import UserError
from hood.classroom.formats.page_style import render
from hood.classroom.marking import origin, page
from hood.classroom.marking.routes import Reply
from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.sentences import moment
from hood.classroom.service.inbox import Inbox
from hood.classroom.service.lab_state import lab_states, requests_in
from hood.classroom.service.login import Login, refused, sent
from hood.classroom.service.people import Person
from hood.grader.course import Course
from hood.grader.submission.names import id_problem, nfc


def home_page(
    course: Course,
    rules: ClassRules | None,
    inbox: Inbox,
    person: Person,
    labs: list[str],
    shared: bool = False,
) -> dict[str, Any]:
    """Return the values for the template of a person's home page.

    A learner sees the state of the labs (:func:`lab_states`). A teacher sees how many learners have
    handed in each lab, and the requests for a regrade that wait.

    Args:
        labs: the names of the labs that the person may see.
        shared: whether a learner's page could read this page. If so, this page shows no text from
            learners.
    """
    zone = rules.zone if rules else ZoneInfo("UTC")

    def when(at: datetime) -> str:
        return f"{moment(at.astimezone(zone))} ({zone.key})"

    about = {"title": rules.course.title if rules else "", "person": person, "when": when}
    if not person.teaches:
        states = lab_states(course, rules, inbox, person.name, labs)
        return about | {"labs": states}
    due = {lab: rules.labs[lab].due for lab in labs if rules and lab in rules.labs}
    return about | {
        "labs": labs,
        "due": {lab: at.replace(tzinfo=zone) for lab, at in due.items() if at},
        "closed": origin.SHARED if shared else "",
        "handed_in": {lab: len(course.students("submitted", lab)) for lab in labs},
        "waiting": [
            (lab, graded, request)
            for lab in ([] if shared else labs)
            for graded, request in requests_in(course, lab)
            if not request.answered
        ],
        "root": course.root,
    }


def home_routes(login: Login, prefix: str, shown: Callable[[Person], dict[str, Any]]) -> APIRouter:
    """Return the route of the home page, ``prefix/``.

    Args:
        prefix: the path below which a proxy serves the service.
        shown: returns the values from :func:`home_page` for a person. It may raise UserError.
    """
    router = APIRouter(include_in_schema=False)

    @router.get(f"{prefix}/")
    def home(request: Request) -> Response:
        person = login.person(request)
        if person is None:
            return login.begin(request, "")
        if problem := id_problem(nfc(person.name)):  # folders have the learner's id
            return refused(403, f"your name can't be a learner's id: {problem}")
        try:
            about = shown(person)
        except UserError as error:
            details = "; the course's instructor can read the details"
            why = f": {error}" if person.teaches else details
            return refused(503, f"this course's settings have an error{why}")
        return sent(Reply(render(page.TEMPLATES, "home.html.j2", base=login.marking, **about)))

    if prefix:

        @router.get(prefix)
        def without_slash() -> Response:
            return RedirectResponse(f"{prefix}/", 308)

    return router
