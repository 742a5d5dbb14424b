"""An endless answer, in a notebook that a user is watching."""

import os
import signal
import threading
import time

import pytest

from hood.judge import watched
from hood.judge.checks.exercise import Check, case
from hood.judge.report import VerdictReport
from hood.judge.verdicts.judge import judge
from hood.judge.watched import WatchedConnection
from hood.verdict import Cause

doubled = Check("doubled", parts={"small": 1, "large": 2}, reads="r")
doubled.reference(lambda k: 2 * k)
doubled.cases(lambda draw: [case("small", 1), case("small", 2), case("large", 100)])


def judged(answer):
    return judge(doubled, answer, "s", connect=WatchedConnection)


def busy(k):
    while k == 2:
        pass
    return 2 * k


BRIEF = "returned no answer in time"


def asleep(k):
    while k == 2:
        time.sleep(0.01)
    return 2 * k


@pytest.mark.parametrize(
    ("answer", "seconds", "waits", "limit"),
    [(busy, 0.3, 3600, "0.3 s"), (asleep, 0.1, 1.0, "1 s by the clock")],
    ids=["its own time", "by the clock"],
)
def test_an_endless_call_is_stopped(answer, seconds, waits, limit, monkeypatch):
    monkeypatch.setattr(watched, "CALL_SECONDS", seconds)
    monkeypatch.setattr(watched, "CALL_WAITS", waits)
    verdict = judged(answer)
    assert [part.cause for part in verdict.parts] == [Cause.TIMEOUT, Cause.TIMEOUT]
    said = f"(an endless loop, or code that is too slow; the limit is {limit} for a call)"
    assert said in verdict.parts[0].problem
    assert [part.brief for part in VerdictReport(verdict, "07").parts()] == [BRIEF, BRIEF]
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_call_that_only_waits_for_a_busy_machine_goes_on(monkeypatch):
    """Other programs' time is not the answer's time; a sleep simulates it."""
    monkeypatch.setattr(watched, "CALL_SECONDS", 0.2)
    assert judged(lambda k: time.sleep(1.5 if k == 2 else 0) or 2 * k).earned == 3


def test_each_call_has_its_whole_time(monkeypatch):
    monkeypatch.setattr(watched, "CALL_SECONDS", 0.4)

    def slow(k):
        end = time.process_time() + 0.25
        while time.process_time() < end:
            pass
        return 2 * k

    assert judged(slow).earned == 3


@pytest.mark.parametrize("answer", [busy, asleep])
def test_a_users_interrupt_stops_it(answer):
    stop = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    stop.start()
    with pytest.raises(KeyboardInterrupt):
        judged(answer)
    stop.join()
