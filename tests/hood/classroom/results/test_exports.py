"""The files for learning platforms: their learners, scales and headings."""

import csv
import json
from datetime import datetime
from types import SimpleNamespace

import pytest

from hood import UserError
from hood.classroom.formats.spreadsheet import safe
from hood.classroom.results import command
from hood.classroom.results.exports import Kind
from hood.classroom.rules.reading import FILE
from tests.hood.classroom.rules.book import LABS, hand_in, make_book

LAB = "02_two"  # 20 points; a machine without a GPU asks for 16 of them
ROSTER = "Login,Mail,Number\nana,ana@example.org,7\nben,,8\nkai,kai@example.org,9\n"
CAME = datetime(2026, 10, 1)


@pytest.fixture
def course(tmp_path):
    made = make_book(tmp_path / "course")
    (made.root / "class.csv").write_text(ROSTER)
    whole = dict(LABS[LAB])
    hand_in(
        made, "ana", LAB, whole | {"fourth": 6.0}, CAME, {"fourth": 4.0}
    )  # all points that were asked for
    hand_in(made, "ben", LAB, whole | {"fourth": 8.0, "fifth": 0.0}, CAME)
    hand_in(made, "kai", LAB, whole | {"because": None}, CAME)
    return made


def rows(course, kind, rules, labs=()):
    (course.root / FILE).write_text(rules)
    out = course.root / "out.csv"
    asked = SimpleNamespace(action="export", lab=list(labs), to=kind, out=out)
    assert command.run(asked, course.root) == 0
    with out.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def doubts(course, rules, capsys):
    (course.root / FILE).write_text(rules)
    capsys.readouterr()
    command.run(SimpleNamespace(action="check"), course.root)
    said = capsys.readouterr().out
    return said, [line[2:] for line in said.splitlines() if line.startswith("? ")]


def test_all_askable_points_are_the_full_score_of_the_lab(course, capsys):
    """16 of 16 counts as much as 20 of 20, because a platform has one maximum for all learners."""
    heads, *lines = rows(course, Kind.MOODLE, "labs: {two: {}}")
    assert (heads, lines) == (["Username", LAB], [["ana", "20"], ["ben", "16"], ["kai", "-"]])
    assert (
        "02_two: the scores of 1 learner are scaled to the lab's 20 points, because some checks "
        "could not run."
    ) in capsys.readouterr().out
    heads, possible, *lines = rows(course, Kind.CANVAS, "labs: {two: {}}")
    assert possible == ["Points Possible", "", "", "", "", "20"]
    assert [line[-1] for line in lines] == ["20", "16", ""]
    heads, *lines = rows(course, Kind.NBGRADER, "labs: {two: {}}")
    found = [dict(zip(heads, line, strict=True)) for line in lines]
    own = [(one["raw_score"], one["counts"], one["counts_of"]) for one in found]
    assert own == [("16", "16", "16"), ("16", "16", "20"), ("12", "", "20")]


@pytest.mark.parametrize(
    ("rules", "possible", "scores"),
    [
        ("withheld: count", "20", ["16", "16"]),
        ("withheld: credit", "20", ["20", "16"]),
        ("drop: [fifth], points: {fourth: 20}", "28", ["28", "24"]),
        ("bonus: [because]", "12", ["24", "16"]),  # 16 of 8, and 16 of 12
        ("drop: [fourth, fifth], bonus: [because]", "0", ["8", "8"]),
    ],
)
def test_possible_points_are_the_labs_in_any_order_of_learners(course, rules, possible, scores):
    _, second, *lines = rows(course, Kind.CANVAS, f"labs: {{two: {{{rules}}}}}")
    assert second[-1] == possible
    assert [line[-1] for line in lines][:2] == scores


def test_a_learner_without_askable_points_has_no_score(course, capsys):
    hand_in(course, "ana", LAB, dict(LABS[LAB]) | {"fourth": 0.0}, CAME, {"fourth": 10.0})
    lines = rows(course, Kind.MOODLE, "labs: {two: {drop: [fifth, because]}}")[1:]
    assert lines == [["ana", "-"], ["ben", "8"], ["kai", "10"]]
    assert "02_two: no score for ana, because no check could run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("roster", "moodle", "heading", "users"),
    [
        ("", "", "Username", ["ana", "ben", "kai"]),
        ("", "identify: Nickname", "Nickname", ["ana", "ben", "kai"]),
        ("id: Login", "", "Login", ["ana", "ben", "kai"]),
        ("id: Login", "identify: Number", "Number", ["7", "8", "9"]),
        ("id: Login, moodle: Number", "", "Number", ["7", "8", "9"]),
        ("id: Login, moodle: Number", "identify: ID number", "ID number", ["7", "8", "9"]),
        ("id: Login", "identify: Mail", "Mail", ["ana@example.org", "kai@example.org"]),
    ],
)
def test_moodles_heading_names_the_kind_of_id_below_it(
    course, roster, moodle, heading, users, capsys
):
    roster = f"roster: {{file: class.csv, {roster}}}" if roster else ""
    rules = f"labs: {{two: {{}}}}\n{roster}\nexport: {{moodle: {{{moodle}}}}}"
    heads, *lines = rows(course, Kind.MOODLE, rules)
    assert (heads[0], [line[0] for line in lines]) == (heading, users)
    if len(users) < 3:
        assert "Left out, because the cell below 'Mail' in the roster is empty: ben." in (
            capsys.readouterr().out
        )
        said, asked = doubts(course, rules, capsys)
        assert asked == [
            "ben has an empty cell below 'Mail' in the roster, so an export for Moodle leaves "
            "this learner out"
        ]
        assert "An export for Moodle identifies learners by the column 'Mail'." in said


def test_a_column_missing_in_the_roster_is_refused(course, capsys):
    rules = (
        "labs: {two: {}}\nroster: {file: class.csv, id: Login}\n"
        "export: {moodle: {identify: Email address}}"
    )
    said = (
        "course.yml: export.moodle.identify: expected the column of class.csv that identifies "
        "users in Moodle, got 'Email address'; the file has: 'Login', 'Mail', 'Number'"
    )
    with pytest.raises(UserError) as raised:
        rows(course, Kind.MOODLE, rules)
    assert str(raised.value) == said
    assert doubts(course, rules, capsys)[1] == [said]
    assert len(rows(course, Kind.CANVAS, rules)) == 5  # without a request for it


def test_check_asks_about_labs_worth_nothing_and_counts_the_verdicts(course, capsys):
    rules = (
        "labs:\n  one: {points: {first: 0, second: 0}, drop: [third], bonus: [why]}\n"
        "  two: {feedback: {attempts: 5}}\n  three: {feedback: {attempts: 0}}\n"
    )
    said, asked = doubts(course, rules, capsys)
    assert asked == [
        "01_one counts 0 points: every exercise is in `drop`, is a bonus, or counts 0",
        "03_three: with `attempts: 0` the service gives no verdicts",
    ]
    assert "  The service gives 5 verdicts per exercise and day.\n" in said
    assert "  The service gives no verdicts per exercise and day.\n" in said


def test_the_total_has_a_column_on_request(course, capsys):
    rules = "labs: {two: {}}\ntotal: {out_of: 50}\n"
    heads, *lines = rows(course, Kind.MOODLE, rules)
    assert (heads[1:], lines[0][1:], lines[2][1:]) == ([LAB, "Total"], ["20", "50"], ["-", "-"])
    assert len(rows(course, Kind.MOODLE, rules, [LAB])[0]) == 2  # only one lab was requested
    capsys.readouterr()
    assert len(rows(course, Kind.CANVAS, rules)[0]) == 6
    assert "The file has no column for the total. To add the column" in capsys.readouterr().out
    rules += "export: {canvas: {total: Term (99)}, moodle: {total: Term}}\n"
    heads, possible, *lines = rows(course, Kind.CANVAS, rules)
    assert (heads[-1], possible[-1]) == ("Term (99)", "50")
    assert [line[-1] for line in lines] == ["50", "40", ""]
    assert rows(course, Kind.MOODLE, rules)[0][-1] == "Term"
    with pytest.raises(UserError, match="the total includes all labs: leave out the names of labs"):
        rows(course, Kind.TOTAL, rules, [LAB])


def test_if_a_mark_is_missing_gradescope_gets_the_points_so_far_and_both_say_so(course, capsys):
    (course.root / FILE).write_text("roster: {file: class.csv, id: Login}\nlabs: {02: {}}")
    asked = SimpleNamespace(action="export", lab=[], to=Kind.GRADESCOPE, out=None)
    assert command.run(asked, course.root) == 0
    results = json.loads((course.root / "gradescope" / LAB / "kai.json").read_text())
    assert not results["extra_data"]["final"]
    assert "points count so far." in results["output"]
    said = capsys.readouterr().out
    assert (
        "1 of these scores is not final: a mark is missing, so the file has the points so far"
        in said
    )
    asked.to = Kind.CANVAS
    assert command.run(asked, course.root) == 0
    assert "the points so far" not in capsys.readouterr().out


def test_before_a_lab_is_collected_it_counts_no_0(course):
    rules = "labs: {one: {due: 2026-10-02}, two: {}}\ntotal: {}\n"
    heads, *lines = rows(course, Kind.TOTAL, rules)
    found = [dict(zip(heads, line, strict=True)) for line in lines]
    assert [(one["01_one"], one["so_far"], one["total"]) for one in found][0] == ("", "100", "")
    assert found[0]["why"] == "Not in the total yet: `01_one` (not collected yet)."
    course.folder("submitted", "ben", "01_one").mkdir(parents=True)
    heads, *lines = rows(course, Kind.TOTAL, rules)
    found = [dict(zip(heads, line, strict=True)) for line in lines]
    assert (found[0]["so_far"], found[0]["total"], found[0]["final"]) == ("50", "50", "yes")
    assert found[1]["why"] == "Not in the total yet: `01_one` (handed in, and not graded yet)."


def test_a_single_sign_is_no_formula():
    assert safe("-") == "-"
    assert safe("-1") == "'-1"
    assert safe("=") == "="
