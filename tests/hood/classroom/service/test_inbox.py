"""Submissions to the service; test_kill.py tests kills during one."""

import secrets

import pytest

from hood.classroom.hand_ins import store as store_module
from hood.classroom.hand_ins.store import TooManyError
from hood.classroom.service.inbox import Inbox
from tests.hood.classroom.recording.small import make_small
from tests.hood.tiny import LAB


def test_submissions_per_day_are_limited_and_the_refusal_names_the_next_time(tmp_path, monkeypatch):
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


def test_a_learners_bytes_per_day_are_limited_over_all_labs(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "MOST_BYTES_A_DAY", 3_000_000)
    inbox = Inbox(make_small(tmp_path))

    def take(learner, lab, size):
        path = inbox.arriving()
        path.write_bytes(secrets.token_bytes(size))
        return inbox.take(None, learner, lab, path)

    take("ana[1]", LAB, 1_000_000)
    take("ana[1]", "other", 1_000_000)
    with pytest.raises(TooManyError, match=r"1.5 MB you would have .* 3.5 MB today") as refused:
        take("ana[1]", "third", 1_500_000)
    assert "clear the notebook's outputs" in str(refused.value)
    assert take("ana[1]", "third", 900_000).lab == "third"
    assert take("bo", LAB, 2_000_000).lab == LAB
    kept = sum(path.stat().st_size for path in tmp_path.glob("received/*/ana*/*"))
    assert kept <= 3_000_000
