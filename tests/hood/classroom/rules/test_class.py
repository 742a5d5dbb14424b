"""A class of sixty with its own rules: what counts is compared with another computation."""

import csv
import functools
import itertools
import json
import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from jinja2 import DictLoader, Environment
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.exportapp import ExportApp
from nbgrader.server_extensions.formgrader import handlers

from hood.classroom.gradebook import graded
from hood.classroom.nbgrader import guard
from hood.classroom.report import command as report
from hood.classroom.results import command
from hood.classroom.results.counted_marks import CountedMarks
from hood.classroom.results.exports import PLACES, Kind
from hood.classroom.rules import reading
from hood.classroom.rules.reading import FILE, read_course_file
from tests.hood.classroom.rules.book import LABS, hand_in, make_book
from tests.hood.classroom.test_same_numbers import formgrader

MADRID = ZoneInfo("Europe/Madrid")
RULES = """
course: {title: Inside PyTorch, time_zone: Europe/Madrid}
sections: {A: {graders: [ana]}, B: {graders: [ben]}}
roster: {file: class.csv, id: Login, first_name: Name, last_name: Surname, section: Group,
         canvas: Canvas, moodle: Username}
late: {per_day: 10%, floor: 40%, last_day: 6, free_days: 3}
labs:
  "01":
    due: 2026-10-02
    grace: 30 min
    drop: [first]
    points: {second: 3}
    bonus: [third]
  02_two:
    due: 2026-10-16 18:00
    drop: [fifth]
    withheld: credit
  03_three:
    due: 2026-10-30
    late: {per_day: 25%}
extensions:
  - {who: s07, lab: 01, due: 2026-10-06, why: ill}
  - {who: s08, lab: "02", due: 2026-10-20}
  - {who: s09, lab: 03_three, due: 2026-11-05}
export:
  canvas: {items: {"01": "One (4711)"}}
  moodle: {items: {02_two: Second}}
"""
DUE = {
    "01_one": datetime(2026, 10, 2, 23, 59, 59, tzinfo=MADRID),
    "02_two": datetime(2026, 10, 16, 18, 0, tzinfo=MADRID),
    "03_three": datetime(2026, 10, 30, 23, 59, 59, tzinfo=MADRID),  # in winter time
}
LATER = {
    ("s07", "01_one"): datetime(2026, 10, 6, 23, 59, 59, tzinfo=MADRID),
    ("s08", "02_two"): datetime(2026, 10, 20, 23, 59, 59, tzinfo=MADRID),
    ("s09", "03_three"): datetime(2026, 11, 5, 23, 59, 59, tzinfo=MADRID),
}
STUDENTS = [f"s{number:02}" for number in range(60)]
HANDED_IN = {}  # scores, time and withheld points of each learner and lab


@pytest.fixture(scope="module")
def course(tmp_path_factory, seeds):
    made = make_book(tmp_path_factory.mktemp("class") / "course")
    (made.root / FILE).write_text(RULES)
    gradebook = Gradebook(made.directory.db_url)
    chance = random.Random(seeds[0])
    lines = ["Login,Name,Surname,Group,Canvas,Username", ",Points,Possible,,,"]
    for number, student in enumerate(STUDENTS):
        lines.append(f"{student},N{number},=S{number},{'AB'[number % 2]},{900 + number},m{student}")
        for lab, exercises in LABS.items():
            if number % 20 == 19:
                continue  # who hands nothing in
            days = chance.choice([-1, -0.2, -0.001, 0.01, 0.5, 1, 1.5, 2.2, 3, 5.5, 6, 6.01, 9])
            due = LATER.get((student, lab), DUE[lab])
            came = (due + timedelta(days=days)).astimezone(UTC)
            withheld = {"fourth": 4.0} if lab == "02_two" and chance.random() < 0.5 else {}
            scores = {
                name: chance.randint(0, round(4 * (points - withheld.get(name, 0)))) / 4
                for name, points in exercises.items()
            }
            if number == 5 and lab == "03_three":
                scores["words"] = None
            HANDED_IN[student, lab] = scores, came, withheld
            hand_in(made, student, lab, scores, came.replace(tzinfo=None), withheld, gradebook)
    gradebook.close()
    (made.root / "class.csv").write_text("\n".join(lines))
    return made


@functools.cache
def expected(student):
    """The points that count for a learner's labs, and the maximum, with fractions.

    They come directly from the rules, and the best of all ways to spend the three free days.
    """
    handed_in = {lab: _earned(student, lab) for lab in LABS if (student, lab) in HANDED_IN}
    days = {lab: _days(student, lab) for lab in handed_in}
    ways = itertools.product(*(range(min(3, days[lab]) + 1) for lab in handed_in))
    found = []
    for way in ways:
        shares = [_share(lab, days[lab], free) for lab, free in zip(handed_in, way, strict=True)]
        points = sum(e * s for (e, _), s in zip(handed_in.values(), shares, strict=True))
        if sum(way) <= 3:
            found.append((points, sum(shares), -sum(way), way, shares))
    *_, best = max(found)
    return {
        lab: (earned * share, most)
        for (lab, (earned, most)), share in zip(handed_in.items(), best, strict=True)
    }


def _earned(student, lab):
    scores, _, withheld = HANDED_IN[student, lab]
    s = {name: Fraction(score or 0) for name, score in scores.items()}
    if lab == "01_one":
        return s["second"] * 3 / 6 + s["third"] + s["why"], 3 + 5
    if lab == "02_two":
        return s["fourth"] + Fraction(withheld.get("fourth", 0)) + s["because"], 10 + 8
    return s["sixth"] + s["seventh"] + s["words"], 3 + 7 + 2


def _days(student, lab):
    """Days late by the clocks of Madrid. No hand-in is from an hour that clocks repeat."""
    came = HANDED_IN[student, lab][1].astimezone(MADRID).replace(tzinfo=None, microsecond=0)
    over = came - LATER.get((student, lab), DUE[lab]).replace(tzinfo=None)
    grace = timedelta(minutes=30 if lab == "01_one" else 0)
    return -(-over // timedelta(days=1)) if over > grace else 0


def _share(lab, days, free):
    if lab == "03_three":
        return max(Fraction(0), 1 - Fraction(1, 4) * (days - free))
    if days > 6:
        return Fraction(0)
    return max(Fraction(4, 10), 1 - Fraction(1, 10) * (days - free)) if days > free else Fraction(1)


def counted(course):
    marks = CountedMarks(course, read_course_file(course.root))
    return {(one.student, lab): what for lab in LABS for one, what in marks.read(lab)}


def test_what_counts_follows_the_rules(course):
    found = counted(course)
    wanted = {(who, lab): value for who in STUDENTS for lab, value in expected(who).items()}
    assert found.keys() == wanted.keys()
    assert len(found) == 3 * 57
    for place, (counts, most) in wanted.items():
        assert found[place].counts == pytest.approx(float(counts), abs=1e-9), place
        assert found[place].most == pytest.approx(most), place
    assert [place for place, one in found.items() if not one.is_final] == [("s05", "03_three")]
    shares = {one.lateness.kept for one in found.values()}
    assert 1.0 in shares
    assert 0.0 in shares


def test_a_change_of_the_rules_can_be_undone_byte_for_byte(course):
    def exports():
        found = {}
        for kind in Kind:
            out = course.root / f"undone-{PLACES[kind]}"
            command.run(SimpleNamespace(action="export", lab=[], to=kind, out=out), course.root)
            files = [out] if out.is_file() else sorted(out.rglob("*.json"))
            found |= {path: path.read_bytes() for path in files}
        return found

    recorded = (course.root / "gradebook.db").read_bytes()
    before = exports()
    path = course.root / FILE
    path.write_text(RULES.replace("drop: [first]", "drop: [first, why]").replace("10%", "20%"))
    changed = exports()
    path.write_text(RULES)
    assert changed != before
    assert exports() == before
    assert (course.root / "gradebook.db").read_bytes() == recorded


@pytest.mark.parametrize(
    ("lab", "who"), [("01_one", "s1*"), ("02_two", "s0*"), ("03_three", "s05")]
)
def test_a_learners_page_begins_with_what_counts(course, lab, who):
    assert formgrader(course).generate_feedback(lab, who)["success"]
    pages = list((course.root / "feedback").glob(f"{who}/{lab}/{lab}.html"))
    assert len(pages) == {"s1*": 9, "s0*": 10, "s05": 1}[who]
    for path in pages:
        student, page = path.parent.parent.name, path.read_text()
        found = re.findall(r'"sum"><b>([^<]*)</b> of (\S+) points count(.*)</p>', page)
        so_far = " so far" if (student, lab) == ("s05", "03_three") else ""
        counts, most = expected(student)[lab]
        assert found == [(two_digits(counts), two_digits(most), so_far)], (student, lab)
        scores, _, withheld = HANDED_IN[student, lab]
        marks = re.findall(r'<article id="exercise-(\w+)".*?<b>(.*?)</b>', page, re.DOTALL)
        assert dict(marks) == {
            name: wanted_mark(lab, name, scores[name], withheld) for name in LABS[lab]
        }


def test_formgraders_list_and_nbgraders_export_have_counted_and_earned_points(course):
    rows = exported(course)
    for lab in LABS:
        listed = {one["student"]: one for one in formgrader(course).get_submissions(lab)}
        for student in STUDENTS:
            if (student, lab) not in HANDED_IN:
                assert (lab, student) not in rows
                continue
            counts, most = expected(student)[lab]
            row, one = rows[lab, student], listed[student]
            earned = sum(score or 0 for score in HANDED_IN[student, lab][0].values())
            assert float(row["raw_score"]) == one["score"] == earned
            assert as_read(row["counts"]) == wanted_score(student, lab)
            assert float(row["counts_of"]) == most
            so_far = " so far" if (student, lab) == ("s05", "03_three") else ""
            said = f"{two_digits(counts)} of {two_digits(most)} points count{so_far})"
            assert one["display_timestamp"].endswith(said)
            due = LATER.get((student, lab), DUE[lab])
            assert row["duedate"] == f"{due.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
            passed = HANDED_IN[student, lab][1].replace(microsecond=0) - due
            seconds = passed.total_seconds() if _days(student, lab) else 0
            assert int(row["seconds_late"]) == seconds
    # the learner's own due date, in UTC and without the grace
    assert rows["01_one", "s06"]["duedate"] == "2026-10-02 21:59:59"
    assert rows["01_one", "s07"]["duedate"] == "2026-10-06 21:59:59"


def test_formgraders_list_reads_few_files_and_shows_nothing_stale(tmp_path, monkeypatch):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text("labs: {02: {due: 2026-10-16}}")
    came, scores = datetime(2026, 10, 1), {"fourth": 6.0, "fifth": 2.0, "because": 8.0}
    for student in "abcdefgh":
        hand_in(course, student, "02_two", scores, came, {"fourth": 4.0} if student == "a" else {})
        for folder in ("i", "j", "k"):  # handed in, and not graded yet
            (course.folder("submitted", folder, "02_two")).mkdir(parents=True, exist_ok=True)
    read, parsed = [], []
    whole, notebook = reading.ClassRules.model_validate, graded.read_graded
    monkeypatch.setattr(
        reading.ClassRules, "model_validate", lambda value: (read.append(1), whole(value))[1]
    )
    monkeypatch.setattr(
        graded, "read_graded", lambda path: (parsed.append(path), notebook(path))[1]
    )
    monkeypatch.setattr(NbGraderAPI, "get_submission", guard._get_submission)
    monkeypatch.setattr(NbGraderAPI, "get_submissions", guard._get_submissions)

    def shown():
        listed = formgrader(course).get_submissions("02_two")
        assert len(listed) == 11
        return {
            one["student"]: (one["display_timestamp"] or "").partition(" (")[2] for one in listed
        }

    first = shown()
    assert (first["a"], first["b"]) == ("16 of 16 points count)", "16 of 20 points count)")
    assert first["i"] == ""
    assert len(read) == 8  # however many learners there are
    assert len(parsed) == 1  # the notebook of the learner with four withheld points
    hand_in(course, "b", "02_two", scores, came, {"fourth": 4.0})
    assert shown()["b"] == "16 of 16 points count)"
    (course.root / FILE).write_text("labs: {02: {drop: [fifth]}}")
    assert shown()["c"] == "14 of 18 points count)"
    source = course.root / "source" / "02_two" / "02_two.ipynb"
    source.write_text(source.read_text().replace('"points": 2', '"points": 12'))
    (course.root / FILE).write_text("labs: {02: {points: {fifth: 12}}}")
    assert shown()["c"] == "16 of 30 points count)"


def exported(course):
    app = ExportApp(coursedir=course.directory, config=course.config)
    app.init_plugin()
    app.plugin_inst.to = str(course.root / "grades.csv")
    with Gradebook(course.directory.db_url) as gradebook:
        app.plugin_inst.export(gradebook)
    with (course.root / "grades.csv").open(newline="") as file:
        return {(row["assignment"], row["student_id"]): row for row in csv.DictReader(file)}


def test_an_unknown_time_is_not_0_days_or_0_seconds(tmp_path):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text("labs: {01: {due: 2026-10-02}}")
    hand_in(course, "ana", "01_one", LABS["01_one"], None)
    assert exported(course)["01_one", "ana"]["seconds_late"] == ""
    heads, row = table(course, Kind.NBGRADER)
    assert dict(zip(heads, row, strict=True))["days_late"] == ""
    asked = SimpleNamespace(action="export", lab=[], to=Kind.GRADESCOPE, out=None)
    assert command.run(asked, course.root) == 0
    results = json.loads((course.root / "gradescope" / "01_one" / "ana.json").read_text())
    assert results["extra_data"] == {"days_late": None, "final": True}
    assert report.run(SimpleNamespace(lab="01", out=None, hide_names=False), course.root) == 0
    out = course.root / "reports" / "01_one"
    for name, column in (("counts.csv", "days_late"), ("learners.csv", "seconds_late")):
        with (out / name).open(encoding="utf-8-sig", newline="") as file:
            assert {one[column] for one in csv.DictReader(file)} == {""}


def test_without_dates_in_the_file_a_learners_own_due_date_in_the_gradebook_holds(tmp_path):
    course = make_book(tmp_path / "course")
    due = datetime(2026, 10, 2, 22)
    for student in ("ana", "ben"):
        hand_in(course, student, "01_one", LABS["01_one"], due + timedelta(hours=30))
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.update_or_create_assignment("01_one", duedate=due)
        gradebook.find_submission("01_one", "ana").extension = timedelta(days=1)
        gradebook.db.commit()
    rows = exported(course)
    found = [
        (rows["01_one", one]["duedate"], rows["01_one", one]["seconds_late"])
        for one in ("ana", "ben")
    ]
    assert found == [("2026-10-03 22:00:00", "21600"), ("2026-10-02 22:00:00", "108000")]


def test_a_tentative_mark_decides_on_free_days_as_a_recorded_one(tmp_path):
    course = make_book(tmp_path / "course")
    (course.root / FILE).write_text(
        "late: {per_day: 10%, free_days: 1}\n"
        "labs: {01: {due: 2026-10-02}, 02: {due: 2026-10-16, withheld: credit, drop: [fifth]}}"
    )
    for lab, day in (("01_one", 3), ("02_two", 17)):
        withheld = {"fourth": 4.0} if lab == "02_two" else {}
        scores = dict.fromkeys(LABS[lab], 2.0)  # 8 points, and 4 more beside 4
        hand_in(course, "ana", lab, scores, datetime(2026, 10, day, 12), withheld)
    marks = CountedMarks(course, read_course_file(course.root))
    [(one, before)] = marks.read("01_one")
    assert (before.lateness.free, before.earned) == (
        1,
        8,
    )  # among equals, the one that is due first
    fewer = marks.of("01_one", replace(one, scores=one.scores | {"first": 1.0}))
    assert (fewer.lateness.free, fewer.counts) == (0, pytest.approx(6.3))


def test_formgraders_pages_say_which_numbers_they_show(course, tmp_path):
    template = f'<thead><th class="text-center">Score</th></thead>{guard.TABLE}'
    settings = {"nbgrader_jinja2_env": Environment(loader=DictLoader({"list": template}))}
    for root, changed in ((course.root, True), (tmp_path, False)):
        handler = SimpleNamespace(settings=settings, coursedir=SimpleNamespace(root=str(root)))
        shown = guard._render(handler, "list")
        assert ("Score, as earned</th>" in shown, guard.EARNED in shown) == (changed,) * 2
        assert (shown == template) is not changed
    templates = Path(handlers.__file__).parent / "templates"  # of the nbgrader that is installed
    assert guard.TABLE in (templates / "base.tpl").read_text()
    assert "Score</th>" in (templates / "manage_submissions.tpl").read_text()


def two_digits(points):
    return f"{float((points * 100 + Fraction(1, 2)) // 1 / 100):g}"


def wanted_mark(lab, name, score, withheld):
    """The text beside an exercise's title."""
    if score is None:
        return "not marked yet, of 2 points"
    if name in ("first", "fifth"):
        return "does not count"
    if name == "third":
        return f"{score:g} as a bonus"
    if name == "second":
        return f"{two_digits(Fraction(score) / 2)} of 3 points"
    given = score + withheld.get(name, 0)
    return f"{given:g} of {LABS[lab][name]:g} points"


def table(course, kind):
    out = course.root / PLACES[kind]
    asked = SimpleNamespace(action="export", lab=[], to=kind, out=out)
    assert command.run(asked, course.root) == 0
    with out.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def wanted_score(student, lab):
    if (student, lab) == ("s05", "03_three") or lab not in expected(student):
        return ""
    return float(
        (expected(student)[lab][0] * 100 + Fraction(1, 2)) // 1 / 100
    )  # a half is rounded up


def as_read(text):
    return text and pytest.approx(float(text), abs=1e-9)


def test_moodles_table_has_ids_and_a_column_for_each_lab(course):
    heads, *rows = table(course, Kind.MOODLE)
    assert heads == ["Username", "01_one", "Second", "03_three"]
    assert len(rows) == len(STUDENTS)
    for who, *scores in rows:
        student = who.removeprefix("m")
        found = [as_read(text.removeprefix("-")) for text in scores]  # "-" is Moodle's no grade
        assert [wanted_score(student, lab) for lab in LABS] == found


def test_canvass_table_has_its_own_columns_and_the_maxima(course):
    heads, possible, *rows = table(course, Kind.CANVAS)
    assert heads[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert heads[5:] == ["One (4711)", "02_two", "03_three"]
    assert possible == ["Points Possible", "", "", "", "", "8", "18", "12"]
    for name, number, sis, login, section, *scores in rows:
        place = STUDENTS.index(login)
        # a name that a spreadsheet would read as a formula
        assert (name, number, sis) == (f"'=S{place}, N{place}", str(900 + place), "")
        assert section == "AB"[place % 2]
        assert [wanted_score(login, lab) for lab in LABS] == [as_read(text) for text in scores]


def test_nbgraders_table_explains_each_score(course):
    heads, *rows = table(course, Kind.NBGRADER)
    rows = [dict(zip(heads, row, strict=True)) for row in rows]
    assert len(rows) == 3 * len(STUDENTS)
    for row in rows:
        student, lab = row["student_id"], row["assignment"]
        assert wanted_score(student, lab) == as_read(row["counts"])
        assert "score" not in row  # which is what was earned, in `nbgrader export`
        if (student, lab) not in HANDED_IN:
            assert row["status"] == "not handed in, or not graded"
        elif lab == "01_one":
            assert "`first` does not count." in row["status"]
            assert "`second` counts 3 points in place of 6." in row["status"]
    [waits] = [r for r in rows if (r["student_id"], r["assignment"]) == ("s05", "03_three")]
    assert "Not marked yet: 2 points." in waits["status"]


def test_gradescopes_results_have_a_score_and_a_test_for_each_exercise(course):
    asked = SimpleNamespace(action="export", lab=["01"], to=Kind.GRADESCOPE, out=None)
    assert command.run(asked, course.root) == 0
    files = sorted((course.root / PLACES[Kind.GRADESCOPE]).rglob("*.json"))
    assert [path.stem for path in files] == [s for s in STUDENTS if expected(s)]
    for path in files:
        results = json.loads(path.read_text())
        assert results["score"] == as_read(str(wanted_score(path.stem, "01_one")))
        tests = {one["name"]: one for one in results["tests"]}
        assert {name: one["max_score"] for name, one in tests.items()} == {
            "first": 0,
            "second": 3,
            "third": 0,
            "why": 5,
        }
        assert tests["first"]["score"] == 0
        assert {one["visibility"] for one in tests.values()} == {"visible"}


def test_the_report_has_the_rules_the_sections_and_the_missing_learners(course, capsys):
    asked = SimpleNamespace(lab="01", out=None, hide_names=False)
    assert report.run(asked, course.root) == 0
    out = course.root / "reports" / "01_one"
    page = re.sub(r"\s+", " ", (out / "index.html").read_text())
    assert "Due on 2 October 2026, 23:59, with 30 min of grace." in page
    assert "s07 has an extension until 6 October 2026, 23:59 (ill)." in page
    assert "3 learners in the roster have no graded submission: s19, s39, s59." in page
    assert '<tr><th scope="row">A</th><td>ana</td><td>30</td>' in page
    with (out / "counts.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    for student, row in rows.items():
        assert wanted_score(student, "01_one") == as_read(row["counts"])
        assert row["raw_score"] == str(float(sum(HANDED_IN[student, "01_one"][0].values())))

    assert report.run(SimpleNamespace(lab="01", out=None, hide_names=True), course.root) == 0
    for name in ("index.html", "counts.csv"):
        text = (out / name).read_text(encoding="utf-8-sig")
        assert not re.search(r"\bs\d\d\b", text)


def test_a_course_without_the_file_is_unchanged(course):
    asked = SimpleNamespace(lab="03", out=course.root / "plain", hide_names=False)
    (course.root / FILE).rename(course.root / "away.yml")
    try:
        report.run(asked, course.root)
    finally:
        (course.root / "away.yml").rename(course.root / FILE)
    assert "course.yml" not in (course.root / "plain" / "index.html").read_text()
    assert not (course.root / "plain" / "counts.csv").exists()
