"""One worker judges an answer before the service starts serving."""

import pytest

from hood import UserError
from hood.classroom.service.dispatcher import Dispatcher
from hood.grader.batch.job import Result
from hood.grader.batch.pool import Workers
from hood.grader.course import open_course
from tests.hood.classroom.service.serving import make_served


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory):
    root = make_served(tmp_path_factory.mktemp("dispatcher") / "course")
    return Dispatcher(open_course(root), workers=1)


@pytest.mark.parametrize("kind", ["hopeless", "retryable"])
def test_if_nothing_can_be_judged_the_service_does_not_start(dispatcher, monkeypatch, kind):
    result = Result((), "there is no sandbox here", **{kind: True})
    monkeypatch.setattr(Workers, "grade", lambda *_: result)
    with pytest.raises(UserError, match="nothing can be judged here: there is no sandbox here"):
        dispatcher.prepare()


def test_a_missing_answer_does_not_prevent_the_start(dispatcher, monkeypatch):
    asked = []
    monkeypatch.setattr(Workers, "grade", lambda _, job: asked.append(job) or Result(()))
    dispatcher.prepare()
    assert [len(job.submission.notebooks) for job in asked] == [1]
