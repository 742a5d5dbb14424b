"""`nbgrader zip_collect` on a download from an LMS with some hostile archives."""

import bz2
import gzip
import io
import os
import re
import stat
import tarfile
import unicodedata
import zipfile

import nbformat
import pytest
from nbgrader.api import Gradebook

from tests.hood.tiny import LAB, make_course, nbgrader, released, solved, source_notebook, write

pytestmark = [pytest.mark.slow(15), pytest.mark.filterwarnings("ignore:Duplicate name")]

NAMED = r".*/(?P<student_id>[^/]+)_attempt_(?P<timestamp>[-0-9]+)[^/]*/(?P<file_id>.+)"
PLAIN = r".*/(?P<student_id>[^/]+)_file_[^/]*/(?:[ab]/|work_)?(?P<file_id>.+)"
NOTEBOOK = f"{LAB}.ipynb"
MINE = nbformat.writes(solved(released(source_notebook()))).encode()
FORGED = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
# The other files beside a notebook. One of these files is a table that would give Bob's id to Eve.
BESIDE = b"Identifier,Full name,ID number\nParticipant 111,Eve Il,bob\n"
MIB = 1 << 20
ROSTER = {
    "ann": {"first_name": "Ann", "last_name": "Ebert", "lms_user_id": "17"},
    "jose": {"first_name": "José", "last_name": "Núñez", "email": "jose@uni.example"},
    "zoe": {"first_name": "Zoë", "last_name": "Müller-Lüdenscheidt"},
    "mary": {"first_name": "Mary_Ann", "last_name": "O'Hara"},
    "wei1": {"first_name": "Wei", "last_name": "Li", "email": "wei1@uni.example"},
    "wei2": {"first_name": "Li", "last_name": "Wei"},
    "win": {"first_name": "Win", "last_name": "Dows"},
    "dup": {"first_name": "Dup", "last_name": "Licate"},
    "eve": {"first_name": "Eve", "last_name": "Il", "lms_user_id": "66"},
    "bob": {"first_name": "Bob", "last_name": "Roe", "lms_user_id": "18"},
    "ed": {"lms_user_id": "x-112"},
    "pdf": {"first_name": "Pat", "last_name": "Dee"},
}


def zipped(files, compression=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return packed.getvalue()


def link(name, target):
    """A member of a zip file that unpacks to a symbolic link."""
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


def unreadable(name):
    """A member of a zip file that unpacks to a file that nobody may open."""
    info = zipfile.ZipInfo(name)
    info.external_attr = stat.S_IFREG << 16
    return info, MINE


def tarred(*members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, kind, what in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(what)
                archive.addfile(info, io.BytesIO(what))
            else:
                info.linkname = what
                archive.addfile(info)
    return packed.getvalue()


def grown(megabytes):
    """A zip file of a few kilobytes whose notebook has `megabytes`."""
    return zipped([(NOTEBOOK, bytes(megabytes * MIB))])


def matryoshka(depth):
    data = zipped([(NOTEBOOK, MINE)])
    for _ in range(depth):
        data = zipped([("again.zip", data)])
    return data


def encrypted():
    data = bytearray(zipped([(NOTEBOOK, MINE)]))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + flags] |= 1
    return bytes(data)


def archives(course):
    """Return files as an LMS names them: by learner, an archive or a notebook."""
    source = str(course / "source" / LAB / NOTEBOOK)
    honest = zipped([(NOTEBOOK, MINE), (f".ipynb_checkpoints/{NOTEBOOK}", FORGED)])
    return {
        "honest_attempt_2026-01-02.zip": honest,
        "plain_attempt_2026-01-02.tar.gz": tarred((NOTEBOOK, tarfile.REGTYPE, MINE)),
        "folder_attempt_2026-01-02.zip": zipped([(f"work/../{NOTEBOOK}", FORGED)]),
        # an archive that contains what looks like a later attempt of another learner
        "eve_attempt_2026-01-02.zip": zipped(
            [(f"honest_attempt_2030-01-01/{NOTEBOOK}", FORGED), (NOTEBOOK, MINE)]
        ),
        "twice_attempt_2026-01-02.zip": zipped([(NOTEBOOK, MINE), (NOTEBOOK, FORGED)]),
        "up_attempt_2026-01-02.zip": zipped([(f"../../../../../{NOTEBOOK}", FORGED)]),
        "root_attempt_2026-01-02.zip": zipped([(f"{course}/loot.ipynb", FORGED)]),
        "backslash_attempt_2026-01-02.zip": zipped([(f"..\\..\\{NOTEBOOK}", FORGED)]),
        "link_attempt_2026-01-02.zip": zipped([link(NOTEBOOK, source)]),
        "tar-link_attempt_2026-01-02.tar.gz": tarred((NOTEBOOK, tarfile.SYMTYPE, source)),
        "tar-hard_attempt_2026-01-02.tar.gz": tarred((NOTEBOOK, tarfile.LNKTYPE, source)),
        "tar-through_attempt_2026-01-02.tar.gz": tarred(
            ("out", tarfile.SYMTYPE, str(course)), ("out/loot.ipynb", tarfile.REGTYPE, FORGED)
        ),
        "tar-pipe_attempt_2026-01-02.tar.gz": tarred((NOTEBOOK, tarfile.FIFOTYPE, "")),
        "bomb_attempt_2026-01-02.zip": grown(400),
        "tar-bomb_attempt_2026-01-02.tar.gz": gzip.compress(bytes(400 * MIB), 1),
        "nested_attempt_2026-01-02.zip": matryoshka(30),
        "many_attempt_2026-01-02.zip": zipped([(f"{k}.txt", b"") for k in range(20_000)]),
        "mode_attempt_2026-01-02.zip": zipped([unreadable(NOTEBOOK)]),
        "broken_attempt_2026-01-02.zip": honest[:-40],
        "crc_attempt_2026-01-02.zip": zipped([(NOTEBOOK, MINE)], zipfile.ZIP_STORED).replace(
            b"twice", b"TWICE", 1
        ),
        "locked_attempt_2026-01-02.zip": encrypted(),
        "no-archive_attempt_2026-01-02.zip": b"PK no archive",
        "no-tar_attempt_2026-01-02.gz": gzip.compress(MINE),
        "bzip_attempt_2026-01-02.gz": bz2.compress(MINE),
        "clash_attempt_2026-01-02.zip": zipped([("a", b""), (f"a/{NOTEBOOK}", MINE)]),
        "long_attempt_2026-01-02.zip": zipped([("n" * 300 + ".ipynb", MINE), (NOTEBOOK, MINE)]),
        "deep_attempt_2026-01-02.zip": zipped([("d/" * 2000 + NOTEBOOK, MINE)]),
        "empty_attempt_2026-01-02.zip": zipped([]),
        ".._attempt_2026-01-02.zip": zipped([(NOTEBOOK, FORGED)]),
        "odd-name_attempt_2026-01-02.zip": zipped([("..ipynb", MINE)]),
    }


def course_with(folder, files, named=""):
    course = make_course(folder)
    if named:
        with (course / "nbgrader_config.py").open("a") as config:
            config.write(f"\nc.FileNameCollectorPlugin.named_regexp = {named!r}\n")
    write(source_notebook(), course / "source" / LAB / NOTEBOOK)
    write(released(source_notebook()), course / "release" / LAB / NOTEBOOK)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student, known in ROSTER.items():
            gradebook.add_student(student, **known)
    for name, data in files(course).items():
        write(data, course / "downloaded" / LAB / "archive" / name)
    return course


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A course, and the output of `nbgrader zip_collect` in it."""
    course = course_with(tmp_path_factory.mktemp("zip") / "course", archives, NAMED)
    os.symlink(
        course / "source" / LAB / NOTEBOOK,
        course / "downloaded" / LAB / "archive" / "linked_attempt_2026-01-02.ipynb",
    )
    before = everything(course)
    done = nbgrader(course, "zip_collect", LAB)
    return course, done, everything(course) - before


def digests(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def everything(course):
    return {path for path in course.rglob("*") if "__pycache__" not in path.parts}


def test_the_command_finishes(collected):
    _, done, _ = collected
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr


HONEST = ["honest", "plain", "eve", "long", "mode"]


@pytest.mark.parametrize("student", HONEST)
def test_submissions_are_collected(collected, student):
    course, _, _ = collected
    assert (course / "submitted" / student / LAB / NOTEBOOK).read_bytes() == MINE
    time = (course / "submitted" / student / LAB / "timestamp.txt").read_text()
    assert time.startswith("2026-01-02")


def test_no_other_submission_appears_and_no_file_lies_elsewhere(collected):
    course, _, new = collected
    assert set(os.listdir(course / "submitted")) <= {*HONEST, "twice", "tar-through"}
    places = (course / "submitted", course / "downloaded" / LAB / "extracted")
    assert [p for p in new if p.is_file() and not any(map(p.is_relative_to, places))] == []
    assert not any(path.is_symlink() or path.stat().st_size > MIB for path in new)


@pytest.mark.parametrize(
    ("student", "says"),
    [
        ("eve", "comes from inside an archive"),
        ("up", "leads out of the archive"),
        ("folder", "leads out of the archive"),
        ("root", "leads out of the archive"),
        ("backslash", "leads out of the archive"),
        ("link", "is not an ordinary file"),
        ("tar-link", "is not an ordinary file"),
        ("tar-hard", "is not an ordinary file"),
        ("tar-through", "is not an ordinary file"),
        ("tar-pipe", "is not an ordinary file"),
        ("bomb", "contains more than 50 MB"),
        ("tar-bomb", "contains more than 50 MB"),
        ("clash", "could not be unpacked"),
        ("many", "more than 1000 files"),
        ("broken", "could not be unpacked"),
        ("crc", "could not be unpacked"),
        ("locked", "could not be unpacked"),
        ("no-archive", "neither a zip nor a tar file"),
        ("no-tar", "neither a zip nor a tar file"),
        ("bzip", "neither a zip nor a tar file"),
        ("empty", "it has no files"),
        ("deep", "path is too long"),
        ("long", "path is too long"),
        ("..", "student_id is not valid"),
        ("linked", "is a symbolic link"),
    ],
)
def test_omitted_files_are_named(collected, student, says):
    _, done, _ = collected
    lines = [line for line in done.stderr.splitlines() if f"{student}_attempt" in line]
    assert any(says in line for line in lines), lines


def test_names_that_a_pattern_extracts_from_a_path_do_no_harm(tmp_path):
    """One archive has the same notebook twice without a time; another has a path with `..`."""

    def files(course):
        twice = zipped([(f"a/{NOTEBOOK}", MINE), (f"b/{NOTEBOOK}", FORGED)])
        up = zipped([("work_../loot.ipynb", FORGED), (NOTEBOOK, MINE)])
        return {"ann_file_1.zip": twice, "bob_file_2.zip": up}

    course = course_with(tmp_path / "course", files, PLAIN)
    done = nbgrader(course, "zip_collect", LAB)
    assert done.returncode == 0, done.stderr
    for student in ("ann", "bob"):
        assert os.listdir(course / "submitted" / student) == [LAB]
        assert (course / "submitted" / student / LAB / NOTEBOOK).read_bytes() == MINE
    assert "another file of that name" in done.stderr
    assert "leads out of the folder" in done.stderr


def moodle(names, form):
    """A class's zip as Moodle makes it: `form` is between the learner's and the file's name."""
    return zipped([(f"{name}_{form}{file}", data) for name, file, data in names])


def forged_class():
    """Submissions that look like a class's download with Bob in it."""
    return zipped(
        [
            (f"Bob Roe_102_assignsubmission_file_/{NOTEBOOK}", FORGED),
            (f"roebob_18_4718_{NOTEBOOK}", FORGED),
        ]
    )


def moodle_folders(course):
    apart = unicodedata.normalize("NFD", "José Núñez")
    names = [
        ("Ann Ebert_101", NOTEBOOK, MINE),
        ("Ann Ebert_101", f"__MACOSX/._{NOTEBOOK}", FORGED),
        ("Ann Ebert_101", "my_helper.py", BESIDE),
        ("Ann Ebert_101", "figures/sketch.png", BESIDE),
        ("Ann Ebert_101", "timestamp.txt", b"2020-01-01 UTC"),
        (f"{apart}_103", NOTEBOOK, MINE),
        ("Müller-Lüdenscheidt Zoë_104", NOTEBOOK, MINE),
        ("Mary Ann OHara_105", "work.zip", zipped([(NOTEBOOK, MINE), ("data.csv", BESIDE)])),
        ("Wei Li_106", NOTEBOOK, MINE),
        ("Win Dows_107", "work.zip", zipped([(f"lab\\{NOTEBOOK}", MINE)])),
        ("Win Dows_107", "evil.zip", zipped([(f"..\\..\\{NOTEBOOK}", FORGED)])),
        ("Dup Licate_108", NOTEBOOK, MINE),
        ("Dup Licate_109", NOTEBOOK, FORGED),
        ("Pat Dee_110", "answer.pdf", b"%PDF"),
        ("Eve Il_111", f"Bob Roe_102_assignsubmission_file_/{NOTEBOOK}", FORGED),
        ("Eve Il_111", "submissions.zip", forged_class()),
        ("Eve Il_111", NOTEBOOK, bytes(60 * MIB)),
        ("Stran Ger_112", NOTEBOOK, MINE),
        ("Not Hing_113", "", b""),  # the folder alone
        ("Mac Only_114", f"__MACOSX/._{NOTEBOOK}", FORGED),
        ("Ano Ther_115", "work.zip", zipped([("lab/", b""), ("lab/.DS_Store", b"")])),
        ("Lon Ger_116", "d/" * 600 + NOTEBOOK, MINE),
        *(("Man Y_117", f"{k}/{NOTEBOOK}", b"") for k in range(1001)),
    ]
    return {"ML_1-Lab-5533.zip": moodle(names, "assignsubmission_file_/")}


def moodle_flat(course):
    sheet = (
        "Identifier,Full name,ID number,Email address,Status,Grade\n"
        "Participant 101,A. Ebert,ann,,Submitted,wei1@uni.example\n"
        "Participant 106,Wei Li,,WEI1@uni.example,Submitted,\n"
        "Participant 104,Zoë Müller-Lüdenscheidt,,,Submitted,\n"
        "Participant 112,Ed,x-112,,Submitted,\n"
        "Participant 107,Win Dows,,another.win@uni.example,Submitted,\n"
    )
    forged = BESIDE.decode()
    names = [
        ("A. Ebert_101", NOTEBOOK, MINE),
        ("Ann Ebert_150", NOTEBOOK, FORGED),
        ("Zoë Müller-Lüdenscheidt_104", NOTEBOOK, MINE),
        ("Wei Li_106", NOTEBOOK, MINE),
        ("Ed_112", NOTEBOOK, MINE),
        ("Win Dows_107", NOTEBOOK, MINE),
    ]
    by_hand = {f"Eve Il_111_assignsubmission_file_{NOTEBOOK}": MINE}
    by_hand["Eve Il_111_assignsubmission_file_worksheet.csv"] = forged.encode()
    by_hand["Eve Il_111_assignsubmission_file_.netrc"] = BESIDE
    by_hand["Eve Il_111_assignsubmission_file_again.zip"] = forged_class()
    return {
        "ML-Lab-5533.zip": moodle(names, "assignsubmission_file_"),
        "Grades-ML-Lab.csv": ("\ufeff" + sheet).encode(),
        **by_hand,
    }


def canvas(course):
    sheet = (
        "Student,ID,SIS User ID,SIS Login ID,Section,99 tiny\n"
        "    Points Possible,,,,,7\n"
        '"Núñez, José",16,x16,jose@uni.example,A,\n'
    )
    empty = zipped([("99_tiny/", b"")])
    names = [
        f"ebertann_17_66_{NOTEBOOK}",  # the file's number is Eve's own
        "ebertann_17_4710_data.csv",
        "n_16_LATE_16_4712_99_tiny-1.ipynb",
        f"müllerlüdenscheidtzoë_19_4713_{NOTEBOOK}",
        f"liwei_20_4714_{NOTEBOOK}",
        f"roebob_18_66_4715_{NOTEBOOK}",  # Eve, with Bob's number in her display name
        f"ileve_66_4719_x_18_5_{NOTEBOOK}",
        f"eberta_nn_21_4716_{NOTEBOOK}",  # another learner with Ann's name
        f"LATE_anon_aB3_4717_{NOTEBOOK}",
    ]
    return {
        "submissions.zip": zipped(
            [(name, MINE if name.endswith(".ipynb") else BESIDE) for name in names]
            + [("dupontlea_24_4720_99_tiny.zip", empty)]
        ),
        "hingnot_25_4721_99_tiny.zip": empty,
        "2026-01-02_Grades-ML.csv": sheet.replace(",", ";")
        .replace("Núñez; ", "Núñez, ")
        .encode("utf-16"),
        "notes.csv": b'of, "no table',
        "ileve_66_4718_homework.zip": forged_class(),
    }


DOWNLOADS = {
    moodle_folders: (
        {"ann", "jose", "zoe", "mary", "win/lab", "eve/Bob Roe_102_assignsubmission_file_"}
        | {"eve/roebob_18_4718_"},
        {"ann/my_helper.py", "ann/figures/sketch.png", "mary/data.csv"},
        {
            "timestamp.txt": "would set the time of the hand-in",
            "Wei Li_106": "may belong to wei1 or wei2",
            "Dup Licate_108": "the student dup also matches 109 in the LMS",
            "Dup Licate_109": "the student dup also matches 108 in the LMS",
            "Stran Ger_112": "no student in the gradebook has the number or the name in "
            "the file's name",
            "Pat Dee_110": "no file of this learner ends in .ipynb",
            "Eve Il_111": "contains more than 50 MB",
            "evil.zip": "leads out of the archive",
            "Not Hing_113": "it has no files",
            "Mac Only_114": "it has no files except ignored ones, such as Mac "
            "Only_114_assignsubmission_file_/_",
            "Ano Ther_115": "it has no files except ignored ones, such as lab/.DS_Store",
            "Lon Ger_116": "its path is too long",
            "Man Y_117": "there are more than 1000 files",
            "Man Y_117_assignsubmission_file_/0": "(and for 999 more files of this learner)",
        },
    ),
    moodle_flat: (
        {"ann", "zoe", "wei1", "ed", "eve", "eve/Bob Roe_102_assignsubmission_file_"}
        | {"eve/roebob_18_4718_"},
        {"eve/worksheet.csv"},
        {
            ".netrc": "its name begins with a dot",
            "Win Dows_107": "the LMS's table has an id or address for the number 107 in the "
            "file's name, but no student in the gradebook has this id or address",
            "Ann Ebert_150": "the student ann also matches 101 in the LMS",
        },
    ),
    canvas: (
        {"ann", "jose", "zoe", "eve/Bob Roe_102_assignsubmission_file_", "eve/roebob_18_4718_"},
        {"ann/data.csv"},
        {
            "liwei_20": "may belong to wei1 or wei2",
            "roebob_18_66": "can be read in several ways",
            "ileve_66_4719": "can be read in several ways",
            "eberta_nn_21": "no student in the gradebook has the number or the name in "
            "the file's name",
            "LATE_anon_aB3": "no student in the gradebook has the number or the name in "
            "the file's name",
            "dupontlea_24": "it has no files",
            "hingnot_25": "it has no files",
        },
    ),
}


@pytest.mark.parametrize("download", DOWNLOADS)
def test_a_classs_download_is_matched_to_the_roster_and_nothing_is_lost(tmp_path, download):
    course = course_with(tmp_path / "course", download)
    archive = course / "downloaded" / LAB / "archive"
    before = digests(archive)
    done = nbgrader(course, "zip_collect", LAB)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    whose, beside, left = DOWNLOADS[download]
    submitted = course / "submitted"
    found = {path.relative_to(submitted) for path in submitted.rglob("*.ipynb")}
    places = [path.as_posix().replace(f"/{LAB}/", "/", 1) for path in found]
    assert {re.sub(r"/?(99_tiny(-1)?.ipynb)$", "", place) for place in places} == whose
    for path in found:
        of_eve = "Roe" in str(path) or "roebob" in str(path)
        assert (submitted / path).read_bytes() == (FORGED if of_eve else MINE)
    others = {p for p in submitted.rglob("*") if p.is_file()} - {submitted / one for one in found}
    names = {path.relative_to(submitted).as_posix() for path in others}
    assert {name.replace(f"/{LAB}/", "/", 1) for name in names} == beside
    assert {path.read_bytes() for path in others} == {BESIDE}
    listed = done.stderr.partition("Not collected, and still in downloaded/:")[2].splitlines()
    for name, why in left.items():
        assert any(name in line and why in line for line in listed), (name, listed)
    assert len(listed) == len(left) + 2
    assert digests(archive) == before
    assert ("gives no time: jose" in done.stderr) == (download is canvas)
    assert ("a class's download, with 16 learners" in done.stderr) == (download is moodle_folders)
