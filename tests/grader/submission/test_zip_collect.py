"""`nbgrader zip_collect` on a download from an LMS among which some archives are hostile."""

import bz2
import gzip
import io
import os
import stat
import tarfile
import zipfile

import nbformat
import pytest
from nbgrader.api import Gradebook

from tests.grader.tiny import (
    LAB,
    make_course,
    nbgrader,
    released,
    solved,
    source_notebook,
    write,
)

pytestmark = [pytest.mark.slow(15), pytest.mark.filterwarnings("ignore:Duplicate name")]

NAMED = r".*/(?P<student_id>[^/]+)_attempt_(?P<timestamp>[-0-9]+)[^/]*/(?P<file_id>.+)"
PLAIN = r".*/(?P<student_id>[^/]+)_file_[^/]*/(?:[ab]/|work_)?(?P<file_id>.+)"
NOTEBOOK = f"{LAB}.ipynb"
MINE = nbformat.writes(solved(released(source_notebook()))).encode()
FORGED = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
MIB = 1 << 20


def zipped(files, compression=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return packed.getvalue()


def link(name, target):
    """A member of a zip file that unpackers make a symbolic link of."""
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


def unreadable(name):
    """A member that unpackers make a file of that nobody may open."""
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
    """A zip file of a few kilobytes whose notebook has so many megabytes."""
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
        # puts a later attempt of somebody else into its own archive
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


def course_with(folder, files, named):
    course = make_course(folder)
    config = course / "nbgrader_config.py"
    config.write_text(
        config.read_text() + f"\nc.FileNameCollectorPlugin.named_regexp = {named!r}\n"
    )
    write(source_notebook(), course / "source" / LAB / NOTEBOOK)
    write(released(source_notebook()), course / "release" / LAB / NOTEBOOK)
    Gradebook(f"sqlite:///{course / 'gradebook.db'}").close()
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


def everything(course):
    return {path for path in course.rglob("*") if "__pycache__" not in path.parts}


def test_the_command_comes_to_its_end(collected):
    _, done, _ = collected
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr


HONEST = ["honest", "plain", "eve", "long", "mode"]


@pytest.mark.parametrize("student", HONEST)
def test_what_a_learner_handed_in_is_collected(collected, student):
    course, _, _ = collected
    assert (course / "submitted" / student / LAB / NOTEBOOK).read_bytes() == MINE
    time = (course / "submitted" / student / LAB / "timestamp.txt").read_text()
    assert time.startswith("2026-01-02")


def test_nobody_else_hands_anything_in_and_no_file_lies_elsewhere(collected):
    course, _, new = collected
    assert set(os.listdir(course / "submitted")) <= {*HONEST, "twice", "tar-through"}
    places = (course / "submitted", course / "downloaded" / LAB / "extracted")
    assert [p for p in new if p.is_file() and not any(map(p.is_relative_to, places))] == []
    assert not any(path.is_symlink() or path.stat().st_size > MIB for path in new)


@pytest.mark.parametrize(
    ("student", "says"),
    [
        ("eve", "found within an archive"),
        ("up", "leads out of the archive"),
        ("folder", "leads out of the archive"),
        ("root", "leads out of the archive"),
        ("backslash", "leads out of the archive"),
        ("link", "is not an ordinary file"),
        ("tar-link", "is not an ordinary file"),
        ("tar-hard", "is not an ordinary file"),
        ("tar-through", "is not an ordinary file"),
        ("tar-pipe", "is not an ordinary file"),
        ("bomb", "holds more than 50 MB"),
        ("tar-bomb", "holds more than 50 MB"),
        ("clash", "could not be unpacked"),
        ("many", "more than 1000 files"),
        ("broken", "could not be unpacked"),
        ("crc", "could not be unpacked"),
        ("locked", "could not be unpacked"),
        ("no-archive", "neither a zip nor a tar file"),
        ("no-tar", "neither a zip nor a tar file"),
        ("bzip", "neither a zip nor a tar file"),
        ("deep", "path is too long"),
        ("long", "path is too long"),
        ("..", "student_id is no name"),
        ("linked", "is a symbolic link"),
    ],
)
def test_what_is_left_out_is_said(collected, student, says):
    _, done, _ = collected
    lines = [line for line in done.stderr.splitlines() if f"{student}_attempt" in line]
    assert any(says in line for line in lines), lines


def test_names_that_only_a_pattern_makes_of_a_path_do_no_harm(tmp_path):
    """The same notebook twice in an archive without a time, of which nbgrader could choose none,
    and a part of a name that becomes a way up.
    """

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
    assert "leads elsewhere" in done.stderr
