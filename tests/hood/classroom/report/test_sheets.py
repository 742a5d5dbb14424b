"""The CSV files."""

import csv

import pytest

from hood.classroom.formats.spreadsheet import safe, write_table
from hood.classroom.gradebook.graded import Results
from hood.classroom.gradebook.pseudonyms import LearnerNames
from hood.classroom.report.sheets import learner_rows
from hood.grader.course import open_course
from tests.hood.classroom.report.made_up import LAB, POINTS, Made, make_course, verdict


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t=", " =", "\r\n@", "＝"])
def test_a_text_that_a_spreadsheet_would_run_is_disarmed(sign):
    assert safe(f"{sign}HYPERLINK(1)") == f"'{sign.strip()}HYPERLINK(1)"
    assert (
        safe(f"raised x ;{sign}HYPERLINK(1)").replace(" ", "")
        == f"raisedx;'{sign.strip()}HYPERLINK(1)"
    )


@pytest.mark.parametrize("value", ["Ada", "a-b", "1 + 1", "", -1.5, 2])
def test_every_other_text_is_unchanged(value):
    assert safe(value) == value


def rows(tmp_path, learners, names):
    """The learners' sheet."""
    read = Results(open_course(make_course(tmp_path / "course", learners)), LAB)
    sheet = tmp_path / "learners.csv"
    write_table(sheet, learner_rows(read.read(order=names.order), read.cells, names))
    return list(csv.DictReader(sheet.read_text(encoding="utf-8-sig").splitlines()))


def test_a_row_for_each_learner_and_exercise(tmp_path):
    wrong = verdict("twice", 0.0, misconceptions={"squared": "multiplied by itself."})
    odd = verdict("softmax", 1.0, problem="wrong shape")
    learners = [
        Made("ada", verdicts={"twice": wrong, "softmax": odd}),
        Made("bob", manual={"why": 2}),
    ]
    found = rows(tmp_path, learners, LearnerNames())
    assert len(found) == 8
    by = {(row["student"], row["exercise"]): row for row in found}
    assert by["ada", "twice"] == {
        "student": "ada", "learner": "Ada Example", "exercise": "twice", "points": "0.0",
        "max": "2.0", "status": "wrong", "misconceptions": "squared", "problem": "", "manual": "",
        "seconds_late": "",
    }  # fmt: skip
    assert by["ada", "softmax"]["problem"] == "wrong shape"
    assert by["ada", "softmax"]["status"] == "partly"
    assert (by["ada", "why"]["status"], by["ada", "why"]["manual"]) == ("waiting", "waiting")
    assert (by["bob", "why"]["points"], by["bob", "why"]["manual"]) == ("2.0", "marked")


def test_an_unreadable_answer_neither_waits_for_a_mark_nor_counts_as_missing(tmp_path):
    stub = verdict("twice", 0.0, problem="not attempted yet", status="not attempted")
    unread = Made("ada", verdicts={"twice": stub}, scores=dict.fromkeys(POINTS))
    unread.metadata = {"notes": [{"kind": "unreadable"}]}
    found = rows(tmp_path, [unread], LearnerNames())
    shown = {(row["points"], row["status"], row["problem"], row["manual"]) for row in found}
    assert shown == {("", "could not be read", "", "")}


def test_formulas_of_learners_are_disarmed(tmp_path):
    odd = verdict("twice", 0.0, problem="@SUM(A1)", misconceptions=None)
    [row, *_] = rows(tmp_path, [Made("=cmd", "=1+1", "", {"twice": odd})], LearnerNames())
    assert row["student"] == "'=cmd"
    assert row["learner"] == "'=1+1"
    found = rows(tmp_path / "b", [Made("ada", verdicts={"twice": odd})], LearnerNames())
    assert {r["problem"] for r in found} == {"", "'@SUM(A1)"}
