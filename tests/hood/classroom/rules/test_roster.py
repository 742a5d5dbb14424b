"""The roster, ``course check``, and which lab may be released."""

from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.exchange.default import ExchangeError

from hood import UserError
from hood.classroom.hand_ins.exchange import Collect, ReleaseAssignment, ReleaseFeedback
from hood.classroom.nbgrader import guard
from hood.classroom.results import command
from hood.classroom.rules.reading import FILE, course_id, read_course_file
from hood.classroom.rules.roster import read_roster
from hood.grader.course import open_course
from hood.phase_paths import ROOT
from tests.hood.classroom.rules.book import make_book

RULES = """
sections: {A: {graders: [marta, ben]}, B: {}}
roster: {file: class.csv, id: SIS Login ID, last_name: Student, canvas: ID, section: Section}
labs: {one: {due: 2026-10-02}}
extensions: [{who: ana, lab: one, due: 2026-10-05}]
"""
CANVAS = """\ufeffStudent,ID,SIS Login ID,Section
    Points Possible,,,
"Luján, Ana",901,ana,A
"Ruiz, Ben", 902 ,ben,B
"""


@pytest.fixture
def course(tmp_path):
    made = make_book(tmp_path / "course")
    (made.root / FILE).write_text(RULES)
    (made.root / "class.csv").write_text(CANVAS)
    return made


def do(course, action):
    return command.run(SimpleNamespace(action=action), course.root)


def students(course):
    with Gradebook(course.directory.db_url) as gradebook:
        return {one.id: (one.last_name, one.lms_user_id) for one in gradebook.students}


def test_the_class_is_entered_and_changes_are_reported(course, capsys):
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.add_student("ben", last_name="Rui", email="ben@example.org")
        gradebook.add_student("guest")
    assert do(course, "roster") == 0
    assert capsys.readouterr().out.splitlines() == [
        "ana: new",
        "ben: last_name was Rui; lms_user_id was empty",
        "guest: not in the roster, so skipped; stays in the gradebook",
        "2 learners; see the 3 lines above.",
    ]
    after = {"ana": ("Luján, Ana", "901"), "ben": ("Ruiz, Ben", "902"), "guest": (None, None)}
    assert students(course) == after
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.find_student("ben").email == "ben@example.org"
    assert do(course, "roster") == 0  # nothing is left to change
    assert capsys.readouterr().out.splitlines()[-1] == "2 learners; see the line above."


def test_check_explains_the_file_and_names_unknown_learners(course, capsys):
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.add_student("guest")
    (course.root / "submitted" / "eve" / "01_one").mkdir(parents=True)
    (course.root / FILE).write_text(RULES.replace("who: ana", "who: anna"))
    assert do(course, "check") == 1
    said = capsys.readouterr().out.splitlines()
    assert "The written answers of section A are marked by marta, ben." in said
    assert "  Due on 2 October 2026, 23:59." in said
    assert "  Lateness costs nothing." in said
    assert "  In all, 20 points count; the lab has 20." in said
    assert "  anna has an extension until 5 October 2026, 23:59." in said
    assert [line for line in said if line.startswith("? ")] == [
        "? guest is in the gradebook but not in the roster: skipped",
        "? ana is in the roster but not in the gradebook: `course roster` adds them",
        "? ben is in the roster but not in the gradebook: `course roster` adds them",
        "? course.yml gives anna an extension of 01_one, but no learner has that id",
        "? eve handed in 01_one but is not in the roster: skipped",
    ]


def test_an_extension_in_the_gradebook_is_named_if_the_file_has_its_own_dates(course, capsys):
    do(course, "roster")
    with Gradebook(course.directory.db_url) as gradebook:
        for lab in ("01_one", "02_two"):  # with the second file, the gradebook's dates count
            gradebook.update_or_create_submission(lab, "ben")
            gradebook.grant_extension(lab, "ben", days=1)
    capsys.readouterr()
    assert do(course, "check") == 1
    asked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("? ")]
    assert asked == [
        "? ben has an extension of 01_one in the gradebook, but only `extensions` in course.yml "
        "count",
        "? 01_one: The submission has no time, so it counts as in time. To set a time, write it "
        "into submitted/LEARNER/01_one/timestamp.txt, such as “2026-04-05 10:00:00 UTC”. Or get "
        "the "
        "times from Moodle or Canvas: see docs/how-to/collect-from-an-lms.md",
    ]


def test_check_asks_nothing_if_all_lists_agree(course, capsys):
    do(course, "roster")
    assert do(course, "check") == 0
    assert "2 learners in class.csv." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (CANVAS.replace("SIS Login ID", "Login"), "has no column 'SIS Login ID'; it has: "),
        (
            CANVAS + "x,1,ana,A\n",
            r"class.csv:5, column 'SIS Login ID': ana is listed twice",
        ),
        (CANVAS.replace("ben,B", "ben,B,x"), r"class.csv:4: expected 4 cells"),
        (
            CANVAS.replace("ben,B", "ben,C"),
            "ben is in the section 'C'; `sections` in course.yml has: A, B",
        ),
        (CANVAS.replace("ben,B", "../ben,B"), "'../ben' is not an id: an id can't have '/'"),
    ],
)
def test_a_roster_with_an_error_changes_nothing(course, table, said):
    (course.root / "class.csv").write_text(table)
    with pytest.raises(UserError, match=said):
        do(course, "roster")
    assert students(course) == {}


def test_a_roster_saved_by_excel_is_entered_and_guesses_are_reported(course, capsys):
    rows = [("Student", "ID ", "SIS Login ID", "Section"), ("Luján, Ana", "901", "ana", "A")]
    text = "\r\n".join(map(";".join, [*rows, ("Ruiz, Ben", "902", "ben", "B"), ("",) * 4]))
    (course.root / "class.csv").write_bytes(text.encode("cp1252"))
    assert do(course, "roster") == 0
    assert students(course) == {"ana": ("Luján, Ana", "901"), "ben": ("Ruiz, Ben", "902")}
    assert "class.csv is not in UTF-8, so it was read as Windows-1252" in capsys.readouterr().out
    assert do(course, "check") == 0
    assert "it was read as Windows-1252" in capsys.readouterr().out


def test_an_encoding_that_cannot_be_detected_must_be_in_the_course_file(course, capsys):
    rows = [("Student", "ID", "SIS Login ID", "Section"), ("Żółć, Łukasz", "901", "ana", "A")]
    text = "\r\n".join(map(";".join, [*rows, ("Ruiz, Ben", "902", "łuk", "B")]))
    (course.root / "class.csv").write_bytes(text.encode("cp1250"))
    with pytest.raises(UserError, match="class.csv:3, column 'SIS Login ID': the letters of '³uk'"):
        do(course, "roster")  # no learner gets an id that a guess has made
    assert students(course) == {}
    rules = RULES.replace("file: class.csv", "file: class.csv, encoding: windows-1250")
    (course.root / FILE).write_text(rules)
    assert do(course, "roster") == 0
    assert students(course) == {"ana": ("Żółć, Łukasz", "901"), "łuk": ("Ruiz, Ben", "902")}
    assert "was read as" not in capsys.readouterr().out
    (course.root / FILE).write_text(rules.replace("windows-1250", "ascii"))
    with pytest.raises(UserError, match="class.csv is not in ascii, although `encoding` says so"):
        do(course, "roster")
    (course.root / FILE).write_text(rules.replace("windows-1250", "excel"))
    with pytest.raises(UserError, match="expected an encoding such as windows-1250, got 'excel'"):
        do(course, "roster")


def test_a_missing_roster_is_reported(course):
    (course.root / "class.csv").unlink()
    with pytest.raises(UserError, match="class.csv can't be read"):
        read_roster(course.root, read_course_file(course.root))


@pytest.mark.parametrize(("lab", "is_released"), [("01_one", True), ("02_two", False)])
def test_a_lab_that_the_file_does_not_name_is_not_released(
    course, tmp_path, caplog, lab, is_released
):
    rules = RULES.replace("due: 2026-10-02", "release: 2999-01-01, due: 2999-10-02")
    (course.root / FILE).write_text(rules.replace("due: 2026-10-05", "due: 2999-10-05"))
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    source = course.root / "source" / lab / f"{lab}.ipynb"
    (course.root / "release" / lab).mkdir(parents=True)
    (course.root / "release" / lab / source.name).write_bytes(source.read_bytes())
    course.config.Exchange.root = str(exchange)
    course.directory.course_id = "made-up"
    course.directory.assignment_id = lab
    step = ReleaseAssignment(coursedir=course.directory, config=course.config)
    if is_released:
        step.log.propagate = True
        step.start()
        assert (
            "course.yml releases 01_one only on 1 January 2999, but the lab is released now"
            in caplog.text
        )
    else:
        with pytest.raises(Exception, match="02_two is not a lab of this class"):
            step.start()
    assert bool(list(exchange.rglob("*.ipynb"))) == is_released


@pytest.mark.parametrize("step", [Collect, ReleaseAssignment, ReleaseFeedback])
def test_the_exchange_uses_the_id_from_the_class_file(course, step, caplog):
    (course.root / FILE).write_text("labs: {01: {}}\ncourse:\n  id: pytorch-2026\n")
    assert course_id(course.root) == "pytorch-2026"
    course.directory.course_id = "another"
    course.directory.assignment_id = "01_one"
    exchange = step(coursedir=course.directory, config=course.config)
    exchange.log.propagate = True
    with pytest.raises(ExchangeError):
        exchange.start()
    assert "course.yml:3: course.id is 'pytorch-2026', but nbgrader's settings" in caplog.text
    assert "have 'another'" in caplog.text
    (course.root / FILE).write_text("course: {id: a/b}")
    assert course_id(course.root) == ""
    with pytest.raises(ExchangeError):
        exchange.start()
    assert "course.yml:1: course.id: expected an id of letters" in caplog.text


def test_check_reports_different_ids(course, capsys):
    (course.root / FILE).write_text("course: {id: pytorch-2026}\nlabs: {}")
    assert do(course, "check") == 1
    printed = capsys.readouterr().out
    assert "under the course id pytorch-2026." in printed
    assert "? course.yml:1: course.id is 'pytorch-2026'" in printed


def test_this_projects_settings_use_the_classs_id(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text())
    assert open_course(tmp_path).directory.course_id == "open-the-hood"
    (tmp_path / FILE).write_text("course: {id: pytorch-2026}")
    assert open_course(tmp_path).directory.course_id == "pytorch-2026"


@pytest.mark.parametrize(
    ("lab", "said"),
    [
        ("01_one", ""),
        ("02_two", "course.yml releases 02_two only on 1 January 2999"),
        (
            "03_three",
            "03_three is not a lab of this class: `labs` in course.yml has 01_one, 02_two",
        ),
    ],
)
def test_a_lab_before_its_release_date_is_generated_with_a_notice(
    course, lab, said, monkeypatch, caplog
):
    (course.root / FILE).write_text("labs: {01: {}, 02: {release: 2999-01-01}}")
    done = []
    monkeypatch.setattr(guard, "_start_generating", done.append)
    course.directory.assignment_id = lab
    step = GenerateAssignment(coursedir=course.directory, config=course.config)
    step.log.propagate = True
    caplog.set_level("WARNING", logger=step.log.name)  # which another test may have set higher
    guard._generate(step)
    assert done == [step]
    assert said in caplog.text
    assert bool(said) == ("course.yml" in caplog.text)
