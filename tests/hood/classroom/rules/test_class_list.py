"""Learners who left, or are not in the roster, are in no list and no sum."""

import csv
import io
from datetime import datetime
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from rich.console import Console

from hood import UserError
from hood.classroom.gradebook.graded import Results
from hood.classroom.nbgrader import guard
from hood.classroom.recording import command as batch
from hood.classroom.report import command as report
from hood.classroom.results import command
from hood.classroom.results.counted_marks import feedback_rules
from hood.classroom.results.exports import Kind
from hood.classroom.rules.class_list import ClassList, class_list, passed_over_sentence
from hood.classroom.rules.reading import FILE
from hood.classroom.service.lab_state import lab_states
from tests.hood.classroom.recording.running import count, run
from tests.hood.classroom.recording.small import HW, Here, make_small
from tests.hood.classroom.recording.small import hand_in as answer
from tests.hood.classroom.rules.book import hand_in, make_book
from tests.hood.classroom.rules.test_class import exported
from tests.hood.classroom.test_same_numbers import formgrader

LAB = "01_one"
ROSTER = "Login,Name\nana,Ana\nben,Ben\neve,Eve\nnew,New\n"
WHO_LEFT = "left: [eve]\nroster: {file: class.csv, id: Login, first_name: Name}\nlabs: {one: {}}\n"
ONLY_LEFT = "left: [eve, guest]\nlabs: {one: {}}\n"
ONLY_ROSTER = WHO_LEFT.replace("left: [eve]\n", "")


def test_the_class_is_the_roster_without_learners_who_left():
    everybody = ClassList()
    left = ClassList(frozenset({"jos\u00e9"}))
    both = ClassList(frozenset({"eve"}), frozenset({"ana", "eve"}), "class.csv")
    assert everybody.passed_over(["ana", "x"]) == {}
    assert left.passed_over(["jose\u0301", "ana"]) == {
        "jose\u0301": "left, according to course.yml"
    }
    found = both.passed_over(["zoe", "ana", "eve"])
    assert found == {"eve": "left, according to course.yml", "zoe": "not in class.csv"}
    assert both.without_others(["zoe", "ana", "eve"]) == ["ana"]
    assert passed_over_sentence(found) == (
        "Skipped: eve (left, according to course.yml), zoe (not in class.csv). "
        "None of their work was deleted."
    )
    assert passed_over_sentence({}) == ""
    many = passed_over_sentence({f"s{n}": "left" for n in range(23)})
    assert many.endswith("s19 (left) and 3 more. None of their work was deleted.")


@pytest.fixture
def course(tmp_path):
    """Three learners who were graded, and two who do not belong to the class."""
    made = make_book(tmp_path / "course")
    (made.root / "class.csv").write_text(ROSTER)
    scores = {"first": 4.0, "second": 6.0, "third": 0.0, "why": 5.0}
    for student, second in (("ana", 6.0), ("ben", 0.0), ("eve", 3.0), ("guest", 1.0)):
        hand_in(made, student, LAB, scores | {"second": second}, datetime(2026, 10, 1))
        made.folder("submitted", student, LAB).mkdir(parents=True)
    return made


def exports(course, kind):
    out = course.root / "out.csv"
    command.run(SimpleNamespace(action="export", lab=[], to=kind, out=out), course.root)
    return out.read_text()


@pytest.mark.parametrize("rules", [WHO_LEFT, ONLY_LEFT])
def test_all_lists_and_tables_have_exactly_the_class(course, rules, capsys, monkeypatch):
    (course.root / FILE).write_text(rules)
    ids = ["ana", "ben", "new"] if rules == WHO_LEFT else ["ana", "ben"]
    assert Results(course, LAB).students == ["ana", "ben"]
    assert Results(course, LAB).not_entered == []
    for kind in (Kind.MOODLE, Kind.CANVAS, Kind.NBGRADER):
        table = exports(course, kind)
        assert [one for one in ("ana", "ben", "eve", "guest", "new") if one in table] == ids
        assert "Skipped: eve (left, according to course.yml), guest (" in capsys.readouterr().out
    command.run(
        SimpleNamespace(action="export", lab=[], to=Kind.GRADESCOPE, out=course.root / "scope"),
        course.root,
    )
    assert sorted(path.stem for path in (course.root / "scope").rglob("*.json")) == ["ana", "ben"]
    assert {who for lab, who in exported(course) if lab == LAB} == {"ana", "ben"}

    console = Console(file=io.StringIO(), width=200)
    report.run(SimpleNamespace(lab="01", out=None, hide_names=False), course.root, console)
    assert "Skipped: eve (left, according to course.yml), guest (" in console.file.getvalue()
    assert "2 of 2 submissions have all their automatic marks" in console.file.getvalue()
    with (course.root / "reports" / LAB / "counts.csv").open(encoding="utf-8-sig") as file:
        assert [row["student"] for row in csv.DictReader(file)] == ["ana", "ben"]
    page = (course.root / "reports" / LAB / "index.html").read_text()
    assert "eve" not in page.replace("ever", "").replace("level", "").split("<body")[1]

    done = formgrader(course).generate_feedback(LAB)
    assert done["success"], done
    assert "no page of feedback is made. Skipped: eve (left" in done["log"]
    assert sorted(one.name for one in (course.root / "feedback").iterdir()) == ["ana", "ben"]
    assert feedback_rules(course.root, LAB, "eve", datetime.now().astimezone()).counted is None
    page = course.folder("feedback", "eve", LAB) / f"{LAB}.html"  # made before Eve left
    page.parent.mkdir(parents=True)
    page.touch()
    inbox = SimpleNamespace(newest=lambda *_: None, so_far=lambda *_: "")
    [state] = lab_states(course, None, inbox, "eve", [LAB])
    assert state.points is None

    for name in ("get_submission", "get_submissions", "get_students", "get_assignment"):
        monkeypatch.setattr(NbGraderAPI, name, getattr(guard, f"_{name}"))
    monkeypatch.setattr(NbGraderAPI, "get_notebooks", guard._get_notebooks)
    monkeypatch.setattr(NbGraderAPI, "get_submitted_students", guard._submitted_students)
    api = formgrader(course)
    assert {one["student"] for one in api.get_submissions(LAB)} == {"ana", "ben"}
    assert {one["id"] for one in api.get_students()} == {"ana", "ben"}
    lab, [notebook] = api.get_assignment(LAB), api.get_notebooks(LAB)
    assert (lab["average_score"], lab["average_code_score"]) == (12.0, 7.0)  # of 15 and 9 points
    assert (notebook["average_score"], notebook["average_written_score"]) == (12.0, 5.0)
    assert lab["num_submissions"] == 2


def test_nothing_is_deleted_and_removing_a_line_restores_a_learner(course, monkeypatch):
    monkeypatch.setattr(NbGraderAPI, "get_assignment", guard._get_assignment)
    book = (course.root / "gradebook.db").read_bytes()
    (course.root / FILE).write_text(WHO_LEFT)
    exports(course, Kind.NBGRADER)
    assert (course.root / "gradebook.db").read_bytes() == book
    (course.root / FILE).write_text(ONLY_ROSTER)
    assert Results(course, LAB).students == ["ana", "ben", "eve"]
    (course.root / FILE).write_text("labs: {one: {}}")
    assert Results(course, LAB).students == ["ana", "ben", "eve", "guest"]
    assert "guest" in exports(course, Kind.NBGRADER)
    assert formgrader(course).get_assignment(LAB)["average_score"] == 11.5


def test_an_id_is_the_same_in_each_form_of_unicode(course):
    (course.root / "class.csv").write_text("Login\nana\njose\u0301\n")
    for left in ("jos\u00e9", "jose\u0301"):
        (course.root / FILE).write_text(
            WHO_LEFT.replace("eve", left).replace(", first_name: Name", "")
        )
        found = class_list(course.root)
        assert {found.why_not(one) for one in ("jos\u00e9", "jose\u0301")} == {
            "left, according to course.yml"
        }
    (course.root / FILE).write_text(ONLY_ROSTER.replace(", first_name: Name", ""))
    assert class_list(course.root).passed_over(["jos\u00e9", "jose\u0301"]) == {}


def test_check_and_roster_name_learners_who_left(course, capsys):
    (course.root / FILE).write_text(WHO_LEFT.replace("[eve]", "[eve, nobody]"))
    assert command.run(SimpleNamespace(action="check"), course.root) == 1
    said = capsys.readouterr().out
    assert "Skipped, because they left the class: eve, nobody." in said
    assert [line for line in said.splitlines() if line.startswith("? ")] == [
        "? guest is in the gradebook but not in the roster: skipped",
        "? new is in the roster but not in the gradebook: `course roster` adds them",
        "? guest handed in 01_one but is not in the roster: skipped",
        "? nobody is listed in `left`, but no learner has that id",
    ]
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.remove_student("eve")
    command.run(SimpleNamespace(action="roster"), course.root)
    assert "eve: left the class, so not added" in capsys.readouterr().out
    with Gradebook(course.directory.db_url) as gradebook:
        assert "eve" not in {student.id for student in gradebook.students}


def test_a_removed_learner_does_not_return_with_the_next_grading(tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "_executor", lambda *_: Here())
    course = make_small(tmp_path / "course")
    for student in ("ann", "eve"):
        answer(course, student, "score 1", why="because")
    assert run(course)[0] == 0
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.remove_student("eve")
    (course.root / FILE).write_text("left: [eve]")
    status, text = run(course)
    assert (status, count(text, "graded"), count(text, "recorded before")) == (0, 0, 1)
    assert "Skipped: eve (left, according to course.yml). None of their work was deleted." in text
    with Gradebook(course.directory.db_url) as gradebook:
        assert [student.id for student in gradebook.students] == ["ann"]
    assert (course.root / "submitted" / "eve" / HW / f"{HW}.ipynb").is_file()
    with pytest.raises(UserError, match=r"nobody in the class has handed in hw. Skipped: eve"):
        run(course, "--students", "eve")
    (course.root / FILE).write_text("")
    assert count(run(course)[1], "graded") == 1
    (course.root / FILE).write_text("roster: {file: class.csv, id: Login}")
    (course.root / "class.csv").write_text("Login\nann\n")
    assert "Skipped: eve (not in class.csv)" in run(course, "--preview")[1]
