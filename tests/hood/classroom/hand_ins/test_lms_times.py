"""The times of a class's hand-ins: from Moodle's worksheet, Canvas's API, and Canvas's LATE."""

import json
from zoneinfo import ZoneInfo

import pytest

from hood import UserError
from hood.classroom.formats.tables import table_of
from hood.classroom.hand_ins.lms import lms_names
from hood.classroom.hand_ins.lms_times import LmsTimes, read_words
from tests.hood.classroom.hand_ins.test_zip_collect import (
    BESIDE,
    MINE,
    NOTEBOOK,
    course_with,
    moodle,
    zipped,
)
from tests.hood.tiny import LAB, nbgrader

MADRID = ZoneInfo("Europe/Madrid")
RULES = f"""\
course: {{time_zone: Europe/Madrid}}
late: {{per_day: 10%}}
labs: {{{LAB}: {{due: 2026-09-25}}}}
extensions: [{{who: jose, lab: {LAB}, due: 2026-09-28 12:00}}]
"""


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "Friday, 25 September 2026, 11:58 PM"),
        ("en", "Friday, September 25, 2026, 11:58 p.m."),
        ("en", "2026-09-25 23:58"),
        ("ca", "divendres, 25 de setembre 2026, 23:58"),
        ("cs", "pátek, 25. září 2026, 23.58"),
        ("de", "Freitag, 25. September 2026, 23:58"),
        ("es", "viernes, 25 de septiembre de 2026, 23:58"),
        ("fr", "vendredi 25 septembre 2026, 23:58"),
        ("it", "venerdì, 25 settembre 2026, 23:58"),
        ("nl", "vrijdag 25 september 2026, 23:58"),
        ("pt", "sexta-feira, 25 de setembro de 2026 às 23:58"),
        ("pt_BR", "sexta-feira, 25 set. 2026, 23:58"),
        ("sv", "fredag, 25 september 2026, 23:58"),
    ],
)
def test_moodles_dates_are_read_in_the_language_of_its_column(language, said):
    assert str(read_words(said, language, MADRID)) == "2026-09-25 21:58:00"


def test_midnight_and_noon_are_read_from_a_12_hour_clock():
    at = "Saturday, 26 September 2026, 12:05"
    assert str(read_words(f"{at} AM", "en", MADRID)) == "2026-09-25 22:05:00"
    assert str(read_words(f"{at} PM", "en", MADRID)) == "2026-09-26 10:05:00"


@pytest.mark.parametrize(
    ("language", "said", "why"),
    [
        ("en", "Friday, 25 September 2026, 8:52", "morning or in the afternoon"),
        ("en", "Friday, 25 September 2026, 13:52 PM", "not between 1 and 12"),
        ("de", "Montag, 25. September 2026, 23:58", "a different day of the week"),
        ("es", "domingo, 25 de octubre de 2026, 02:30", "the clocks changed"),
        ("es", "domingo, 29 de marzo de 2026, 02:30", "the clocks changed"),
        ("en", "04/05/2026, 23:58", "in two ways"),
        ("en", "25 September, 23:58", "expected one day and one year"),
        ("en", "31 September 2026, 23:58", "day"),
        ("de", "vendredi 25 septembre 2026, 23:58", "no date and time"),
        ("en", "yesterday", "no date and time"),
    ],
)
def test_an_ambiguous_or_unreadable_time_is_refused(language, said, why):
    with pytest.raises(ValueError, match=why):
        read_words(said, language, MADRID)


def test_another_row_can_show_a_24_hour_clock():
    rows = 'Participant 1,"Friday, 25 September 2026, 8:52"\nParticipant 2,'
    heads = "Identifier,Last modified (submission)\n"
    for later, expected in (("20:10", "2026-09-25 06:52:00"), ("8:10", "None")):
        times = LmsTimes(MADRID)
        data = f'{heads}{rows}"Friday, 25 September 2026, {later}"\n'
        assert times.add_table(table_of(data.encode(), "sheet.csv"))
        [one] = lms_names("A B_1_assignsubmission_file_")
        assert str(times.of(one)) == expected


def test_times_without_a_zone_or_twice_for_one_learner_are_not_used():
    data = b'Identifier,Last modified (submission)\nParticipant 1,"25 September 2026, 23:58"\n'
    [one] = lms_names("A B_1_assignsubmission_file_")
    times = LmsTimes(None)
    times.add_table(table_of(data, "sheet.csv"))
    assert times.of(one) is None
    assert "no course.yml" in times.said[0]
    times = LmsTimes(MADRID)
    times.add_table(table_of(data, "sheet.csv"))
    times.add_table(table_of(data.replace(b":58", b":59"), "other.csv"))
    assert times.of(one) is None
    assert any("two different times" in said for said in times.said)


@pytest.mark.parametrize(
    "data",
    [b"[1]", b"{}", b"\xff", b"[" * 100_000, b'[{"user_id": 1}]']
    + [b'[{"user_id": 1, "submitted_at": "2026-09-25T21:58:00"}]']  # in which zone?
    + [b'[{"user_id": 1, "submitted_at": "0001-01-01T00:00:00+14:00"}]']  # before the first year
    + [b'[{"user_id": 1, "submitted_at": 5}]'],
)
def test_other_json_is_refused_with_the_expected_form(data):
    with pytest.raises(UserError, match="Canvas's API"):
        LmsTimes(MADRID).add_list("list.json", data)


def test_no_time_of_a_refused_list_is_used():
    times = LmsTimes(MADRID)
    listed = [{"user_id": 17, "submitted_at": "2026-09-25T21:58:00Z"}, {"user_id": 18}]
    with pytest.raises(UserError):
        times.add_list("list.json", json.dumps(listed).encode())
    assert times.of(lms_names("ebertann_17_4710_lab.ipynb")[0]) is None


def test_lists_of_two_assignments_are_refused():
    times = LmsTimes(MADRID)
    times.add_list("1.json", b'[{"user_id": 1, "submitted_at": null, "assignment_id": 7}]')
    with pytest.raises(UserError, match="one assignment, got several: 7, 8"):
        times.add_list("2.json", b'[{"user_id": 1, "submitted_at": null, "assignment_id": 8}]')


def moodle_class(course):
    sheet = (
        "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Bestwertung,"
        '"Bewertung kann geändert werden","Zuletzt geändert (Abgabe)",'
        '"Zuletzt geändert (Bewertung)"\n'
        'Teilnehmer/in101,"Ann Ebert",a@x,"Zur Bewertung abgegeben",,7,Ja,'
        '"Samstag, 26. September 2026, 00:10",-\n'
        'Teilnehmer/in103,"José Núñez",j@x,"Zur Bewertung abgegeben",,7,Ja,'
        '"Freitag, 25. September 2026, 23:59",-\n'
        'Teilnehmer/in104,"Zoë Müller-Lüdenscheidt",z@x,"Zur Bewertung abgegeben",,7,Ja,'
        '"Sonntag, 25. September 2026, 23:59",-\n'
        'Teilnehmer/in111,"Eve Il",e@x,"Keine Abgabe",,7,Ja,-,-\n'
    )
    (course / "course.yml").write_text(RULES)
    names = [
        ("Ann Ebert_101", NOTEBOOK, MINE),
        ("Ann Ebert_101", "helper.py", BESIDE),
        ("José Núñez_103", NOTEBOOK, MINE),
        ("Zoë Müller-Lüdenscheidt_104", NOTEBOOK, MINE),
    ]
    return {
        "ML-Lab-5533.zip": moodle(names, "assignsubmission_file_/"),
        "Bewertungen-ML-Lab-5533.csv": ("\ufeff" + sheet).encode(),
        "notes.csv": b"Name,Remark\nAnn,was ill\n",
    }


def times_in(course):
    """The written times, by learner."""
    found = (course / "submitted").glob(f"*/{LAB}/timestamp.txt")
    return {path.parts[-3]: path.read_text() for path in found}


@pytest.mark.slow(15)
def test_a_moodle_class_has_its_times_and_missing_ones_are_counted(tmp_path):
    course = course_with(tmp_path / "course", moodle_class)
    done = nbgrader(course, "zip_collect", LAB)
    assert done.returncode == 0, done.stderr
    assert times_in(course) == {"ann": "2026-09-25 22:10:00", "jose": "2026-09-25 21:59:00"}
    for said in (
        "2 hand-in times were read. Moodle gives no seconds. The class's time zone, Europe/Madrid",
        "Teilnehmer/in104, 'Sonntag, 25. September 2026, 23:59' is not used",
        "notes.csv was ignored",
        "1 of 3 submissions has no time, so it counts as in time; the others have a time",
    ):
        assert said in done.stderr, said


def canvas_class(course):
    (course / "course.yml").write_text(RULES)
    names = [
        f"ebertann_LATE_17_4710_{NOTEBOOK}",
        f"nezjos_LATE_16_4712_{NOTEBOOK}",
        f"ileve_66_4719_{NOTEBOOK}",
    ]
    return {
        "submissions.zip": zipped([(name, MINE) for name in names]),
        "grades.csv": b'Student,ID,SIS Login ID\n"N, J",16,jose@uni.example\n',
    }


@pytest.mark.slow(15)
@pytest.mark.parametrize(
    ("late_as", "ann", "jose"),
    [
        ("2 days", "2026-09-27 21:59:59", "2026-09-30 10:00:00"),  # jose has until the 28th, noon
        ("2026-09-27 18:00", "2026-09-27 16:00:00", "2026-09-27 16:00:00"),
    ],
)
def test_a_learner_whom_canvas_calls_late_gets_the_instructors_time(tmp_path, late_as, ann, jose):
    course = course_with(tmp_path / "course", canvas_class)
    done = nbgrader(course, "zip_collect", LAB)
    assert "Canvas marks these learners as late, but gives no time: ann, jose." in done.stderr
    assert (
        "3 of 3 submissions have no time, so they count as in time. To set a time, write"
        in done.stderr
    )
    assert times_in(course) == {}
    words = ["zip_collect", LAB, "--force", f"--CarefulCollector.late_as={late_as}"]
    done = nbgrader(course, *words)
    assert done.returncode == 0, done.stderr
    assert times_in(course) == {"ann": ann, "jose": jose}
    assert (
        f"Canvas marks these learners as late; their time is set to {late_as!r}: ann, jose"
        in done.stderr
    )
    assert "1 of 3 submissions has no time" in done.stderr
    wrong = nbgrader(course, *words[:3], "--CarefulCollector.late_as=soon")
    assert wrong.returncode == 1
    assert "late_as is 'soon': expected how long after the due date" in wrong.stderr
    assert "Traceback" not in wrong.stderr


@pytest.mark.slow(15)
def test_a_time_written_by_hand_stays_while_the_files_are_unchanged(tmp_path):
    course = course_with(tmp_path / "course", canvas_class)
    nbgrader(course, "zip_collect", LAB)
    for student in ("ann", "eve"):
        path = course / "submitted" / student / LAB / "timestamp.txt"
        path.write_text("2026-09-28 10:00:00 UTC")
    (course / "submitted" / "eve" / LAB / NOTEBOOK).write_bytes(BESIDE)  # an earlier hand-in
    done = nbgrader(course, "zip_collect", LAB, "--force")
    assert done.returncode == 0, done.stderr
    assert times_in(course) == {"ann": "2026-09-28 10:00:00"}
    assert "The time in timestamp.txt was kept for ann\n" in done.stderr
    assert "Canvas marks these learners as late, but gives no time: jose." in done.stderr


@pytest.mark.slow(15)
def test_canvas_api_list_has_the_times(tmp_path):
    def with_list(course):
        listed = [
            {"id": 1, "user_id": 17, "assignment_id": 5, "submitted_at": "2026-09-26T08:00:00Z"},
            {"id": 2, "user_id": 66, "assignment_id": 5, "submitted_at": "2026-09-25T08:00:00Z"},
            {"id": 3, "user_id": 99, "assignment_id": 5, "submitted_at": None},
        ]
        more = {"submissions.json": b"while(1);" + json.dumps(listed).encode()}
        return canvas_class(course) | more

    course = course_with(tmp_path / "course", with_list)
    done = nbgrader(course, "zip_collect", LAB, "--CarefulCollector.late_as=1 day")
    assert done.returncode == 0, done.stderr
    assert times_in(course) == {
        "ann": "2026-09-26 08:00:00",  # Canvas's time takes precedence over an assumed one
        "eve": "2026-09-25 08:00:00",
        "jose": "2026-09-29 10:00:00",
    }
    assert "their time is set to '1 day': jose" in done.stderr
    assert "no time" not in done.stderr
