"""What a learner hands in to the service; test_kill.py asks what a kill leaves of it."""

import secrets

import pytest

from grader.service.inbox import Inbox
from grader.submission import hand_ins as store_module
from grader.submission.hand_ins import TooManyError
from tests.grader.batch.small import make_small
from tests.grader.tiny import LAB


def test_a_learner_hands_in_so_often_a_day_and_hears_when_the_next_one_begins(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(store_module, "MOST_A_DAY", 2)
    inbox = Inbox(make_small(tmp_path))

    def take(learner):
        path = inbox.arriving()
        path.write_bytes(secrets.token_bytes(8))
        return inbox.take(None, learner, LAB, path)

    take("ana")
    take("ana")
    with pytest.raises(TooManyError, match="2 times today") as refused:
        take("ana")
    assert 0 < refused.value.seconds <= 24 * 3600
    assert take("bo").lab == LAB
