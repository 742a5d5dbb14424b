"""`grade` records one of several hand-ins, by the rules of the class."""

import os
import shutil
import signal
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook

from hood.classroom.gradebook import graded_hand_ins
from hood.classroom.hand_ins.store import STAMP, HandIn, HandIns
from hood.classroom.recording import contest as contest_module
from hood.classroom.recording.writer import Writer
from hood.classroom.report import command as report
from hood.classroom.results.counted_marks import counts_of
from hood.grader.batch.grading import grade
from hood.grader.batch.job import given_up
from hood.grader.submission.notebook import MAX_BYTES
from tests.hood.classroom.recording.running import run
from tests.hood.classroom.recording.small import HW, Here, answered, make_small
from tests.hood.tiny import write

DUE = datetime(2026, 9, 25, 18, tzinfo=UTC)
RULES = """
late: {{per_day: 10%, last_day: 7{free}}}
{top}
labs: {{hw: {{due: 2026-09-25 18:00{lab}}}}}
{more}
"""


@pytest.fixture
def course(tmp_path):
    made = make_small(tmp_path / "course")
    rules(made)
    return made


@pytest.fixture
def graded(monkeypatch):
    """Grade in this process, and return the graded answers."""
    seen = []

    class Watched(Here):
        def run(self, jobs):
            for job in jobs:
                seen.append(job.submission.timestamp)
                yield job, grade(job)

    monkeypatch.setattr("hood.classroom.recording.command._executor", lambda *_: Watched())
    return seen


def rules(course, top="", lab="", free="", more=""):
    text = RULES.format(top=top, lab=lab, free=free, more=more)
    (course.root / "course.yml").write_text(text)


def hand_in(course, days, answer, why="because", *, asks="", files=None):
    """Replace the earlier hand-in, as a step of nbgrader does."""
    store, folder = HandIns(course), course.root / "submitted" / "ann" / HW
    store.keep(None, "ann", HW)
    shutil.rmtree(folder, ignore_errors=True)
    nb = answered(answer, why)
    if asks:
        nb.cells.insert(2, new_markdown_cell(asks))
    write(nb, folder / f"{HW}.ipynb")
    for name, data in (files or {}).items():
        write(data, folder / name)
    at = DUE + timedelta(days=days) - timedelta(minutes=1)
    (folder / "timestamp.txt").write_text(at.strftime(STAMP))
    return at


def recorded(course):
    """Return the time of the recorded hand-in, in days after the due date, and its points."""
    with Gradebook(course.directory.db_url) as gradebook:
        found = gradebook.find_submission(HW, "ann")
        late = found.timestamp.replace(tzinfo=UTC) - DUE + timedelta(minutes=1)
        return late / timedelta(days=1), found.score


def counts(course):
    return counts_of(course, HW)["ann"].counts


def mark(course, score, cell="why"):
    with Gradebook(course.directory.db_url) as gradebook:
        found = gradebook.find_grade(cell, HW, HW, "ann")
        found.manual_score, found.needs_manual_grade = score, False
        gradebook.db.commit()


def manual(course, cell="why"):
    with Gradebook(course.directory.db_url) as gradebook:
        found = gradebook.find_grade(cell, HW, HW, "ann")
        return found.manual_score, found.needs_manual_grade


@pytest.mark.parametrize("before", [True, False], ids=["graded between", "graded at the end"])
def test_a_late_untouched_notebook_leaves_the_hand_in_that_came_in_time(course, graded, before):
    hand_in(course, 0, "score 2")
    if before:
        assert run(course)[0] == 0
    hand_in(course, 22, "score 0")
    status, said = run(course)
    assert status == 0
    assert recorded(course) == (0, 2.0)
    assert "ann: the hand-in of 25 September 2026, 17:59 counts" in said
    assert len(graded) == 1  # a hand-in that cannot count is not graded
    assert run(course)[0] == 0
    assert len(graded) == 1


RULE = {
    "": (0, 2.0),
    "hand_ins: best": (0, 2.0),
    "hand_ins: last in time": (0, 2.0),
    "hand_ins: last": (22, 0.0),
}


@pytest.mark.parametrize("rule", RULE)
@pytest.mark.parametrize("where", ["top", "lab"])
def test_the_rule_of_the_class_or_of_the_lab_decides(course, graded, rule, where):
    if where == "top":
        rules(course, top=rule)
    else:
        rules(course, top="hand_ins: last", lab=f", {rule or 'hand_ins: best'}")
    hand_in(course, 0, "score 2")
    hand_in(course, 22, "score 0")
    assert run(course)[0] == 0
    assert recorded(course) == RULE[rule]


# The hand-ins (day after the due date: points), and the hand-in that counts (day, points).
BEST = {
    "the late one counts more": ([(0, "1"), (2, "2")], (2, 2.0), 1.6),
    "the one in time counts more": ([(0, "1.7"), (2, "2")], (0, 1.7), 1.7),
    "equal: the later": ([(0, "1.6"), (2, "2")], (2, 2.0), 1.6),
    "in time twice: the later": ([(-2, "2"), (0, "1")], (0, 1.0), 1.0),
    "equally late: the later": ([(1.5, "2"), (2, "1")], (2, 1.0), 0.8),
    "of three levels the middle": ([(0, "1"), (1, "2"), (5, "2")], (1, 2.0), 1.8),
    "all too late: the last": ([(9, "2"), (10, "1")], (10, 1.0), 0.0),
    "nothing in time": ([(3, "2"), (9, "2")], (3, 2.0), 1.4),
}


@pytest.mark.parametrize("kind", BEST)
@pytest.mark.parametrize("between", [True, False])
def test_the_one_that_counts_most_is_recorded(course, graded, kind, between):
    came, expected, points = BEST[kind]
    for days, score in came:
        hand_in(course, days, f"score {score}")
        if between:
            run(course)
    assert run(course)[0] == 0
    assert recorded(course) == expected
    assert counts(course) == pytest.approx(points)
    done = len(graded)
    assert "recorded before, skipped   1" in run(course)[1]
    assert len(graded) == done
    assert run(course, "--regrade")[0] == 0
    assert recorded(course) == expected


def test_a_later_hand_in_does_not_waste_free_days(course, graded):
    rules(course, free=", free_days: 3")
    hand_in(course, 0, "score 2")
    hand_in(course, 2, "score 2", why="because of that")
    assert run(course)[0] == 0
    assert recorded(course) == (0, 2.0)


def with_another_lab(course, answer):
    """Add a lab that is due a day earlier, and ann's answer to it, 3 days late."""
    source = course.root / "source"
    shutil.copytree(source / HW, source / "hv")
    (source / "hv" / f"{HW}.ipynb").rename(source / "hv" / "hv.ipynb")
    rules(course, free=", free_days: 3", lab="}, hv: {due: 2026-09-24 18:00")
    folder = course.root / "submitted" / "ann" / "hv"
    write(answered(answer), folder / "hv.ipynb")
    (folder / "timestamp.txt").write_text((DUE + timedelta(days=1.9)).strftime(STAMP))


def test_points_decide_which_lab_gets_the_free_days_when_a_hand_in_is_chosen(course, graded):
    with_another_lab(course, "score 0")  # a free day saves nothing there
    hand_in(course, 0, "score 1.7")
    hand_in(course, 3, "score 2")
    assert run(course, labs=["hv", HW])[0] == 0
    assert recorded(course) == (3, 2.0)
    assert counts(course) == 2


def test_points_of_another_lab_in_the_run_decide_which_hand_in_counts(course, graded):
    with_another_lab(course, "score 2")  # due first, so that its free days stay there
    hand_in(course, 0, "score 1.7")
    hand_in(course, 3, "score 2")
    status, said = run(course, labs=[HW, "hv"])
    assert status == 0
    assert recorded(course) == (0, 1.7)
    assert counts(course) == 1.7
    assert said.count("graded                     1") == 2
    before = len(graded)
    assert "counts now" not in run(course, labs=[HW, "hv"])[1]
    assert len(graded) == before


def test_an_extension_lets_another_hand_in_count_and_is_reported(course, graded):
    hand_in(course, 0, "score 1")
    run(course)
    hand_in(course, 22, "score 2")
    run(course)
    assert recorded(course) == (0, 1.0)
    rules(course, more="extensions: [{who: ann, lab: hw, due: 2026-10-18}]")
    said = run(course)[1]
    assert recorded(course) == (22, 2.0)
    assert (
        "ann: the hand-in of 17 October 2026, 17:59 counts now, in place of the hand-in of "
        "25 September 2026, 17:59"
    ) in said
    rules(course)
    said = run(course)[1]
    assert recorded(course) == (0, 1.0)
    assert (
        "ann: the hand-in of 25 September 2026, 17:59 counts now, in place of the hand-in of "
        "17 October 2026, 17:59"
    ) in said
    done = len(graded)
    assert "ann: the hand-in of 25 September 2026, 17:59 counts\n" in run(course)[1]
    assert len(graded) == done


def test_a_mark_that_a_person_gave_stays_with_its_hand_in(course, graded):
    hand_in(course, 0, "score 1", why="a good reason")
    run(course)
    mark(course, 3.0)
    hand_in(course, 1, "score 2", why="another reason")
    run(course)
    assert recorded(course)[0] == 1  # 0.9 * (2 + 3) is more than 1 + 3
    assert manual(course) == (3.0, True)  # and flagged for manual grading
    mark(course, 0.5)
    run(course)
    assert recorded(course)[0] == 0  # 0.9 * 2.5 is less than the 4 that it had
    assert manual(course) == (3.0, False)
    assert counts(course) == pytest.approx(4.0)
    assert "skipped   1" in run(course)[1]


def test_a_mark_by_hand_is_not_copied_to_an_empty_answer(course, graded):
    hand_in(course, 0, "score 1.5", why="a good reason")
    run(course)
    mark(course, 3.0)
    hand_in(course, 1, "score 2", why="")
    run(course)
    assert recorded(course)[0] == 0
    assert manual(course) == (3.0, False)


def test_an_empty_answer_in_place_of_a_marked_one_has_no_mark(course, graded):
    """The mark is not lost: it stays with its hand-in."""
    hand_in(course, -1, "score 2", why="a good reason")
    run(course)
    mark(course, 3.0)
    hand_in(course, 0, "score 1", why="")  # both are in time, so the last one counts
    run(course)
    assert recorded(course) == (0, 1.0)
    assert manual(course)[0] is None
    rules(course, lab=", late: {per_day: 100%}")
    text = (course.root / "course.yml").read_text()
    (course.root / "course.yml").write_text(text.replace("2026-09-25 18", "2026-09-24 18"))
    run(course)
    assert recorded(course)[0] == -1
    assert manual(course) == (3.0, False)


ASKS = "Regrade: my answer is right"


@pytest.mark.parametrize("rule", ["best", "last", "last in time"])
def test_a_request_for_a_regrade_keeps_the_time_of_the_work(course, graded, rule):
    rules(course, top=f"hand_ins: {rule}")
    hand_in(course, 0, "score 1")
    run(course)
    hand_in(course, 14, "score 1", asks=ASKS)
    assert run(course)[0] == 0
    assert recorded(course) == (0, 1.0)
    path = course.folder("autograded", "ann", HW) / f"{HW}.ipynb"
    assert ASKS in path.read_text()
    report.run(SimpleNamespace(lab=HW, out=None, hide_names=False), course.root)
    told = (course.root / "reports" / HW / "counts.csv").read_text(encoding="utf-8-sig")
    assert "so the time of the earlier hand-in counts." in told
    done = len(graded)
    run(course)
    assert len(graded) == done
    assert ASKS in path.read_text()
    run(course, "--regrade")
    assert recorded(course) == (0, 1.0)
    assert ASKS in path.read_text()


def test_a_late_request_with_other_changes_does_not_count(course, graded):
    hand_in(course, 0, "score 1")
    run(course)
    hand_in(course, 14, "score 2", asks=ASKS)
    run(course)
    assert recorded(course) == (0, 1.0)
    done = len(graded)
    run(course)
    assert len(graded) == done


def test_files_beside_a_notebook_belong_to_its_hand_in(course, graded):
    hand_in(course, 0, "score 2", files={"data.csv": b"1"})
    hand_in(course, 22, "score 0", files={"data.csv": b"2", "more.csv": b"3"})
    run(course)
    folder = course.folder("autograded", "ann", HW)
    assert (folder / "data.csv").read_bytes() == b"1"
    assert not (folder / "more.csv").exists()


def test_without_a_due_date_or_rules_the_newest_counts_and_nothing_is_kept(course, graded):
    for text in ("", "labs: {hw: {}}", None):
        path = course.root / "course.yml"
        path.write_text(text) if text is not None else path.unlink()
        hand_in(course, 0, "score 2")
        hand_in(course, 22, "score 0")
        run(course)
        assert recorded(course) == (22, 0.0)


def test_if_one_hand_in_cannot_be_graded_nothing_is_decided(course, graded):
    hand_in(course, 0, "score 1")
    run(course)
    hand_in(course, 1, "raise")
    status, said = run(course)
    assert status == 1
    assert "the earlier grade stays" in said
    assert recorded(course) == (0, 1.0)


def test_a_hand_in_with_too_much_work_costs_no_mark_of_another(course, monkeypatch):
    class Bounded(Here):
        def run(self, jobs):
            for job in jobs:
                heavy = any(b"toil" in data for data in job.submission.notebooks.values())
                yield job, given_up(job, "it takes too much work") if heavy else grade(job)

    monkeypatch.setattr("hood.classroom.recording.command._executor", lambda *_: Bounded())
    hand_in(course, 0, "score 1")
    hand_in(course, 1, "toil")
    assert run(course)[0] == 0
    assert recorded(course) == (0, 1.0)
    assert "skipped   1" in run(course)[1]


def test_an_unreadable_hand_in_is_reported_before_a_choice(course, graded, monkeypatch):
    def closed(*_):
        raise PermissionError(13, "Permission denied", "received/hw")

    hand_in(course, 0, "score 1")
    monkeypatch.setattr(contest_module.HandIns, "of", closed)
    with pytest.raises(Exception, match="can't be read by this account"):
        run(course)


def killed(course, monkeypatch, owner, name):
    """Run the command in a process that is killed when it would call a function."""
    child = os.fork()
    if not child:
        monkeypatch.setattr(owner, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        run(course)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


KILLS = {
    "before it decides": (contest_module.Choice, "decide"),
    "before it replaces files": (Writer, "record"),
    "with the new files, before the gradebook": (Writer, "_write"),
    "within the transaction": (graded_hand_ins, "stand"),
}


@pytest.mark.parametrize("where", KILLS)
def test_after_a_kill_the_next_run_records_the_hand_in_that_counts(
    course, graded, monkeypatch, where
):
    hand_in(course, 0, "score 1", why="a good reason")
    run(course)
    mark(course, 0.5)
    hand_in(course, 1, "score 2", why="another reason")
    killed(course, monkeypatch, *KILLS[where])
    assert recorded(course) == (0, 1.5)
    assert manual(course) == (0.5, False)
    assert run(course)[0] == 0
    assert recorded(course) == (1, 2.5)
    assert manual(course) == (0.5, True)
    rules(course, top="hand_ins: last in time")
    assert run(course)[0] == 0
    assert recorded(course) == (0, 1.5)
    assert manual(course) == (0.5, False)


def test_a_change_of_the_rule_can_be_undone_without_a_trace(course, graded):
    hand_in(course, 0, "score 2")
    hand_in(course, 22, "score 1")
    for rule, expected in (("best", (0, 2.0)), ("last", (22, 1.0)), ("best", (0, 2.0))):
        rules(course, top=f"hand_ins: {rule}")
        assert run(course)[0] == 0
        assert recorded(course) == expected


def test_a_due_date_set_after_grading_restores_the_hand_in_that_came_in_time(course, graded):
    (course.root / "course.yml").unlink()
    hand_in(course, 0, "score 2")
    hand_in(course, 22, "score 0")
    run(course)
    assert recorded(course) == (22, 0.0)
    rules(course)
    status, said = run(course)
    assert status == 0
    assert recorded(course) == (0, 2.0)
    assert "ann: the hand-in of 25 September 2026, 17:59 counts" in said


def test_two_learners_have_separate_hand_ins(course, graded):
    for student in ("bo", "cy"):
        write(answered("score 1"), course.root / "submitted" / student / HW / f"{HW}.ipynb")
    hand_in(course, 0, "score 2")
    hand_in(course, 22, "score 0")
    status, said = run(course)
    assert status == 0
    assert "graded                     3" in said
    assert recorded(course) == (0, 2.0)
    with Gradebook(course.directory.db_url) as gradebook:
        assert {gradebook.find_submission(HW, who).score for who in ("bo", "cy")} == {1.0}


def test_a_preview_compares_with_the_recorded_hand_in(course, graded):
    hand_in(course, 0, "score 1")
    hand_in(course, 2, "score 1")
    run(course)
    status, said = run(course, "--preview")
    assert status == 0
    assert recorded(course) == (0, 1.0)
    assert "in the whole lab" in said


@pytest.mark.parametrize("in_time", [True, False], ids=["after another", "alone"])
def test_filling_the_storage_removes_no_time(course, graded, in_time):
    """A file as of zip_collect: the LMS's time, and the most bytes that a learner may have."""
    if in_time:
        hand_in(course, 0, "score 1")
        run(course)
    hand_in(course, 3, "score 2")
    folder = course.root / "submitted" / "ann" / HW
    with (folder / "a.csv").open("wb") as file:
        file.truncate(MAX_BYTES - (folder / f"{HW}.ipynb").stat().st_size - 10)
    for _ in range(2):
        assert run(course)[0] == 0
        assert recorded(course) == (3, 2.0)
    assert [one.at is None for one in HandIns(course).of("ann", HW)] == [False] * (1 + in_time)


@pytest.mark.parametrize("often", [1, 99], ids=["once", "always"])
def test_a_hand_in_that_removes_another_during_reading_stops_no_grading(
    course, graded, monkeypatch, often
):
    """The service removes an old hand-in when a learner has reached the limit."""
    hand_in(course, 0, "score 1")
    hand_in(course, 3, "score 2")
    shutil.copytree(course.root / "submitted" / "ann", course.root / "submitted" / "zoe")
    folder, times = HandIn.folder, []

    def gone(one, lab):
        if one.path.parent.name == "ann" and len(times) < often:
            times.append(one)
            raise FileNotFoundError(2, "No such file", str(one.path))
        return folder(one, lab)

    monkeypatch.setattr(HandIn, "folder", gone)
    status, said = run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.find_submission(HW, "zoe").score == 2
    assert (status == 0) == (often == 1)
    assert ("handed in again during the grading" in said) == (often > 1)
