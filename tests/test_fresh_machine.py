"""The table of the fresh machines."""

import pytest

from tests.fresh_machine import apt_installed, result


@pytest.mark.parametrize(
    ("status", "text", "says"),
    [
        (0, "2 passed in 1s\n...\n1204 passed, 31 skipped in 800.10s", "1204 passed, 31 skipped"),
        (2, "1 failed, 7 passed in 3s\n", "ended with status 2, 1 failed, 7 passed"),
        (0, "The report: reports/01\n", "ended well"),
        (1, "make: *** [Makefile:9: demo] Error 1\n", "ended with status 1"),
    ],
)
def test_the_last_count_of_a_run_is_its_result(tmp_path, status, text, says):
    log = tmp_path / "log.txt"
    log.write_text(text)
    assert result(status, log) == says


def test_the_packages_that_apt_installed_are_listed(tmp_path):
    history = tmp_path / "var/log/apt/history.log"
    history.parent.mkdir(parents=True)
    assert apt_installed(tmp_path) == []
    history.write_text(
        "Start-Date: 2026-11-02\nCommandline: apt-get install -y bubblewrap g++\nEnd-Date: x\n"
        "Commandline: apt-get -qq install chromium\nCommandline: apt-get remove nano\n"
    )
    assert apt_installed(tmp_path) == ["bubblewrap", "g++", "chromium"]
