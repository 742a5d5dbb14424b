"""course.yml: its valid content, and the place of each error."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from hood import UserError
from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.text import parse
from hood.classroom.rules.deadline import Period
from hood.classroom.rules.reading import FILE, exercises_of, read_course_file
from hood.classroom.rules.schema import Shown, Withheld
from hood.classroom.rules.sentences import free_sentences, lab_sentences
from hood.learner.contents import PHASES
from hood.phase_paths import ROOT, phases
from tests.hood.classroom.rules.book import make_book
from tests.hood.tiny import write


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_book(tmp_path_factory.mktemp("reading") / "course").root


def read(root, text):
    (root / FILE).write_text(text, encoding="utf-8")
    return read_course_file(root)


def test_no_file_means_no_rules_and_an_empty_one_names_no_lab(root):
    (root / FILE).unlink(missing_ok=True)
    assert read_course_file(root) is None
    assert read(root, "").labs == {}


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (0, []),
        (1, ["1 day of lateness is free, and is spent where it saves most points"]),
        (2, ["2 days of lateness are free, and are spent where they save most points"]),
    ],
)
def test_the_terms_free_days_are_described_in_a_sentence(root, days, said):
    file = read(root, f"late: {{free_days: {days}}}")
    assert list(free_sentences(file)) == [f"In the whole term, {one}." for one in said]


def test_values_are_kept_as_written(root):
    file = read(
        root,
        "sections: {no: {graders: [0123]}}\n"
        "labs:\n"
        "  1: {due: 2026-10-02, grace: 30 min, late: {per_day: 10%, floor: 0.5, last_day: 3}}\n"
        "  two: {release: 2026-10-01 08:15, due: 2026-10-02 23:59:30, withheld: count,\n"
        "        feedback: {misconceptions: after due, examples: never}}\n"
        "  03_three:\n"
        "extensions:\n"
        "  - {who: 0123, lab: one, due: 2026-10-05, why: on}\n",
    )
    assert list(file.labs) == ["01_one", "02_two", "03_three"]
    assert file.sections["no"].graders == ("0123",)
    one, two, three = file.labs.values()
    assert (one.due, one.grace) == (
        datetime(2026, 10, 2, 23, 59, 59),
        Period(elapsed=timedelta(minutes=30)),
    )
    assert one.late.model_dump() == {"per_day": 0.1, "floor": 0.5, "last_day": 3}
    assert (two.release, two.due) == (
        datetime(2026, 10, 1, 8, 15),
        datetime(2026, 10, 2, 23, 59, 30),
    )
    assert (two.withheld, three.withheld) == (Withheld.COUNT, Withheld.EXCLUDE)
    assert (two.feedback.misconceptions, two.feedback.examples) == (Shown.AFTER_DUE, Shown.NEVER)
    [extension] = file.extensions
    assert (extension.who, extension.lab, extension.why) == ("0123", "01_one", "on")


def test_after_the_due_date_means_a_learners_own_due_date(root):
    file = read(
        root,
        "course: {time_zone: Europe/Madrid}\n"
        "labs: {one: {due: 2026-10-02, feedback: {misconceptions: after due, examples: never}},\n"
        "       two: {feedback: {misconceptions: after due}}}\n"
        "extensions: [{who: ana, lab: one, due: 2026-10-05}]\n",
    )
    shows = [  # at midnight in Madrid, 22:00 UTC
        file.shows("misconceptions", "01_one", who, datetime(2026, 10, day, hour, tzinfo=UTC))
        for who in ("ana", "ben")
        for day, hour in ((2, 21), (2, 22), (5, 21), (5, 22))
    ]
    assert shows == [False, False, False, True, False, True, True, True]
    late = datetime(2030, 1, 1, tzinfo=UTC)
    assert not file.shows("examples", "01_one", "ben", late)
    assert not file.shows("misconceptions", "02_two", "ben", late)  # this lab has no due date
    assert file.shows("examples", "02_two", "ben", late)


def test_further_stands_for_all_further_exercises_of_the_lab(root):
    file = read(root, "labs: {one: {drop: first, bonus: further}, 3: {drop: [words, further]}}")
    one, three = file.labs.values()
    assert (one.drop, one.bonus) == (("first",), ("second", "third"))
    assert (three.drop, three.bonus) == (("words", "seventh"), ())
    said = list(lab_sentences(file, "01_one", exercises_of(root, "01_one")))
    assert "These exercises do not count (4 points in the lab): `first`." in said
    bonus = "Bonus (adds points, and is not in the maximum): `second` and `third`."
    assert bonus in said
    assert "In all, 5 points count; the lab has 20." in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "labs: {one: {due: tomorrow}}",
            "1: labs.01_one.due: expected a day such as 2026-09-25, or",
        ),
        ("labs: {one: {due: 2026-13-01}}", "1: labs.01_one.due: expected a day"),
        ("labs: {one: {due: 2026-10-01 10:00+02:00}}", "1: labs.01_one.due: expected a day"),
        ("labs:\n  one:\n    grace: 30", "3: labs.01_one.grace: expected a time such as 30 min"),
        ("labs: {one: {grace: 367 days}}", "1: labs.01_one.grace: expected at most 366 days, got"),
        (f"labs: {{one: {{grace: {'9' * 400} h}}}}", "1: labs.01_one.grace: expected at most 366"),
        ("labs: {one: {due: 9999-12-31}}", "1: labs.01_one.due: expected a year from 1970 to 8999"),
        ("late: {per_day: 10}", "1: late.per_day: expected a share such as 10% or 0.1, got '10'"),
        ("late: {per_day: -1%}", "1: late.per_day: expected a share"),
        ("late:\n  last_day: -1", "2: late.last_day: input should be greater than or equal to 0"),
        ("labs:\n  one:\n    points:\n      first: nan", "4: labs.01_one.points.first: "),
        ("labs:\n  one: {points: {first: -1}}", "2: labs.01_one.points.first: "),
        (
            "labs:\n  one:\n    dorp: [first]",
            "3: labs.01_one.dorp: no such key; expected one of release, due",
        ),
        (
            "roster: {file: a, id: b, lms: c}",
            "1: roster.lms: no such key; expected one of file, id",
        ),
        ("lab: {}", "1: lab: no such key; expected one of course, sections, roster"),
        (
            "labs: {one: {}}\nextensions: [{who: a, lab: one, due: 2026-01-01, to: b}]",
            "2: extensions.to: no such key; expected one of who, lab, due, why",
        ),
        ("labs: {one: {drop: {first: 1}}}", "1: labs.01_one.drop: expected a list, got {'first'"),
        ("extensions: 3", "1: extensions: expected a list, got '3'"),
        ("labs: [one]", "1: labs: expected keys with values, got ['one']"),
        ("labs: one", "1: labs: expected keys with values, got 'one'"),
        ("labs:\n  one: {withheld: give}", "2: labs.01_one.withheld: "),
        ("course: {time_zone: Madrid}", "1: course.time_zone: expected a time zone such as Europe"),
        ("extensions:\n  - {who: ana, lab: one}", "2: extensions.due: is missing"),
        # labs that the course folder does not have
        ("labs:\n  four: {}", "2: labs.four: no lab four in source/"),
        ("labs:\n  one: {drop: [last]}", "2: labs.01_one.drop: 01_one has no exercise 'last'; it"),
        ("labs:\n  one: {bonus: [last]}", "2: labs.01_one.bonus: 01_one has no exercise 'last'"),
        ("labs:\n  one: {points: {last: 1}}", "2: labs.01_one.points: 01_one has no exercise"),
        (
            "labs:\n  two: {drop: further}",
            "2: labs.02_two.drop: 02_two has no further exercises",
        ),
        ("labs:\n  one: {points: {further: 1}}", "2: labs.01_one.points: 01_one has no exercise"),
        (
            "labs:\n  one: {drop: third, bonus: further}",
            "2: labs.01_one.drop: list 'third' only once",
        ),
        (
            "labs:\n  one: {drop: [first], bonus: [first]}",
            "2: labs.01_one.drop: list 'first' only once",
        ),
        ("labs:\n  one: {drop: [first], points: {first: 1}}", "2: labs.01_one.points: 'first' is"),
        (
            "labs:\n  one: {release: 2026-10-02, due: 2026-10-01}",
            "2: labs.01_one.due: expected a due",
        ),
        ("labs: {one: {}}\nextensions: [{who: a, lab: two, due: 2026-01-01}]", "2: extensions.lab"),
        ("labs: {one: {}}\nextensions: [{who: a, lab: one, due: 2026-01-01}]", "2: extensions"),
        (
            "labs: {one: {due: 2026-10-01}}\nextensions: [{who: a, lab: one, due: 2026-10-01}]",
            "2: extensions.due: expected a date after the lab's due date",
        ),
        ("labs: {one: {}}\nexport: {canvas: {items: {two: x}}}", "2: export.canvas.items.02_two"),
        # files that are no course file
        ("labs: {one: {}, 01: {}}", "1: '01' is 01_one, which is already listed here"),
        ("late: {}\nlate: {}", "2: 'late' is listed here twice"),
        ("labs: {one: [}", "1: "),
        ("? [a]\n: b", "1: expected a name before the colon"),
        ("- one", "1: expected keys with values, got ['one']"),
    ],
)
def test_an_error_is_reported_with_its_line(root, text, said):
    with pytest.raises(UserError) as told:
        read(root, text)
    assert str(told.value).startswith(f"{FILE}:{said}")


def test_all_errors_are_reported_at_once(root):
    with pytest.raises(UserError) as told:
        read(root, "late: {per_day: x}\nlabs:\n  one: {dorp: []}\n")
    assert [line.partition(": ")[0] for line in str(told.value).splitlines()] == [
        f"{FILE}:1",
        f"{FILE}:3",
    ]


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff", "can't be read"), (b"\x00", "special characters")]
)
def test_a_file_that_is_no_text_is_refused(root, content, said):
    (root / FILE).write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_course_file(root)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A course folder with the labs' own texts and notebooks."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "phases").symlink_to(ROOT / "phases")
    for phase in phases():
        text = parse(phase.lab.name, phase.lab.read_text(encoding="utf-8"))
        write(to_notebook(text), folder / "source" / phase.name / f"{phase.name}.ipynb")
    return folder


def test_the_guides_example_file_is_valid(texts):
    page = (ROOT / "docs/how-to/rules.md").read_text()
    file = read(texts, page.partition("```yaml\n")[2].partition("```")[0])
    said = list(lab_sentences(file, "01_tensors", exercises_of(texts, "01_tensors")))
    assert "`model_costs` counts 3 points in place of 6." in said
    assert "In all, 30 points count; the lab has 40." in said
    assert file.labs["05_custom_op"].bonus == ("read_ptx", "make_twice", "cpp_softmax")
    assert file.export.canvas.items == {"01_tensors": "Lab 1 (4711)"}


@pytest.mark.parametrize("phase", [one for one in PHASES if one.further], ids=lambda one: one.name)
def test_the_labs_further_exercises_can_be_left_out(texts, phase):
    rules = read(texts, f"labs: {{{phase.number:02d}: {{drop: further}}}}").labs[phase.name]
    text = (ROOT / "phases" / phase.name / "lab.py").read_text()
    assert len(rules.drop) == len(re.findall(r"^# \*Further, ", text, re.MULTILINE))
