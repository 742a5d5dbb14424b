"""The output of nbgrader's commands: errors at once, everything else once at the end."""

import io
import logging
import shutil
from types import SimpleNamespace

import pytest
from traitlets.config import Config

from hood.grader.nbgrader import gathered_log
from hood.grader.nbgrader.gathered_log import OURS, Gathered, gather_log, in_order
from tests.hood.tiny import LAB, make_course, nbgrader, released, solved, source_notebook, write


def record(text, level=logging.INFO, path="/lib/nbgrader/collect.py", line=1):
    made = {"msg": text, "levelno": level, "levelname": logging.getLevelName(level)}
    return logging.makeLogRecord(made | {"pathname": path, "lineno": line})


def said(*records):
    return [one.getMessage() for one in in_order(list(records))]


OWN = f"{OURS}exchange.py"


def test_similar_lines_of_nbgrader_are_merged_and_ours_come_last_and_once():
    class_of_60 = [record(f"Collecting submission: s{number} lab") for number in range(60)]
    ours = [record("eve: passed over", logging.WARNING, OWN, line) for line in (1, 2)]
    lines = said(
        class_of_60[0],
        record("ours to know", logging.INFO, OWN),
        *ours,
        *class_of_60[1:],
        record("cheating?", logging.WARNING, line=7),
        record("Processing 1", line=9),
        record("Processing 1", line=9),
    )
    assert lines == [
        "Collecting submission: … (60 of this kind)",
        "Processing 1 (2 times)",
        "cheating?",
        "ours to know",
        "eve: passed over (2 times)",
    ]


def test_the_first_of_nbgraders_warnings_and_all_of_ours_are_shown():
    theirs = [record(f"file {number} skipped", logging.WARNING) for number in range(60)]
    ours = [record(f"s{number} has no time", logging.WARNING, OWN) for number in range(60)]
    lines = said(*theirs, *ours)
    assert lines[:4] == [
        *(f"file {number} skipped" for number in range(3)),
        "... and 57 more of this kind; --log-level=INFO shows each",
    ]
    assert lines[4:] == [f"s{number} has no time" for number in range(60)]


def test_an_error_is_shown_at_once():
    handler = logging.StreamHandler(io.StringIO())
    gathered = Gathered(handler)
    handler.addFilter(gathered)
    for one in (record("first"), record("it failed", logging.ERROR), record("last")):
        handler.handle(one)
    assert handler.stream.getvalue() == "it failed\n"
    gathered.show()
    assert handler.stream.getvalue() == "it failed\nfirst\nlast\n"


@pytest.mark.parametrize(
    ("name", "config", "gathers"),
    [
        ("nbgrader-zip-collect", {}, True),
        ("nbgrader-collect", {"Application": {"log_level": "INFO"}}, False),
        ("nbgrader-collect", {"Application": {"log_level": "DEBUG"}}, False),
        ("nbgrader-list", {}, False),
    ],
)
def test_the_full_log_is_shown_on_request(name, config, gathers, monkeypatch):
    class Application(SimpleNamespace):
        pass

    monkeypatch.setattr(gathered_log.atexit, "register", lambda _: None)
    log = logging.getLogger("a test of gathering")
    log.handlers = [logging.StreamHandler(io.StringIO())]
    gather_log(Application(name=name, config=Config(config), log=log))
    assert bool(log.handlers[0].filters) is gathers


@pytest.mark.slow(15)
def test_collecting_a_class_of_twenty_prints_a_few_lines_ending_with_ours(tmp_path):
    course = make_course(tmp_path / "course")
    write(source_notebook(), course / "source" / LAB / f"{LAB}.ipynb")
    mine = solved(released(source_notebook()))
    exchange = course / "exchange" / "open-the-hood"
    (exchange / "outbound").mkdir(parents=True)
    for number in range(20):
        name = f"s{number}+{LAB}+2026-01-01 10:00:00 UTC+x"
        write(mine, exchange / "inbound" / name / f"{LAB}.ipynb")
    (exchange / "inbound" / f"=1+{LAB}+2026-01-01 10:00:00 UTC+x").mkdir()
    words = ["collect", LAB, "--ExchangeCollect.check_owner=False"]
    done = nbgrader(course, *words)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) <= 6, done.stderr
    assert "Collecting submission: … (20 of this kind)" in done.stderr
    assert "was skipped: an id can't have '='" in lines[-1]
    shutil.rmtree(course / "submitted")
    done = nbgrader(course, *words, "--log-level=INFO")
    assert done.stderr.count("Collecting submission: s") == 20
