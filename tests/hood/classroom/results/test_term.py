"""A class's totals are the same in all places, and if they are computed in another way."""

import csv
import itertools
import random
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from nbgrader.api import Gradebook

from hood.classroom.results import command
from hood.classroom.results.exports import Kind
from hood.classroom.results.term import totals
from hood.classroom.rules.reading import FILE, read_course_file
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.rules.book import LABS, hand_in, make_book
from tests.hood.classroom.test_same_numbers import formgrader

MADRID = ZoneInfo("Europe/Madrid")
RULES = """
course: {time_zone: Europe/Madrid}
left: [gone]
late: {per_day: 10%, floor: 40%, last_day: 6, free_days: 1}
labs:
  "01": {due: 2026-10-02, drop: [first], points: {second: 3}, bonus: [third]}
  "02": {due: 2026-10-16}
  "03": {due: 2026-10-30, late: {per_day: 25%}}
extensions:
  - {who: s03, lab: "01", due: 2026-10-06}
  - {who: s04, lab: "03", due: 2026-11-20}
"""
POLICIES = {
    "total: {}": {},
    "total: {drop_lowest: 1, decimals: 2}": {"drop": 1},
    "total: {weights: {01: 20%, 02: 30%, 03: 50%}, drop_lowest: 1, out_of: 30}": {
        "weights": (2, 3, 5),
        "drop": 1,
        "out_of": 30,
    },
    "total: {weights: {01: 0, 02: 1, 03: 1}, decimals: 0}": {"weights": (0, 1, 1)},
}
DUE = [datetime(2026, 10, day, 23, 59, 59, tzinfo=MADRID) for day in (2, 16, 30)]
NOW = datetime(2026, 11, 4, 12, tzinfo=MADRID)
STUDENTS = [f"s{number:02}" for number in range(24)]
WORTH = (8, 20, 12)  # the labs' points under these rules
WORK = {}  # scores, days after the due date, and withheld points, by learner and lab


@pytest.fixture(scope="module")
def course(tmp_path_factory, seeds):
    made = make_book(tmp_path_factory.mktemp("term") / "course")
    gradebook = Gradebook(made.directory.db_url)
    chance = random.Random(seeds[0])
    for number, student in enumerate([*STUDENTS, "gone"]):
        late_in = chance.randrange(3)  # only this lab is late, so it gets all free days
        for place, (lab, exercises) in enumerate(LABS.items()):
            if (number + place) % 7 == 0 or (student, place) in (("s03", 0), ("s04", 2)):
                continue  # handed in nothing
            path = made.folder("submitted", student, lab)
            path.mkdir(parents=True)
            if (student, place) == ("s05", 1):
                continue  # not graded yet
            withheld = {"fourth": 4.0} if place == 1 and number % 3 == 0 else {}
            scores = {
                name: float(chance.randint(0, round(points - withheld.get(name, 0))))
                for name, points in exercises.items()
            }
            if (student, place) == ("s08", 2):
                scores["words"] = None
            days = chance.choice([0, 0.5, 1.5, 2.5, 7.5]) if place == late_in else -1
            WORK[student, place] = scores, days, withheld
            came = (DUE[place] + timedelta(days=days)).astimezone(UTC).replace(tzinfo=None)
            hand_in(made, student, lab, scores, came, withheld, gradebook)
    gradebook.close()
    return made


def share(student, place):
    """A learner's share of a lab, directly from the rules; None before it is in the total."""
    if (student, place) not in WORK:
        return None if (student, place) in (("s04", 2), ("s05", 1)) else Fraction(0)
    scores, days, withheld = WORK[student, place]
    if None in scores.values():
        return None
    s = {name: Fraction(score) for name, score in scores.items()}
    if place == 0:
        reached, most = s["second"] / 2 + s["third"] + s["why"], 8
    elif place == 1:
        reached, most = sum(s.values()), 20 - Fraction(withheld.get("fourth", 0))
    else:
        reached, most = sum(s.values()), 12
    late = int(days + 1) if days > 0 else 0
    paid = max(late - 1, 0)  # one day is free
    if place == 2:
        kept = max(Fraction(0), 1 - paid * Fraction(1, 4))
    elif late > 6:
        kept = Fraction(0)
    else:
        kept = max(Fraction(2, 5), 1 - paid * Fraction(1, 10))
    return reached / most * kept


def recounted(student, weights=WORTH, drop=0, out_of=100):
    """A learner's total, by trying every choice of dropped labs; and whether it is final."""
    shares = [share(student, place) for place in range(3)]
    parts = [(w, s) for w, s in zip(weights, shares, strict=True) if w and s is not None]
    many = max(len(parts) - drop, 1)
    best = max(
        sum((w * s for w, s in kept), Fraction()) / sum(w for w, _ in kept)
        for kept in itertools.combinations(parts, many)
    )
    final = all(s is not None for w, s in zip(weights, shares, strict=True) if w)
    return min(best, Fraction(1)) * out_of, final


@pytest.mark.parametrize("policy", POLICIES)
def test_every_total_follows_the_rules(course, policy):
    (course.root / FILE).write_text(RULES + policy)
    file = read_course_file(course.root)
    found = totals(course, file, STUDENTS, NOW)
    finals = set()
    for student in STUDENTS:
        points, final = recounted(student, **POLICIES[policy])
        assert float(found[student].points) == pytest.approx(float(points), abs=1e-9), student
        assert found[student].is_final is final, student
        finals.add(final)
    assert finals == {True, False}
    assert {student for student in STUDENTS if not found[student].is_final} == {"s04", "s05", "s08"}
    one = totals(course, file, ["s01"], NOW)["s01"]
    assert one == found["s01"]


def test_before_its_due_date_a_lab_counts_no_0(course):
    (course.root / FILE).write_text(RULES + "total: {}")
    file = read_course_file(course.root)
    early = totals(course, file, ["s03"], datetime(2026, 10, 6, 12, tzinfo=MADRID))["s03"]
    late = totals(course, file, ["s03"], datetime(2026, 10, 7, 12, tzinfo=MADRID))["s03"]
    over = totals(course, file, ["s03"], datetime(2026, 10, 13, 12, tzinfo=MADRID))["s03"]
    standings = [one.labs[0].standing.value for one in (early, late, over)]
    assert standings == ["not due yet", "not handed in yet", "not handed in"]
    assert [one.labs[0].share for one in (early, late, over)] == [None, 0, 0]


def test_within_the_grace_a_lab_is_not_missing(course):
    rules = RULES.replace("due: 2026-10-16", "due: 2026-10-16, grace: 2 h") + "total: {}"
    (course.root / FILE).write_text(rules)
    file = read_course_file(course.root)
    [student] = [s for s in STUDENTS[:7] if (s, 1) not in WORK and s != "s05"]
    for hours, standing in ((1, "not due yet"), (3, "not handed in yet")):
        now = DUE[1] + timedelta(hours=hours)
        assert totals(course, file, [student], now)[student].labs[1].standing == standing


def exported(course, kind):
    out = course.root / "out.csv"
    asked = SimpleNamespace(action="export", lab=[], to=kind, out=out)
    assert command.run(asked, course.root) == 0
    with out.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_each_share_the_dropped_labs_and_why_it_is_not_final(course, monkeypatch):
    monkeypatch.setattr(command, "datetime", SimpleNamespace(now=lambda zone: NOW))
    (course.root / FILE).write_text(RULES + "total: {drop_lowest: 1, decimals: 2}")
    rows = {row["student_id"]: row for row in exported(course, Kind.TOTAL)}
    assert list(rows) == STUDENTS  # without the learner who left
    for student, row in rows.items():
        points, final = recounted(student, drop=1)
        shown = float((points * 100 + Fraction(1, 2)) // 1 / 100)
        assert float(row["so_far"]) == pytest.approx(shown, abs=1e-9)
        assert row["total"] == (row["so_far"] if final else "")
        assert (row["final"], row["total_of"]) == ("yes" if final else "no", "100")
        for place, lab in enumerate(LABS):
            reached = share(student, place)
            assert (
                row[lab] == ""
                if reached is None
                else float(row[lab]) == pytest.approx(float(100 * reached), abs=0.0051)
            )
        assert row["dropped"] in LABS
        assert f"`{row['dropped']}`" in row["why"]
    assert "Not in the total yet: `03_three` (not due yet)." in rows["s04"]["why"]
    assert "Not in the total yet: `02_two` (handed in, and not graded yet)." in rows["s05"]["why"]
    assert "Not in the total yet: `03_three` (not all marked yet)." in rows["s08"]["why"]
    assert "Counts 0: `01_one` (not handed in)." in rows["s00"]["why"]
    moodle = {row["Username"]: row["Total"] for row in exported(course, Kind.MOODLE)}
    assert moodle == {who: row["total"] or "-" for who, row in rows.items()}


def test_feedback_has_the_total_of_the_labs_with_feedback(course):
    """The clock is the machine's, so all labs are long due, except for one extension."""
    (course.root / FILE).write_text(RULES + "total: {}")
    assert formgrader(course).generate_feedback("01_one", "s01")["success"]
    assert formgrader(course).generate_feedback("02_two", "s01")["success"]

    def told(lab):
        return words((course.root / "feedback" / "s01" / lab / f"{lab}.html").read_text())

    one, two = share("s01", 0), share("s01", 1)
    alone = float(min(one, 1) * 100)
    both = float(min((one * 8 + two * 20) / 28, 1) * 100)
    found = re.search(r"Total of the term so far: (\S+) of 100\. (.*?\)\.)", told("01_one"))
    assert float(found[1]) == pytest.approx(alone, abs=0.051)
    assert found[2] == "Not in the total yet: 02_two and 03_three (no feedback yet)."
    found = re.search(r"Total of the term so far: (\S+) of 100\. (.*?\)\.)", told("02_two"))
    assert float(found[1]) == pytest.approx(both, abs=0.051)
    assert found[2] == "Not in the total yet: 03_three (no feedback yet)."
    assert formgrader(course).generate_feedback("03_three", "s01")["success"]
    total = float(recounted("s01")[0])
    found = re.search(r"Total of the term: (\S+) of 100\.", told("03_three"))
    assert float(found[1]) == pytest.approx(total, abs=0.051)
    (course.root / FILE).write_text(RULES)
    assert formgrader(course).generate_feedback("02_two", "s01", force=True)["success"]
    assert "Total of the term" not in told("02_two")


def test_check_explains_the_total_and_asks_about_labs_without_a_due_date(course, capsys):
    rules = RULES.replace('"02": {due: 2026-10-16}', '"02": {}')
    (course.root / FILE).write_text(rules + "total: {drop_lowest: 1}")
    assert command.run(SimpleNamespace(action="check"), course.root) == 1
    said = capsys.readouterr().out
    assert "Each lab has its points as its weight: 01_one 20 %, 02_two 50 %, 03_three 30 %." in said
    assert "One lab is dropped for each learner, so that the total is highest" in said
    asked = [line for line in said.splitlines() if line.startswith("? ")]
    assert asked == [
        "? 02_two has no due date, so a learner's total is not final until the learner hands this "
        "lab in"
    ]
