"""The zygote's reason for a killed kernel."""

from __future__ import annotations

import json
import os
import signal
import socket
from types import SimpleNamespace

import pytest

from hood.grader.inside import usage
from hood.grader.inside.zygote import RunningSandbox, Zygote
from hood.grader.sandbox import SandboxedKernel, ZygoteDied

KILLED = -signal.SIGKILL


@pytest.mark.parametrize(
    ("status", "by_its_group", "killed_since", "said"),
    [
        (KILLED, None, 0, "died"),  # by its own code or by a user: it is run again
        (KILLED, None, 1, "exhausted"),  # the machine ran out of memory
        (KILLED, False, 1, "exhausted"),
        (KILLED, True, 1, "memory"),  # the sandbox ran out of memory
        (1, None, 1, "died"),  # it ended by itself, and another process was killed
        (-signal.SIGSEGV, None, 1, "died"),
    ],
)
def test_memory_is_the_learners_fault_only_if_the_sandbox_ran_out(
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    by_its_group: bool | None,
    killed_since: int,
    said: str,
) -> None:
    before = usage.killed_for_memory()
    monkeypatch.setattr(usage, "killed_for_memory", lambda: before + killed_since)
    lease, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    group = SimpleNamespace(exceeded=lambda: by_its_group, close=lambda: None)
    entry = RunningSandbox(
        SimpleNamespace(close=lambda meanwhile: status),
        theirs,
        SimpleNamespace(close=lambda: None),
        limits={},
        own_time=os.dup(lease.fileno()),
        begun=0,
        group=None if by_its_group is None else group,
        killed=before,
    )
    zygote = Zygote.__new__(Zygote)
    zygote.running = [entry]
    zygote._end(entry, "died")
    with lease:
        assert json.loads(lease.recv(1000)) == {"ended": said, "status": status}


def test_a_machine_out_of_memory_is_not_the_learners_fault() -> None:
    kernel = SandboxedKernel()
    kernel._ended = "exhausted"
    with pytest.raises(ZygoteDied, match="ran out of memory.*fewer workers"):
        kernel.why_stopped()
    assert not kernel.died
