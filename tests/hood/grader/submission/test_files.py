"""Reading a submission: every kind of damage gives a message, and nothing blocks."""

import os
import stat
from datetime import datetime
from types import SimpleNamespace

import pytest

from hood.grader.submission import files
from hood.grader.submission.files import (
    MAX_DEPTH,
    MAX_FILES,
    MAX_NOTES,
    files_in,
    read_beside,
    read_file,
    read_notebooks,
    read_timestamp,
    why_no_folder,
)
from hood.grader.submission.names import printable
from hood.grader.submission.notebook import OutOfReach, Unreadable
from tests.hood.tiny import write

NAMES = ["hw.ipynb"]


def read_one(folder):
    return read_notebooks(folder, NAMES)["hw.ipynb"]


def special(kind, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "broken link":
        path.symlink_to("nowhere")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)  # `bind` takes 107 bytes of a path
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(100_000_000)
    return path


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("folder", "is a folder"),
        ("link", "symbolic link"),
        ("broken link", "symbolic link"),
        ("fifo", "not an ordinary file"),
        ("socket", "not an ordinary file"),
        ("huge", "100 MB; at most 50 MB"),
        ("nothing", "No such file"),
    ],
)
def test_an_unreadable_file_gives_a_sentence(tmp_path, kind, says):
    found = read_file(special(kind, tmp_path / "hw.ipynb"))
    assert isinstance(found, Unreadable)
    assert says in str(found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_gives_a_sentence(tmp_path):
    path = write(b"{}", tmp_path / "hw.ipynb")
    path.chmod(0)
    assert "Permission denied" in str(read_file(path))
    with pytest.raises(OutOfReach, match="Permission denied"):
        read_one(tmp_path)


def test_an_ordinary_file_is_its_bytes(tmp_path):
    assert read_file(write(b"{}", tmp_path / "hw.ipynb")) == b"{}"


def test_the_only_other_notebook_is_taken_for_a_missing_one(tmp_path):
    write(b"mine", tmp_path / "my work.ipynb")
    data, note = read_one(tmp_path)
    assert (data, note.kind) == (b"mine", "renamed")
    assert "`my work.ipynb` was graded" in note.message
    write(b"scratch", tmp_path / "scratch.ipynb")
    write(b"PK", tmp_path / "work (1).zip")
    said = str(read_one(tmp_path)[0])
    assert "No notebook named" in said
    assert "Found instead: `my work.ipynb`, `scratch.ipynb`, `work (1).zip`." in said


def test_looking_for_another_notebook_is_bounded(tmp_path, monkeypatch):
    """A learner may have made a folder of a million files."""
    monkeypatch.setattr(files, "MAX_ENTRIES", 10)
    looked = []

    class Entries:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def __iter__(self):
            for number in range(1_000_000):
                looked.append(number)
                yield SimpleNamespace(name=f"{number}.txt")

    monkeypatch.setattr(files.os, "scandir", lambda folder: Entries())
    assert "No notebook named" in str(read_one(tmp_path)[0])
    assert len(looked) == 10


def test_without_a_folder_there_is_no_notebook(tmp_path):
    assert "No notebook named" in str(read_one(tmp_path / "none")[0])


def test_two_missing_notebooks_are_not_guessed(tmp_path):
    write(b"mine", tmp_path / "my work.ipynb")
    for name in ("one.ipynb", "two.ipynb"):
        data, note = read_notebooks(tmp_path, ["one.ipynb", "two.ipynb"])[name]
        assert isinstance(data, Unreadable)
        assert note is None


def test_other_files_are_read_and_omitted_ones_are_named(tmp_path):
    write(b"1", tmp_path / "a.csv")
    write(b"2", tmp_path / "data" / "b.csv")
    write(b"", tmp_path / "__pycache__" / "x.pyc")
    special("link", tmp_path / "link")
    special("fifo", tmp_path / "data" / "pipe")
    (tmp_path / "out").symlink_to("/etc")
    special("huge", tmp_path / "huge")
    write(b"3", tmp_path / os.fsdecode(b"caf\xe9"))
    files, notes = read_beside(tmp_path, ["__pycache__"])
    assert files == {"a.csv": b"1", "data/b.csv": b"2"}
    said = " ".join(note.message for note in notes)
    assert len(notes) == 5
    for words in ("link was left out", "data/pipe", "out was left out", "100 MB", "not UTF-8"):
        assert words in said


def test_files_are_bounded_in_number_in_depth_and_in_all(tmp_path):
    deep = tmp_path / "deep"
    for _ in range(MAX_DEPTH + 5):
        deep = deep / "d"
    write(b"x", deep / "file")
    files, notes = read_beside(tmp_path, [])
    assert files == {}
    assert "too deep" in notes[0].message
    for number in range(MAX_FILES + 5):
        (tmp_path / f"{number:05}").touch()
    files, notes = read_beside(tmp_path, ["deep"])
    assert len(files) == MAX_FILES
    assert "more than 1000" in notes[0].message
    files, notes = read_beside(write(b"12345", tmp_path / "new" / "a").parent, [], most=4)
    assert files == {}
    assert len(notes) == 1


@pytest.mark.parametrize("kind", ["link", "fifo", "huge", "nothing"])
def test_anything_else_in_place_of_the_folder_gives_a_sentence(tmp_path, kind):
    assert why_no_folder(special(kind, tmp_path / "ann" / "hw"))
    assert why_no_folder(tmp_path) is None


def test_a_linked_learners_folder_is_not_followed(tmp_path):
    write(b"{}", tmp_path / "ann" / "hw" / "hw.ipynb")
    (tmp_path / "bob").symlink_to("ann")
    assert "symbolic link" in str(why_no_folder(tmp_path / "bob" / "hw"))
    assert why_no_folder(tmp_path / "ann" / "hw") is None


@pytest.mark.parametrize("theirs", ["nothing", "file", "folder", "a folder for all"])
def test_a_hard_link_is_read_only_if_no_other_user_can_have_made_it(tmp_path, theirs):
    """`cp -al` makes such links for backups. A link by another user is not the learner's fault."""
    submission = tmp_path / "ann" / "hw"
    path = write(b"mine", submission / "hw.ipynb")
    os.link(path, tmp_path / "backup")
    if theirs == "a folder for all":
        submission.chmod(0o777)
    elif theirs != "nothing" and os.geteuid():
        pytest.skip("only root may give files away")
    elif theirs != "nothing":
        os.chown(path if theirs == "file" else submission, 12345, -1)
    [(_, in_exchange)] = files_in(submission, [])
    assert isinstance(in_exchange, OutOfReach)
    if theirs == "nothing":
        assert read_one(submission) == (b"mine", None)
        assert read_beside(submission, [])[0] == {"hw.ipynb": b"mine"}
        return
    for read in (read_one, lambda folder: read_beside(folder, [])):
        with pytest.raises(OutOfReach, match="is a hard link"):
            read(submission)


def test_a_folder_that_becomes_a_link_while_it_is_read_is_not_followed(tmp_path):
    write(b"secret", tmp_path / "theirs" / "b.txt")
    mine = tmp_path / "mine"
    write(b"1", mine / "a.txt")
    write(b"2", mine / "data" / "b.txt")
    reading = files_in(mine, [])
    assert next(reading) == ("a.txt", b"1")
    (mine / "data").rename(tmp_path / "away")
    (mine / "data").symlink_to(tmp_path / "theirs")
    [(name, why)] = reading
    assert name == "data"
    assert isinstance(why, Unreadable)


def test_a_linked_folder_gives_a_sentence(tmp_path):
    write(b"1", tmp_path / "theirs" / "a.txt")
    (tmp_path / "mine").symlink_to("theirs")
    [(_, why)] = files_in(tmp_path / "mine", [])
    assert isinstance(why, Unreadable)


def test_the_start_of_a_large_file_can_be_read(tmp_path):
    assert len(read_file(special("huge", tmp_path / "hw.ipynb"), head=200)) == 200


@pytest.mark.parametrize("kind", ["folder", "link", "fifo", "socket", "huge"])
def test_an_unreadable_time_gives_a_sentence(tmp_path, kind):
    special(kind, tmp_path / "timestamp.txt")
    time, [note] = read_timestamp(tmp_path)
    assert time is None
    assert note.message.startswith("`timestamp.txt` can't be used")


def test_a_time_is_read_and_may_be_missing(tmp_path):
    assert read_timestamp(tmp_path) == (None, [])
    write(b"2026-01-02 10:00:00 UTC\n", tmp_path / "timestamp.txt")
    assert read_timestamp(tmp_path) == (datetime(2026, 1, 2, 10), [])


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf2026-07-01 10:00:00 UTC",
        "2026-07-01 10:00:00 UTC".encode("utf-16"),
        b"2026-07-01 10:00:00",
        b"2026-07-01T10:00:00Z",
        b"2026-07-01 12:00:00.000 +0200",
        b"2026-07-01T12:00:00+02:00",
        b"2026-07-01 12:00:00 Europe/Berlin",
        b"2026-07-01 05:00:00 EST",
        b"Wed, 1 Jul 2026 12:00:00 +0200 (CEST)",
        b"Jul 1, 2026 10:00 AM",
    ],
)
def test_an_unambiguous_time_is_read(tmp_path, text):
    write(text, tmp_path / "timestamp.txt")
    assert read_timestamp(tmp_path) == (datetime(2026, 7, 1, 10), [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"9" * 60 + b"m", "no date and time"),
        (b"yesterday", "no date and time"),
        (b"\xff\xfe", "no date and time"),
        (b"2026-13-45 99:00:00", "no date and time"),
        (b"2026-01-02 10:00:00 UTC" + b" " * 200 + b"and what the cases were", "no date and time"),
        (b"2026-07-01 10:00:00 CEST", "zone is unknown"),
        (b"Wed Jul  1 10:00:00 MESZ 2026", "zone is unknown"),
        (b"2026-07-01 10:00:00 Europe/Nowhere", "zone is unknown"),
        (b"2026-07-01 10:00:00 CET", "zone can be read in two ways"),
        (b"2026-07-01 10:00:00 GMT+2", "zone can be read in two ways"),
        (b"2026-10-25 02:30:00 Europe/Berlin", "zone can be read in two ways"),
        (b"05/04/2026 10:00", "date is incomplete or can be read in two ways"),
        (b"04.05.2026 10:00", "date is incomplete or can be read in two ways"),
        (b"01-02-03 10:00", "date is incomplete or can be read in two ways"),
        (b"10:00 UTC", "date is incomplete or can be read in two ways"),
        (b"1 July 10:00", "date is incomplete or can be read in two ways"),
        (b"\xef\xbb\xbf", "has no date and time"),
        (b"9999-12-31 23:59 -0800", "has no date and time"),
        (b"9999-12-31 23:59:59 UTC", "has no date and time"),  # the year 10000 in Madrid
        (b"0001-01-01 00:00:00 UTC", "has no date and time"),
    ],
)
def test_an_ambiguous_time_is_ignored_and_reported_to_its_learner(tmp_path, text, says):
    write(text, tmp_path / "timestamp.txt")
    time, [note] = read_timestamp(tmp_path)
    assert time is None
    assert says in note.message


def test_a_thousand_accepted_files_need_no_note(tmp_path):
    for number in range(MAX_FILES):
        (tmp_path / f"{number:05}").touch()
    write(b"{}", tmp_path / "lab.ipynb")
    files, notes = read_beside(tmp_path, ["*.ipynb"])
    assert (len(files), notes) == (MAX_FILES, [])


def test_there_are_few_notes_on_omitted_files(tmp_path):
    for number in range(100):
        (tmp_path / f"{number:05}").symlink_to("/etc")
    _, notes = read_beside(tmp_path, [])
    assert len(notes) == MAX_NOTES + 1
    assert notes[-1].message == "80 further files were left out."


def test_an_operating_systems_own_file_is_ignored(tmp_path):
    write(b"mine", tmp_path / "hw (1).ipynb")
    write(b"\0\5\x16\7", tmp_path / "._hw (1).ipynb")
    assert read_one(tmp_path)[0] == b"mine"


def test_copies_beside_the_notebook_are_named(tmp_path):
    write(b"mine", tmp_path / "hw.ipynb")
    write(b"scratch", tmp_path / "scratch.ipynb")
    assert read_one(tmp_path) == (b"mine", None)
    write(b"work", tmp_path / "hw-Copy1.ipynb")
    data, note = read_one(tmp_path)
    assert (data, note.kind) == (b"mine", "another")
    assert "`hw-Copy1.ipynb`" in note.message


def test_names_are_compared_and_given_in_one_form_of_unicode(tmp_path):
    write(b"1", tmp_path / "donne\u0301es.csv")
    write(b"mine", tmp_path / "pra\u0301ctica.ipynb")
    assert read_beside(tmp_path, ["*.ipynb"]) == ({"donn\xe9es.csv": b"1"}, [])
    found = read_notebooks(tmp_path, ["pr\xe1ctica.ipynb", "other.ipynb"])
    assert found["pr\xe1ctica.ipynb"] == (b"mine", None)
    write(b"2", tmp_path / "donn\xe9es.csv")
    files, [note] = read_beside(tmp_path, ["*.ipynb"])
    assert files == {"donn\xe9es.csv": b"2"}
    assert note.message.startswith("donn\xe9es.csv was left out: another file has the same name")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("jose\u0301 (1).ipynb", "jos\xe9 (1).ipynb"),
        ("\u0939\u093f\u0902\u0926\u0940.csv", "\u0939\u093f\u0902\u0926\u0940.csv"),
        ("\x1b[2J\u202e`<b>\udce9", "??2J???b??"),
    ],
)
def test_a_name_is_shown_as_a_terminal_can_show_it(name, shown):
    assert printable(name) == shown
