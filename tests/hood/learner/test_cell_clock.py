"""The clock of a long-running cell."""

import re

import pytest

from tests.live_kernel import live_kernel, run_cell


@pytest.fixture(scope="module")
def client():
    with live_kernel() as (_, client):
        run_cell(client, "import time, hood.learner.cell_clock as clock; clock.UNNOTICED = 1.0")
        yield client


def pages(shown):
    return [data["text/html"] for data in shown]


def outputs(client, code):
    """Run a cell and return its outputs as a saved notebook has them."""
    kept, places = [], {}

    def take(message):
        kind, content = message["msg_type"], message["content"]
        place = content.get("transient", {}).get("display_id")
        if kind == "update_display_data":
            kept[places[place]] = content["data"]
        elif kind == "clear_output":
            kept.clear()
        elif kind in ("display_data", "stream", "execute_result"):
            places[place] = len(kept)
            kept.append(content.get("data", content.get("text")))

    client.execute_interactive(code, output_hook=take, timeout=120)
    return kept


def test_a_long_cell_has_a_clock_that_disappears_at_its_end(client):
    shown, ended = run_cell(client, "time.sleep(3)")
    first, *between = pages(shown)
    assert outputs(client, "time.sleep(3)") == []
    assert re.search("running … 1 s<", first)
    assert any(re.search("running … 2 s<", page) for page in between)
    assert ended == ""


def test_the_clock_is_above_the_output_and_is_not_saved(client):
    table = "for row in range(3): print(row, flush=True); time.sleep(0.7)"
    place, *rows = outputs(client, table)
    assert place == {}
    assert "".join(rows) == "0\n1\n2\n"


@pytest.mark.parametrize(
    ("code", "saved"),
    [
        ("time.sleep(1.5); print(1)", [{}, "1\n"]),
        ("print(1, flush=True); time.sleep(1.5)", [{}, "1\n"]),
        ("time.sleep(1.5); 1", [{}, {"text/plain": "1"}]),
        ("print(1)", [{}, "1\n"]),
    ],
)
def test_a_cells_output_is_saved_unchanged(client, code, saved):
    assert outputs(client, code) == saved


def test_a_cell_can_replace_what_shows_text(client):
    said = (
        "import sys, io; sys.stdout, kept = io.StringIO(), sys.stdout; print(1); sys.stdout = kept"
    )
    assert outputs(client, said) == []
    assert outputs(client, "print(2)") == [{}, "2\n"]


def test_a_cell_says_what_it_does(client):
    shown, _ = run_cell(client, "clock.say('a < b'); time.sleep(1.5)")
    assert all("a &lt; b" in page for page in pages(shown))
    assert shown
    assert "running" in pages(run_cell(client, "time.sleep(1.5)")[0])[0]


def test_a_cell_that_ends_at_once_shows_nothing(client):
    assert run_cell(client, "1 + 1; None") == ([], "")
    assert outputs(client, "x = 1") == []


def test_a_cell_that_raises_keeps_its_error_and_its_clock_ends(client):
    shown, ended = run_cell(client, "time.sleep(1.5); 1 / 0")
    assert pages(shown)
    assert "ZeroDivisionError" in ended
    assert run_cell(client, "import threading; print(threading.active_count())")[1] == ""


def test_words_to_hear_are_in_the_clocks_place_and_are_not_saved(client):
    said = "print(1, flush=True); clock.announce('a < b')"
    shown, _ = run_cell(client, said)
    assert any('data-said="a &lt; b"' in data.get("text/html", "") for data in shown)
    assert outputs(client, said) == [{}, "1\n"]


def test_a_progress_bar_takes_the_place_of_the_clock(client):
    run_cell(client, "from utils.notebook.progress_bar import progress_bar")
    shown, _ = run_cell(client, "for _ in progress_bar(range(3), 'trying'): time.sleep(0.7)")
    assert all("trying" in page for page in pages(shown))
    assert pages(shown)


def test_without_a_waiting_user_there_is_no_clock(monkeypatch):
    monkeypatch.setenv("OPEN_THE_HOOD_BUILD", "1")
    with live_kernel() as (_, client):
        run_cell(client, "import time, hood.learner.cell_clock as clock; clock.UNNOTICED = 0.1")
        assert run_cell(client, "time.sleep(0.5)") == ([], "")
