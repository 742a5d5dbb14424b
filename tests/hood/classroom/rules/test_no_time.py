"""All places agree on how many submissions have no time, and on how they count."""

import re
from datetime import datetime
from types import SimpleNamespace

import pytest

from hood.classroom.recording import command as grading
from hood.classroom.report import command as report
from hood.classroom.results import command
from hood.classroom.rules.reading import FILE, read_course_file
from hood.classroom.rules.sentences import no_time_sentence
from tests.hood.classroom.recording.running import run
from tests.hood.classroom.recording.small import HW, Here, make_small
from tests.hood.classroom.recording.small import hand_in as submit
from tests.hood.classroom.rules.book import hand_in, make_book

SCORES = {"first": 4.0, "second": 6.0, "third": 5.0, "why": 5.0}
RULES = "labs: {01: {due: 2026-10-02}, 02: {}}\nlate: {per_day: 10%}\n"
SAID = "2 of 3 submissions have no time, so they count as in time; the other has a time"


@pytest.mark.parametrize(
    ("without", "of", "said"),
    [
        (1, 1, "The submission has no time, so it counts as in time. To set a time, write"),
        (2, 2, "2 of 2 submissions have no time, so they count as in time. To set a time, write"),
        (
            1,
            2,
            "1 of 2 submissions has no time, so it counts as in time; the other has a time.",
        ),
        (
            30,
            60,
            "30 of 60 submissions have no time, so they count as in time; the others have a time.",
        ),
        (0, 60, ""),
    ],
)
def test_the_sentence_fits_every_number(tmp_path, without, of, said):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text(RULES)
    file = read_course_file(course.root)
    found = no_time_sentence(file, "01_one", without, of)
    assert found.startswith(said)
    assert bool(found) is bool(said)
    assert no_time_sentence(file, "02_two", without, of) == ""  # this lab has no due date
    assert no_time_sentence(None, "01_one", without, of) == ""


def test_report_and_check_have_the_sentence(tmp_path, capsys):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text(RULES)
    for student, came in (("ana", datetime(2026, 10, 5)), ("ben", None), ("cy", None)):
        hand_in(course, student, "01_one", SCORES, came)
        hand_in(course, student, "02_two", {"fourth": 1.0, "fifth": 1.0, "because": 1.0}, None)
    assert command.run(SimpleNamespace(action="check"), course.root) == 1
    asked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("? ")]
    assert len(asked) == 1
    assert asked[0].startswith(f"? 01_one: {SAID}")
    assert report.run(SimpleNamespace(lab="01", out=None, hide_names=False), course.root) == 0
    page = (course.root / "reports" / "01_one" / "index.html").read_text()
    assert SAID in re.sub(r"\s+", " ", page)
    assert report.run(SimpleNamespace(lab="02", out=None, hide_names=False), course.root) == 0
    assert "no time" not in (course.root / "reports" / "02_two" / "index.html").read_text()


def test_grade_has_the_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "_executor", lambda *_: Here())
    course = make_small(tmp_path / "course")
    for student in ("ana", "ben", "cy"):
        submit(course, student, "score 1")
    time = course.folder("submitted", "ana", HW) / "timestamp.txt"
    time.write_text("2026-10-05 10:00:00 UTC")
    assert "no time" not in run(course)[1]  # without rules nothing is late
    (course.root / FILE).write_text(f"labs: {{{HW}: {{due: 2026-10-02}}}}\n")
    status, out = run(course)
    assert status == 0
    assert SAID in re.sub(r"\s+", " ", out)
