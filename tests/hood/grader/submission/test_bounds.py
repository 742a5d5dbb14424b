"""Limits on the work on a learner's data in a process that must survive."""

import asyncio
import contextlib
import json
import signal

import pytest

from hood.grader.submission.bounds import TooMuchWork, alarmed


def toil():
    """Work for ever, and catch every Exception."""
    while True:
        with contextlib.suppress(Exception):
            json.loads("[" * 100)


async def toil_in_a_loop():
    toil()


@pytest.mark.parametrize("work", [toil, lambda: asyncio.run(toil_in_a_loop())])
def test_work_without_end_is_stopped_though_errors_are_caught(work):
    with pytest.raises(TooMuchWork), alarmed(seconds=0.5):
        work()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_memory_without_end_is_stopped():
    with pytest.raises(TooMuchWork), alarmed(memory=100 << 20):
        bytes(1 << 34)  # more than the process may have free from before
    assert len(bytes(200 << 20)) == 200 << 20, "the limit is for what is done inside"


def test_what_is_done_in_time_is_left_alone():
    before = signal.getsignal(signal.SIGPROF)
    with alarmed():
        data = [bytes(1 << 20)]
    assert len(data) == 1
    assert signal.getsignal(signal.SIGPROF) == before
