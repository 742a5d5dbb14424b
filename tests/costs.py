"""What tests cost: a table by folder at the end of a run, with the labs' own tests by lab."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

CPU = "cpu seconds"


@dataclass
class Cost:
    """Of one folder's tests.

    Attributes:
        cpu: seconds of processors, with those of child processes that have ended.
        wall: seconds by the clock, over all workers.
    """

    tests: int = 0
    cpu: float = 0.0
    wall: float = 0.0


class Costs:
    """A plugin of pytest: workers measure each test, the controller adds up.

    Args:
        shown: whether to print the table.
    """

    def __init__(self, shown: bool):
        self._shown = shown
        self._since = _cpu()
        self._costs: dict[str, Cost] = defaultdict(Cost)

    def pytest_runtest_logstart(self) -> None:
        """What was used between tests, such as for collecting them, is no test's cost."""
        self._since = _cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = _cpu()
        report.user_properties = [*report.user_properties, (CPU, now - self._since)]
        self._since = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cost = self._costs[folder_of(report.nodeid)]
        cost.tests += report.when == "call"
        cost.cpu += dict(report.user_properties)[CPU]
        cost.wall += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._shown:
            return
        terminalreporter.section("what it cost")
        terminalreporter.write_line(f"{'folder':40}{'tests':>7}{'CPU s':>8}{'wall s':>8}")
        total = Cost(
            sum(c.tests for c in self._costs.values()),
            sum(c.cpu for c in self._costs.values()),
            sum(c.wall for c in self._costs.values()),
        )
        for name, cost in [*sorted(self._costs.items()), ("all", total)]:
            line = f"{name:40}{cost.tests:7}{cost.cpu:8.1f}{cost.wall:8.1f}"
            terminalreporter.write_line(line)


def folder_of(nodeid: str) -> str:
    """The folder of a test; with the lab behind it where the test is that of one lab."""
    file, _, test = nodeid.partition("::")
    lab, colon, _ = test.partition("[")[2].partition(": ")
    folder = str(PurePosixPath(file).parent)
    return f"{folder} {lab}" if colon and lab[:2].isdigit() else folder


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
