"""Hand-ins through the exchange and the service: each is kept, and none replaces another."""

import csv
import json
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta

import nbformat
import pytest
from nbgrader.api import Gradebook

from hood.classroom.hand_ins import store as store_module
from hood.classroom.hand_ins.store import FILE_STAMP
from hood.classroom.service.inbox import Inbox
from hood.grader.course import open_course
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.recording.running import grade
from tests.hood.tiny import (
    LAB,
    environment,
    make_course,
    nbgrader,
    released,
    solved,
    source_notebook,
    write,
)

IN_TIME, LATE = datetime(2026, 9, 25, 18, 2), datetime(2026, 10, 17, 9, 30)
RULES = """
late: {per_day: 10%, last_day: 7}
labs: {99_tiny: {due: 2026-09-25 23:59, grace: 30 min}}
"""


def rules(course, more=""):
    write(f"{RULES}{more}".encode(), course / "course.yml")


def hand_in(course, student, when, nb, **files):
    """Put a submission into the exchange as `nbgrader submit` does."""
    time = when.strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    folder = course / "exchange" / "open-the-hood" / "inbound" / f"{student}+{LAB}+{time}"
    write(nb, folder / f"{LAB}.ipynb")
    write(time.encode(), folder / "timestamp.txt")
    for name, data in files.items():
        write(data, folder / f"{name}.csv")
    return folder


def recorded_by_grading(course):
    """Grade the class; return ana's points, and the time that counts."""
    done = grade(course)
    assert done.returncode == 0, done.stdout + done.stderr
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        found = gradebook.find_submission(LAB, "ana")
        return found.score, found.timestamp


def kept(course, student):
    folder = course / "received" / LAB / student
    names = [one.name.removesuffix(".ipynb") for one in sorted(folder.iterdir())]
    return [datetime.strptime(name, FILE_STAMP) for name in names]


def collected(course, student):
    text = (course / "submitted" / student / LAB / "timestamp.txt").read_text()
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f UTC")


@pytest.fixture
def course(tmp_path, monkeypatch):
    made = make_course(tmp_path / "course")
    write(source_notebook(), made / "source" / LAB / f"{LAB}.ipynb")
    write(released(source_notebook()), made / "release" / LAB / f"{LAB}.ipynb")
    rules(made)
    Gradebook(f"sqlite:///{made / 'gradebook.db'}").close()
    monkeypatch.setenv("OPEN_THE_HOOD_EXCHANGE", environment(made)["OPEN_THE_HOOD_EXCHANGE"])
    return made


def step(course, *words):
    done = nbgrader(course, *words)
    assert done.returncode == 0, done.stderr
    return done.stderr


UNTOUCHED = released(source_notebook())
RIGHT = solved(UNTOUCHED)


@pytest.mark.slow(120)
def test_an_untouched_notebook_that_comes_22_days_late_leaves_all_points(course):
    hand_in(course, "ana", IN_TIME, RIGHT)
    hand_in(course, "ana", LATE, UNTOUCHED)
    hand_in(course, "bo", IN_TIME, RIGHT)
    step(course, "collect", LAB)
    assert collected(course, "ana") == LATE
    assert kept(course, "ana") == [IN_TIME]
    done = grade(course)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ana: the hand-in of 25 September 2026, 18:02 counts" in done.stdout
    path = course / "autograded" / "ana" / LAB / f"{LAB}.ipynb"

    def points():
        with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
            return {who: gradebook.find_submission(LAB, who).score for who in ("ana", "bo")}

    assert points() == {"ana": 7.0, "bo": 7.0}
    before = path.read_bytes()

    inbox = Inbox(open_course(course))  # the service, now
    for learner in ("ana", "bo"):
        arrived = inbox.arriving()
        arrived.write_bytes(json.dumps(UNTOUCHED).encode())
        receipt = inbox.take(None, learner, LAB, arrived)
    assert collected(course, "bo") == receipt.received.replace(tzinfo=None)
    done = grade(course)
    assert done.returncode == 0, done.stdout + done.stderr
    assert points() == {"ana": 7.0, "bo": 7.0}
    assert path.read_bytes() == before  # nobody's code ran again

    command = [sys.executable, "-m", "hood", "report", LAB]
    subprocess.run(command, cwd=course, env=environment(course), check=True)
    with (course / "reports" / LAB / "counts.csv").open(encoding="utf-8-sig") as file:
        [row] = [row for row in csv.DictReader(file) if row["student"] == "bo"]
    assert "25 September 2026, 18:02, counts" in row["why"]
    page = words((course / "reports" / LAB / "index.html").read_text())
    assert "for 2 of them an earlier hand-in counts" in page

    step(course, "generate_feedback", LAB)
    page = words((course / "feedback" / "bo" / LAB / f"{LAB}.html").read_text())
    assert "handed in twice: the hand-in of 25 September 2026, 18:02, counts" in page
    assert "would have counted 0" in page
    page = words((course / "feedback" / "ana" / LAB / f"{LAB}.html").read_text())
    assert "handed in three times: the hand-in of 25 September 2026, 18:02, counts" in page
    assert "came 22 days late and would have counted 0" in page


@pytest.mark.slow(60)
def test_before_duedate_uses_each_learners_own_date_with_its_grace(course):
    rules(course, "extensions: [{who: ext, lab: 99_tiny, due: 2026-10-18}]")
    grace, after = datetime(2026, 9, 26, 0, 29), datetime(2026, 9, 26, 0, 29, 1)
    for student in ("ana", "ext", "none"):
        for when in (IN_TIME, grace, after, LATE)[2 * (student == "none") :]:
            hand_in(course, student, when, RIGHT, data=student.encode())
    step(course, "collect", LAB, "--before-duedate")
    assert {who: collected(course, who) for who in ("ana", "ext", "none")} == {
        "ana": grace,
        "ext": LATE,
        "none": LATE,
    }
    assert kept(course, "ana") == [IN_TIME]
    step(course, "collect", LAB, "--update")
    assert collected(course, "ana") == LATE
    assert kept(course, "ana") == [IN_TIME, grace, after]
    folder = course / "received" / LAB / "ana" / IN_TIME.strftime(FILE_STAMP)
    assert {one.name for one in folder.iterdir()} == {
        "data.csv",
        "timestamp.txt",
        f"{LAB}.ipynb",
    }
    step(course, "collect", LAB, "--before-duedate")  # the earlier hand-in is kept, too
    assert collected(course, "ana") == grace
    assert kept(course, "ana") == [IN_TIME, grace, after, LATE]
    write(b"labs: {99_tiny: {}}", course / "course.yml")
    said = step(course, "collect", LAB, "--before-duedate")
    assert "99_tiny has no due date, so the newest submissions are collected" in said
    assert collected(course, "ana") == LATE


@pytest.mark.slow(60)
def test_if_the_newest_cannot_be_collected_an_older_one_counts(course):
    hand_in(course, "ana", IN_TIME, RIGHT)
    newest = hand_in(course, "ana", LATE, RIGHT)
    shutil.rmtree(newest)
    os.mkfifo(newest)
    said = step(course, "collect", LAB)
    assert "ana: nothing is collected" in said
    assert kept(course, "ana") == [IN_TIME]
    assert recorded_by_grading(course) == (7.0, IN_TIME)


@pytest.mark.slow(60)
def test_a_thousand_hand_ins_keep_the_one_that_counts_and_fill_no_disk(course):
    right, untouched = (nbformat.writes(nb).encode() for nb in (RIGHT, UNTOUCHED))
    for number in range(1000):
        hand_in(course, "eve", IN_TIME - timedelta(minutes=number), right)
        hand_in(course, "eve", LATE + timedelta(minutes=number), untouched)
    step(course, "collect", LAB)
    times = kept(course, "eve")
    assert len(times) < store_module.MOST
    assert IN_TIME in times
    done = grade(course)
    assert done.returncode == 0, done.stdout + done.stderr
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert gradebook.find_submission(LAB, "eve").score == 7.0
    for number in range(8):
        when = IN_TIME - timedelta(days=1, minutes=number)
        hand_in(course, "max", when, RIGHT, data=bytes([number]) * 45_000_000)
    hand_in(course, "max", LATE, UNTOUCHED)
    step(course, "collect", LAB)
    size = sum(one.stat().st_size for one in course.glob("received/*/max/*/*"))
    assert size <= store_module.MOST_BYTES
    assert IN_TIME - timedelta(days=1) in kept(course, "max")


@pytest.mark.slow(60)
def test_hand_ins_replaced_by_zip_collect_are_kept(course):
    folder = course / "submitted" / "ana" / LAB
    write(RIGHT, folder / f"{LAB}.ipynb")
    write(b"2026-09-25 18:02:00 UTC", folder / "timestamp.txt")
    write(b"1", folder / "data.csv")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.add_student("ana")
    place = course / "downloaded" / LAB / "archive"
    name = f"ana_assign_2026-10-17-09-30-00_{LAB}.ipynb"
    write(UNTOUCHED, place / name)
    pattern = r".*/(?P<student_id>\w+)_assign_(?P<timestamp>[0-9-]+)_(?P<file_id>.*)"
    words = (LAB, "--force", f"--FileNameCollectorPlugin.named_regexp={pattern}")
    step(course, "zip_collect", *words)
    assert not (folder / "data.csv").exists()
    assert kept(course, "ana") == [IN_TIME]
    assert list((course / "received" / LAB / "ana").glob("*/data.csv"))
    assert recorded_by_grading(course) == (7.0, IN_TIME)


@pytest.mark.slow(60)
def test_an_impossible_year_does_not_stop_collecting(course):
    for second in (58, 59):
        hand_in(course, "ana", datetime(9999, 12, 31, 23, 59, second), source_notebook())
    for when in (IN_TIME, LATE):
        hand_in(course, "ana", when, solved(source_notebook()))
        hand_in(course, "bo", when, solved(source_notebook()))
    said = step(course, "collect", LAB)
    for who in ("ana", "bo"):
        assert kept(course, who) == [IN_TIME]
        assert collected(course, who) == LATE
    assert said.count("was skipped") == 2
