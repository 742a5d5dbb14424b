"""The service conforms to its API description for all requests."""

import re

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from hood.classroom.service.app import make_app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.people import OfFile
from hood.grader.course import open_course
from tests.hood.classroom.service.serving import make_served

pytestmark = pytest.mark.slow(7)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """The application without running workers, so that jobs wait."""
    root = make_served(tmp_path_factory.mktemp("schema") / "course")
    people = OfFile(root, ["marta"])
    dispatcher = Dispatcher(open_course(root), workers=0)
    made = make_app(dispatcher, people)
    made.state.tokens = [people.token(name) for name in ("ana", "marta")]
    return made


def test_every_response_is_as_described(app):
    described = schemathesis.openapi.from_asgi("/openapi.json", app)
    for found in described.get_all_operations():
        asks(app, found.ok())


def asks(app, operation):
    """Send hypothesis's requests for an operation, as a learner and as an instructor."""

    @settings(
        max_examples=20,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case):
        if operation.path == "/labs/{lab}/grading":
            case.path_parameters["lab"] = "98_other"  # nothing is graded here
        case.query.pop("wait", None)
        for token in app.state.tokens:
            case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)

    ask()


def test_every_operation_is_listed(app):
    with TestClient(app) as client:
        paths = client.get("/openapi.json").json()["paths"]
    asked = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert asked == {
        "POST /jobs",
        "GET /jobs",
        "GET /jobs/{job}",
        "GET /labs",
        "GET /labs/{lab}/notebook",
        "PUT /labs/{lab}/notebook",
        "GET /labs/{lab}/feedback",
        "POST /labs/{lab}/grading",
        "GET /labs/{lab}/requests",
        "GET /requests",
        "GET /grading",
        "GET /queue",
    }
    assert all(re.fullmatch(r"/[a-z]+(/\{\w+\}(/[a-z]+)?)?", path) for path in paths)
