"""`submit()` after an earlier submission."""

import hashlib
import json

import pytest

from hood.judge import history
from hood.learner import service
from tests.hood.tiny import LAB

STUB = 'raise NotImplementedError("write your answer here")'
BEFORE = {"received": "2026-09-25T18:02:00+00:00", "sha256": "x", "blank": 1, "late": False}
SAID = f"You handed in {LAB} on 25 September 2026, 18:02 (UTC). A new hand-in is 22 days late."


class Asked:
    """The service, and somebody who may answer."""

    def __init__(self, monkeypatch, path):
        self.path, self.sent, self.questions = path, [], []
        self.state = {"name": LAB, "received": None, "again": None}
        self.answer, self.there = "", True
        monkeypatch.setattr(service, "_json", self._json)
        monkeypatch.setattr(service, "_can_ask", lambda: self.there)
        monkeypatch.setattr("builtins.input", self._input)
        monkeypatch.setattr(history, "cells", dict)

    def _json(self, path, body=None, method=None):
        if path == "labs":
            return [self.state, {"name": "other"}]
        self.sent.append(body)
        digest = hashlib.sha256(body).hexdigest()
        said = "You handed in twice: the hand-in of 25 September 2026, 18:02, counts."
        told = {"said": said if self.state["again"] else "", "bytes": len(body)}
        return {**BEFORE, **told, "sha256": digest}

    def _input(self, question):
        self.questions.append(question)
        return self.answer

    def before(self, late=False, **changes):
        self.state |= {"again": {"said": SAID, "late": late}, "received": {**BEFORE, **changes}}

    def submit(self, *sources, **words):
        cells = [{"id": str(n), "source": source} for n, source in enumerate(sources)]
        self.path.write_text(json.dumps({"cells": cells}))
        service.submit(str(self.path), **words)
        return len(self.sent)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    return Asked(monkeypatch, tmp_path / f"{LAB}.ipynb")


def test_the_first_one_needs_no_question(asked, capsys):
    asked.there = False
    assert asked.submit(STUB) == 1
    assert f"{LAB} was handed in on" in capsys.readouterr().out


def test_a_submission_that_cannot_lower_a_mark_needs_no_question(asked, capsys):
    asked.before()
    assert asked.submit("x = 1") == 1
    assert asked.questions == []
    assert "You handed in twice: the hand-in of 25 September" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "sent"), [("", 0), ("n", 0), ("y", 1), ("Yes ", 1)])
@pytest.mark.parametrize("why", ["late", "emptier"])
def test_a_submission_that_may_lower_a_mark_needs_a_confirmation(asked, capsys, answer, sent, why):
    asked.before(late=why == "late")
    asked.answer = answer
    sources = ["x = 1"] if why == "late" else [STUB, "*Your answer goes here.*"]
    assert asked.submit(*sources) == sent
    assert len(asked.questions) == 1
    said = capsys.readouterr().out
    assert SAID in said
    assert ("Empty answers: 2 in this notebook, 1 in the earlier one." in said) == (
        why == "emptier"
    )
    assert ("Nothing was sent" in said) == (not sent)


@pytest.mark.parametrize("late", [True, False])
def test_without_an_answer_nothing_is_submitted_again(asked, capsys, late):
    asked.before(late=late)
    asked.there = False
    assert asked.submit("x = 1") == 0
    said = capsys.readouterr().out
    assert SAID in said
    assert "submit(again=True)" in said
    assert asked.submit("x = 1", again=True) == 1
    assert asked.questions == []


def test_a_request_for_a_regrade_keeps_its_time_and_says_so(asked, capsys):
    asked.before(late=True)
    asked.answer = "y"
    for source, known in (("**Regrade:** it is right", True), ("regrades", False)):
        asked.submit("x = 1", source)
        assert ("the earlier submission's time counts" in capsys.readouterr().out) == known


def test_an_unchanged_submission_is_not_sent_again(asked, capsys):
    asked.submit("x = 1")
    asked.before(late=True, sha256=hashlib.sha256(asked.sent[0]).hexdigest())
    assert asked.submit("x = 1") == 1
    assert "You already handed in this notebook on 25 September 2026" in capsys.readouterr().out
