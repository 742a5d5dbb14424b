"""Measure what tests cost, and print a table by folder, with the labs' own tests by lab."""

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
    """The cost of one folder's tests.

    Attributes:
        tests: the number of tests.
        cpu: CPU seconds, including those of child processes that have ended.
        wall: seconds by the clock, summed over all workers.
    """

    tests: int = 0
    cpu: float = 0.0
    wall: float = 0.0


class Costs:
    """A plugin of pytest: the workers measure each test, and the controller adds up.

    Args:
        shown: whether to print the table at the end of the run.
    """

    def __init__(self, shown: bool):
        self._shown = shown
        self._since = _cpu()
        self._costs: dict[str, Cost] = defaultdict(Cost)

    def pytest_runtest_logstart(self) -> None:
        """Restart the measurement, so that work between tests, such as collection, is left out."""
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
        cost.cpu += dict(report.user_properties).get(CPU, 0.0)  # none where a worker died
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
    """Return the folder of a test, followed by the lab if the test belongs to one lab."""
    file, _, test = nodeid.partition("::")
    lab, colon, _ = test.partition("[")[2].partition(": ")
    folder = str(PurePosixPath(file).parent)
    return f"{folder} {lab}" if colon and lab[:2].isdigit() else folder


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
