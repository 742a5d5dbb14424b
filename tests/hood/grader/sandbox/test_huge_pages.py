"""A zygote's memory is in huge pages for a class, and not for a single notebook."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hood.grader.inside.zygote import FEW
from hood.grader.sandbox.warm_process import warm
from tests.hood.grader.sandbox.inmate import Inmate

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
LINUX = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))

pytestmark = [
    pytest.mark.slow(6),
    pytest.mark.usefixtures("own_zygote", "sandbox"),
    pytest.mark.skipif(
        not SETTING.exists() or "[never]" in SETTING.read_text() or LINUX < (6, 1),
        reason="not run: this machine has no huge pages, or Linux is older than 6.1",
    ),
]


def in_huge_pages() -> int:
    """KiB of the zygote's memory."""
    if os.geteuid() != 0:
        pytest.skip("not run: the zygote's memory is readable by root only")
    text = Path(f"/proc/{warm().process.pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if "AnonHuge" in line)


def start() -> None:
    with Inmate() as inmate:
        assert inmate.value("1 + 1") == 2


def test_huge_pages_are_made_after_a_few_kernels() -> None:
    start()
    before = in_huge_pages()
    with Inmate():  # while a kernel runs, its limits must be watched
        for _ in range(FEW):
            start()
    assert in_huge_pages() == before
    start()
    assert in_huge_pages() > before + 50 * 1024
