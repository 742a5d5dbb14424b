"""The progress display of a grading run."""

import io

from rich.console import Console
from rich.progress import Progress

from hood.classroom.recording import summary
from hood.classroom.recording.summary import RunProgress


def said(monkeypatch, terminal, between=0.0):
    monkeypatch.setattr(summary, "SECONDS_BETWEEN_LINES", between)
    console = Console(file=io.StringIO(), width=120, force_terminal=terminal)
    with RunProgress(console, "hw", 4) as run:
        run.count(graded=False)
        run.count(graded=True)
        run.count(graded=True, failed=True)
    return console.file.getvalue()


def test_each_line_in_a_log_has_progress_speed_and_failures(monkeypatch):
    lines = said(monkeypatch, terminal=False).splitlines()
    assert lines[0] == "hw: 1 of 4, 0 a minute"
    assert lines[1].startswith("hw: 2 of 4, ")
    assert lines[1].endswith("s left")
    assert lines[2].endswith("1 failed")


def test_a_log_is_not_flooded(monkeypatch):
    assert said(monkeypatch, terminal=False, between=60.0) == ""


def test_a_terminal_has_a_bar(monkeypatch):
    text = said(monkeypatch, terminal=True)
    assert "3/4" in text
    assert "1 failed" in text


def test_the_time_left_grows_while_a_submission_hangs():
    clock = [0.0]
    bar = Progress(get_time=lambda: clock[0])
    bar.add_task("hw", total=3, completed=1, graded=1, failed=0)
    left = []
    for clock[0] in (10.0, 600.0):
        left.append(summary._Pace().render(bar.tasks[0]).plain)
    assert left == ["6 a minute 20 s left", "0 a minute 20 min 0 s left"]
