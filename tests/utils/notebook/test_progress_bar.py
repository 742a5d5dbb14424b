"""The progress bar counts, says how long is left, and leaves one tidy line behind."""

from __future__ import annotations

import pytest

from utils.notebook import progress_bar as bars
from utils.notebook.progress_bar import progress_bar, time_left


def test_it_yields_everything_and_prints_one_line(capsys):
    assert list(progress_bar(range(5), "counting")) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().out == "counting: 5 of 5\n"


def test_a_loop_that_is_left_says_how_far_it_came(capsys):
    going = progress_bar("abcd", "letters")
    next(going), next(going)
    going.close()
    assert capsys.readouterr().out == "letters: 1 of 4\n"


@pytest.mark.parametrize(
    ("done", "spent", "told"),
    [(10, 5.0, "45 s left"), (100, 5.0, "0 s left"), (1, 2.0, "3 min 18 s left")],
)
def test_the_time_left_goes_by_the_pace_so_far(done, spent, told):
    assert time_left(done, 100, spent) == told


def test_live_it_is_one_line_that_is_redrawn(monkeypatch, capsys):
    pages, clock = [], iter(range(100))

    class Handle:
        def update(self, data, raw):
            pages.append(data["text/html"])

    def display(data, raw, display_id):
        pages.append(data["text/html"])
        return Handle()

    monkeypatch.setattr(bars, "can_move", lambda: True)
    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(bars.time, "monotonic", lambda: float(next(clock)))
    list(progress_bar("abc", "a < b"))
    assert capsys.readouterr().out == ""
    assert len(pages) == 5  # at first, after each, at the end
    assert "0 of 3" in pages[0]
    assert "width:33.3%" in pages[1]
    assert "1 of 3, 2 s left" in pages[1]
    assert "3 of 3, 4 s taken" in pages[-1]
    assert all("a &lt; b" in page for page in pages)
