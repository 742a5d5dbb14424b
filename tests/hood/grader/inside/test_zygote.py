"""If a start fails half-way, the zygote leaves no process and no descriptor."""

import errno
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from hood.grader.inside import linux, zygote
from hood.grader.inside.bubblewrap import SandboxLost
from hood.grader.inside.course_sandbox import CourseSandbox
from hood.grader.inside.zygote import Zygote
from tests.hood.grader.sandbox.inmate import descriptors


@pytest.fixture
def buries():
    """Let this process wait for the orphans below it, as the zygote does."""
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    yield
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture
def ours(monkeypatch):
    """A zygote that has imported nothing."""
    monkeypatch.setattr(Zygote, "_import", lambda *_: None)
    found = Zygote(None, -1, {"cgroup": None}, CourseSandbox())
    found.forks = -10
    return found


@pytest.mark.parametrize("word", [b"no JSON\n", b"\xff\n", b"{\n", b""])
def test_a_kernel_that_reports_no_json_is_ended(word, ours, buries, monkeypatch, tmp_path):
    kernels = tmp_path / "kernel"

    def joins(report, *_):
        kernel = os.fork()
        if kernel == 0:
            os.close(report)
            signal.alarm(60)  # if nobody ends it
            signal.pause()
        kernels.write_text(str(kernel))
        os.write(report, json.dumps({"kernel": kernel}).encode() + b"\n" + word)
        os._exit(0)

    monkeypatch.setattr(ours, "_join", joins)
    before = descriptors()
    with pytest.raises(SandboxLost):
        ours._fork(None, {})
    assert descriptors() <= before
    assert not Path("/proc", kernels.read_text()).exists()


class Half:
    """A sandbox, or its meter, that records whether it was closed."""

    init = kernel = 0
    closed = False

    def keepers(self):
        return []

    def close(self):
        self.closed = True


def test_a_sandbox_without_a_free_descriptor_is_ended(ours, monkeypatch):
    def refuses(_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    built, meter = Half(), Half()
    monkeypatch.setattr(zygote.bubblewrap, "build", lambda *_: built)
    monkeypatch.setattr(zygote.usage, "Meter", lambda *_: meter)
    monkeypatch.setattr(zygote.os, "dup", refuses)
    with subprocess.Popen(["sleep", "60"]) as kernel:
        monkeypatch.setattr(ours, "_fork", lambda *_: kernel.pid)
        with pytest.raises(OSError, match="Too many open files"):
            ours._start({}, None, 0, 0, 0)
        kernel.kill()
        os.close(built.kernel_fd)
    assert (built.closed, meter.closed) == (True, True)
