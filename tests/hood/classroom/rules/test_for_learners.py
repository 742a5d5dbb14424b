"""What learners see of a class in the archive and on the start page: rules, and no names."""

import json
from datetime import UTC, datetime

import pytest

from hood import UserError
from hood.audience import BUILD
from hood.authoring.bundle import START_PAGE, learner_files, left_out
from hood.classroom.rules.for_learners import rules_for_learners
from hood.classroom.rules.reading import FILE, read_course_file
from hood.learner import contents as course
from hood.phase_paths import ROOT, choose
from tests.hood.classroom.rules.book import make_book

RULES = """
course: {title: Inside PyTorch, time_zone: Europe/Madrid}
late: {per_day: 10%, last_day: 6, free_days: 3}
labs:
  "01": {due: 2026-10-02, grace: 30 min, drop: [first], points: {second: 3}, bonus: [third]}
  02: {release: 2026-10-05 09:00, due: 2026-10-16 18:00, late: {}}
  03: {release: 2026-10-19}
extensions: [{who: s07, lab: "01", due: 2026-10-06, why: unwell}]
"""


def told(tmp_path):
    root = make_book(tmp_path / "course").root
    (root / FILE).write_text(RULES)
    return rules_for_learners(root, read_course_file(root))


def test_the_data_have_dates_and_rules_and_no_names(tmp_path):
    data = told(tmp_path)
    found = json.loads(data)
    assert found["about"] == [
        "Inside PyTorch.",
        "Times are those of Europe/Madrid.",
        "Late: each begun day costs 10 % of the points earned; after 6 days nothing counts.",
        "Of several hand-ins, the hand-in with the most points after the late penalty counts.",
        "In the whole term, 3 days of lateness are free, and are spent where they save most "
        "points.",
    ]
    assert found["labs"]["01_one"] == {
        "released": "",
        "due": "2 October 2026, 23:59, with 30 min of grace",
        "rules": [
            "These exercises do not count (4 points in the lab): `first`.",
            "`second` counts 3 points in place of 6.",
            "Bonus (adds points, and is not in the maximum): `third`.",
            "In all, 8 points count; the lab has 20.",
        ],
    }
    assert found["labs"]["02_two"] == {
        "released": "5 October 2026, 09:00",
        "due": "16 October 2026, 18:00",
        "rules": ["Lateness costs nothing."],
    }
    assert found["labs"]["03_three"] == {"released": "19 October 2026", "due": "", "rules": []}
    assert not any(word in data for word in (b"s07", b"unwell", b'"6 October'))


def test_the_rules_of_the_total_are_included(tmp_path):
    root = make_book(tmp_path / "course").root
    (root / FILE).write_text(RULES + "left: [s08]\ntotal: {weights: {01: 1, 02: 1, 03: 2}}\n")
    data = rules_for_learners(root, read_course_file(root))
    about = json.loads(data)["about"]
    weights = "Each lab has a weight: 01_one 25 %, 02_two 25 %, 03_three 50 %. "
    assert any(weights in said for said in about)
    assert "A lab that is not handed in counts 0 after its due date." in about
    assert b"s08" not in data


@pytest.fixture
def learner(tmp_path):
    """A learner's folder with lab 01, in a class that later gets lab 02, and no other lab."""
    for name in ("release/01_tensors/01_tensors.ipynb", "notebooks/01_tensors.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("{}")
    labs = {
        "01_tensors": {"released": "", "due": "2 October <2026>", "rules": ["`a` is <b>.", "So."]},
        "02_autograd": {"released": "5 October 2026", "due": "16 October 2026", "rules": []},
        "03_module": {"released": "", "due": "", "rules": []},
    }
    said = {"about": ["A & B.", "Times are those of UTC."], "labs": labs}
    (tmp_path / course.CLASS).write_text(json.dumps(said))
    return tmp_path


def test_the_start_page_has_released_and_coming_labs_and_what_counts(learner, monkeypatch):
    page, text = course.contents_html(learner), course.contents_text(learner).splitlines()
    assert text[1].endswith("01_tensors.ipynb): lab due 2 October <2026>")
    assert text[2].endswith(": lab comes on 5 October 2026, in a new copy of the course")
    assert text[3].endswith(": lab not in this copy of the course")
    assert text[4].endswith(": lab not in this class")
    assert text[-2:] == ["A & B. Times are those of UTC.", "Lab 01. `a` is <b>. So."]
    assert "due 2 October &lt;2026&gt;</td>" in page
    assert page.endswith(
        "</table><p>A &amp; B. Times are those of UTC.</p>"
        "<p>Lab 01. <code>a</code> is &lt;b&gt;. So.</p>"
    )
    assert page.count('<th scope="col"') == 6
    assert page.count("<td ") == 5 * len(course.PHASES)
    assert page.count('<th scope="row"') == len(course.PHASES)
    monkeypatch.setenv(BUILD, "1")  # the built page is the same in every class
    assert "October" not in course.contents_html(learner)


@pytest.mark.parametrize("said", ["{", "[]", '{"about": []}', '{"about": [], "labs": {"01": 3}}'])
def test_damaged_data_are_reported(learner, said):
    (learner / course.CLASS).write_text(said)
    with pytest.raises(ValueError, match=r"class\.json can't be read: unpack"):
        course.contents_text(learner)


def test_without_a_class_the_page_mentions_none(learner):
    (learner / course.CLASS).unlink()
    assert course.class_rules(learner) is None
    assert "Lab</th>" not in course.contents_html(learner)


@pytest.fixture
def course_of_three(tmp_path):
    """This project's own texts and notebooks, with the rules of a class."""
    for name in ("phases", "source", "release", "notebooks", "lock", "utils", "hood"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("pyproject.toml", "environment.yml", "LICENSE"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / FILE).write_text(
        "labs: {01: {due: 2026-10-02}, 02: {release: 2026-10-05, drop: [scalar_adjoints]}}"
    )
    return tmp_path


@pytest.mark.slow(5)
def test_the_archive_has_the_released_labs(course_of_three):
    root = course_of_three
    before, after = (datetime(2026, 10, day, 12, tzinfo=UTC) for day in (4, 5))
    files = learner_files(root, with_checks=True, now=before)
    labs = [name for name in files if name.startswith("release/")]
    assert labs == ["release/01_tensors/01_tensors.ipynb"]
    assert not any(name.startswith("phases/02_autograd/") for name in files)
    assert "notebooks/02_autograd.ipynb" in files  # lessons are always included
    assert FILE not in files
    shown = json.dumps(json.loads(files[START_PAGE]))
    assert "comes on 5 October 2026, in a new copy" in shown
    assert "due 2 October 2026, 23:59" in shown
    assert shown.count("lab</a>") == 1
    assert "and when they are due. To update" in files["README.md"].decode()
    later = learner_files(root, now=after)
    assert "release/02_autograd/02_autograd.ipynb" in later
    assert "comes on" not in json.dumps(json.loads(later[START_PAGE]))
    why = left_out(root, choose(root, ["01", "02", "05"]), before)
    assert why == {
        "02_autograd": f"{FILE} releases 02_autograd only on 5 October 2026",
        "05_custom_op": f"05_custom_op is not a lab of this class: `labs` in {FILE} has "
        "01_tensors, "
        "02_autograd. Add 05_custom_op there to release it",
    }
    (root / FILE).write_text("labs: {01: {du: 2026-10-02}}")
    with pytest.raises(UserError, match=r"course\.yml:1: labs\.01_tensors\.du: no such key"):
        learner_files(root)


@pytest.mark.slow(5)
def test_without_a_class_the_start_page_is_the_built_one():
    assert learner_files(ROOT)[START_PAGE] == (ROOT / START_PAGE).read_bytes()
    assert "when they are due" not in learner_files(ROOT)["README.md"].decode()
    only = json.dumps(json.loads(learner_files(ROOT, ["01"])[START_PAGE]))
    assert only.count("lab</a>") == 1
