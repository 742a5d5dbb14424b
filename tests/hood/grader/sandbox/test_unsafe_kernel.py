"""A kernel without a sandbox, over the sockets of Linux and of macOS."""

import socket

import pytest

from hood.grader.inside import messages
from hood.grader.sandbox.kernel import KernelDied, TimeIsUp, UnsafeKernel
from hood.phase_paths import ROOT, environment_with

pytestmark = pytest.mark.slow(4)


@pytest.fixture(params=[socket.SOCK_SEQPACKET, socket.SOCK_DGRAM])
def kernel(request, tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "KIND", request.param)
    with UnsafeKernel("", tmp_path, environment_with(ROOT)) as found:
        yield found


def test_it_runs_cells_and_their_output_is_complete(kernel):
    text = []
    done = kernel.run(
        "print('x' * 300_000); 1 + 1", 60, heard=lambda said, _: text.append(said["kind"])
    )
    assert done["ename"] is None
    assert text.count("execute_result") == 1
    assert text.count("stream") >= 1


def test_a_cell_is_interrupted_and_the_next_one_runs(kernel):
    kernel.run("x = 1", 60)
    with pytest.raises(TimeIsUp):
        kernel.run("while True: pass", 0.2)  # ten times that on a busy machine
    assert kernel.run("assert x == 1", 60)["ename"] is None


def test_its_end_is_noticed(kernel):
    with pytest.raises(KernelDied):
        kernel.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 60)
    assert not kernel.alive()
