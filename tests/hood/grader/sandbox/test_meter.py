"""A sandbox takes no memory while it is measured, and is measured before it can fill up."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hood.grader.inside import usage
from tests.hood.grader.sandbox.inmate import Inmate, descendants
from tests.patience import PATIENCE

pytestmark = [pytest.mark.slow(4), pytest.mark.usefixtures("sandbox")]
MIB = 2**20
# Processes that share memory: much more than the limit if the shares are not divided. Each process
# counts in a separate file. One process has stopped itself.
SHARE = """
import os, signal, time
for n in range(6):
    if os.fork() == 0:
        if n == 0: os.kill(os.getpid(), signal.SIGSTOP)
        for count in range(10**9):
            open(f'/tmp/{n}', 'w').write(str(count).zfill(9)); time.sleep(0.001)
print('ready', flush=True)
time.sleep(3600)
"""
HUNDRED = 100 * MIB


@contextmanager
def measured(inmate: Inmate) -> Iterator[tuple[usage.Meter, Path]]:
    """A sandbox's meter that is separate from the zygote's, and the sandbox's files."""
    [inside] = [pid for pid, name in descendants().items() if name.startswith("sleep inf")]
    meter = usage.Meter(inside, ["/tmp"], os.getpid())
    try:
        yield meter, Path(f"/proc/{inside}/root")
    finally:
        meter.close()


def counts(root: Path) -> list[str]:
    return [(root / f"tmp/{n}").read_text() for n in range(1, 6)]


def states(root: Path) -> list[str]:
    """The states of the sandbox's processes except the first, in the order of their numbers."""
    every = [path for path in (root / "proc").iterdir() if path.name.isdigit()]
    every.sort(key=lambda path: int(path.name))
    return [(path / "stat").read_text().rpartition(")")[2].split()[0] for path in every[1:]]


def wait_until(happened) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_processes_are_stopped_while_shared_memory_is_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Inmate() as inmate:
        inmate.begin(SHARE)
        inmate.wait_until_said("ready")
        with measured(inmate) as (meter, root):
            wait_until(lambda: all((root / f"tmp/{n}").exists() for n in range(1, 6)))
            wait_until(lambda: states(root).count("T") == 1)
            own, seen = meter._share, []

            def share(pid: str, pages: usage.Pages) -> int:
                wait_until(lambda: set(states(root)) == {"T"})
                before = counts(root)
                time.sleep(0.1)
                seen.append(counts(root) == before)
                return own(pid, pages)

            monkeypatch.setattr(meter, "_share", share)
            meter.baseline = 0
            together = sum(one.anonymous for one in meter._memory()[1].values())
            assert not meter.exceeds(together * 9 // 10)
            assert seen
            assert all(seen)
            # the processes continue, except the process that had stopped itself
            before = counts(root)
            wait_until(lambda: all(a != b for a, b in zip(before, counts(root), strict=True)))
            # the zygote's own meter may measure at the same moment
            wait_until(lambda: states(root).count("T") == 1)


def test_processes_above_the_limit_never_go_on() -> None:
    with Inmate() as inmate:
        inmate.begin(SHARE)
        inmate.wait_until_said("ready")
        with measured(inmate) as (meter, root):
            meter.baseline = 0
            assert meter.exceeds(50 * MIB)
            wait_until(lambda: set(states(root)) == {"T"})


def test_values_without_effect_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"1": usage.Pages(0, 0), "2": usage.Pages(HUNDRED, 0), "3": usage.Pages(HUNDRED * 9, 0)}
    meter = usage.Meter.__new__(usage.Meter)
    read: list[str] = []
    shares = {"3": HUNDRED * 8, "2": HUNDRED // 2}

    def share(pid: str, own: usage.Pages) -> int:
        read.append(pid)
        return shares[pid]

    monkeypatch.setattr(meter, "_share", share)
    for limit, answer, needed in [
        (HUNDRED * 10, False, []),
        (HUNDRED * 7, True, ["3"]),
        (HUNDRED * 9, False, ["3"]),
        (HUNDRED * 17 // 2, False, ["3", "2"]),
        (HUNDRED * 17 // 2 - 1, True, ["3", "2"]),
    ]:
        read.clear()
        assert meter._sum_exceeds(limit, 0, pages) is answer
        assert read == needed


def test_a_quick_check_comes_before_the_limit_can_be_reached() -> None:
    with Inmate() as inmate, measured(inmate) as (meter, _):
        cores = os.cpu_count() or 1
        assert meter.glance(1 << 40) > 30 / cores
        step = 50 * MIB
        used = next(n for n in range(1000) if meter.glance(n * step))  # in steps
        inmate.run("import numpy; hog = numpy.ones(200 << 20, dtype='u1')")
        assert meter.glance((used + 2) * step) == 0
        left = meter.glance((used + 8) * step)
        most = 5 * step / (usage.FILLS * cores)
        assert usage.SHORTEST_GLANCE <= left <= max(most, usage.SHORTEST_GLANCE)
