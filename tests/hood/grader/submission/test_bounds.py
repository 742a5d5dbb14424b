"""Limits on work with a learner's data, in a process that must survive."""

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
def test_endless_work_is_stopped_even_if_it_catches_errors(work):
    with pytest.raises(TooMuchWork), alarmed(seconds=0.5):
        work()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_endless_memory_is_stopped():
    with pytest.raises(TooMuchWork), alarmed(memory=100 << 20):
        bytes(1 << 34)  # more than the process can have free already
    assert len(bytes(200 << 20)) == 200 << 20, "the limit is for what is done inside"


def test_work_within_the_limits_is_not_disturbed():
    before = signal.getsignal(signal.SIGPROF)
    with alarmed():
        data = [bytes(1 << 20)]
    assert len(data) == 1
    assert signal.getsignal(signal.SIGPROF) == before
