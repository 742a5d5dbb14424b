"""What is kept of each hand-in; test_kill.py tests kills of the service during a hand-in."""

import hashlib
import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from hood.classroom.hand_ins import store as module
from hood.classroom.hand_ins.store import FILE_STAMP, STAMP, HandIns
from hood.classroom.rules.schema import ClassRules, HandInRule
from hood.classroom.service.inbox import Inbox, again
from hood.grader.course import open_course
from hood.lab_words import BLANK
from tests.hood.classroom.service.test_kill import left_by, put_back
from tests.hood.tiny import LAB, write

DUE = datetime(2026, 9, 25, 18, tzinfo=UTC)
RULES = ClassRules.model_validate(
    {"late": {"per_day": "10%", "last_day": 7}, "labs": {LAB: {"due": "2026-09-25 18:00"}}}
)


@pytest.fixture
def course(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    return open_course(tmp_path)


def lay(course, days, data=b"{}", **files):
    """Put a hand-in into `submitted/`, replacing the earlier one; None for no time."""
    folder = course.folder("submitted", "ana", LAB)
    shutil.rmtree(folder, ignore_errors=True)
    write(data, folder / f"{LAB}.ipynb")
    for name, content in files.items():
        write(content, folder / "data" / f"{name}.csv")
    if days is not None:
        at = DUE + timedelta(days=days)
        write(at.strftime(STAMP).encode(), folder / "timestamp.txt")
    return folder


def kept(course):
    return HandIns(course).of("ana", LAB)


def take(course, data, rules=RULES):
    store = HandIns(course)
    path = store.arriving()
    path.write_bytes(data)
    return store.take(rules, "ana", LAB, path)


def test_a_hand_in_is_kept_once_with_all_its_files(course):
    folder = lay(course, -1, b"first", a=b"1", b=b"2")
    write(b"secret", folder / "submission_secret.txt")
    one = HandIns(course).keep(RULES, "ana", LAB)
    assert HandIns(course).keep(RULES, "ana", LAB) == one
    [found] = kept(course)
    assert found.at == DUE - timedelta(days=1)
    with found.folder(LAB) as inside:
        names = {path.relative_to(inside).as_posix() for path in inside.rglob("*")}
    assert names == {
        *("data", "data/a.csv", "data/b.csv", f"{LAB}.ipynb"),
        *("timestamp.txt", "submission_secret.txt"),
    }


def test_changed_files_make_a_new_hand_in_and_a_changed_secret_does_not(course):
    lay(course, -1, b"x", a=b"1")
    HandIns(course).keep(RULES, "ana", LAB)
    folder = lay(course, -1, b"x", a=b"1")
    write(b"another", folder / "submission_secret.txt")
    HandIns(course).keep(RULES, "ana", LAB)
    assert len(kept(course)) == 1
    lay(course, -1, b"x", a=b"2")
    HandIns(course).keep(RULES, "ana", LAB)
    assert len(kept(course)) == 2


def test_the_same_work_with_a_time_found_later_is_one_hand_in(course):
    lay(course, None, b"x")
    HandIns(course).keep(RULES, "ana", LAB)
    lay(course, 2, b"x")
    HandIns(course).keep(RULES, "ana", LAB)
    assert [one.at for one in kept(course)] == [DUE + timedelta(days=2)]
    lay(course, None, b"x")
    HandIns(course).keep(RULES, "ana", LAB)
    assert [one.at for one in kept(course)] == [DUE + timedelta(days=2)]


def test_the_service_keeps_a_replaced_hand_in_and_leaves_no_file_of_it(course):
    folder = lay(course, -1, b"first", a=b"1")
    taken = take(course, b"second")
    assert {one.name for one in folder.iterdir()} == {f"{LAB}.ipynb", "timestamp.txt"}
    first, second = kept(course)
    assert (first.path / "data" / "a.csv").read_bytes() == b"1"
    assert (second.at, second.path.read_bytes()) == (taken.at, b"second")
    with second.folder(LAB) as inside:
        assert (inside / f"{LAB}.ipynb").read_bytes() == b"second"


def test_a_repeated_hand_in_is_stored_once_with_its_time(course):
    first = take(course, b"same")
    again = take(course, b"same")
    assert (again.at, again.again) == (first.at, True)
    assert len(kept(course)) == 1
    take(course, b"other")
    assert not take(course, b"same").again
    assert len(kept(course)) == 3
    assert [hashlib.sha256(one.path.read_bytes()).hexdigest() for one in kept(course)][::2] == [
        first.sha256,
        first.sha256,
    ]


def test_beyond_the_limit_the_hand_ins_that_may_count_stay(course, monkeypatch, caplog):
    monkeypatch.setattr(module, "MOST", 4)
    store = HandIns(course)
    for number, days in enumerate((-3, -2, -1, 1, 1.5, 22, 23, 24)):
        lay(course, days, b"%d" % number)
        store.keep(RULES, "ana", LAB)
    days = [(one.at - DUE) / timedelta(days=1) for one in kept(course)]
    assert days == [-1, 1, 1.5, 24]
    assert "is removed" in caplog.text
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    lay(course, 25, b"x" * 900)
    store.keep(RULES, "ana", LAB)
    assert [(one.at - DUE) / timedelta(days=1) for one in kept(course)] == [-1, 1, 25]


def test_after_a_kill_a_hand_in_is_whole_or_absent(course):
    lay(course, -1, b"first", a=b"1", b=b"2")
    HandIns(course).keep(RULES, "ana", LAB)
    lay(course, 1, b"second" * 1000, a=b"3", b=b"4")
    states = left_by(
        course.root,
        ("hand_ins/store.py", "submission/companions.py"),
        lambda tell: tell(HandIns(course).keep(RULES, "ana", LAB).name),
    )
    for files, _ in states:
        put_back(course.root, files)
        HandIns(course).finish()
        HandIns(course).keep(RULES, "ana", LAB)  # as the next step does
        first, second = kept(course)
        for one, notebook, data in ((first, b"first", b"1"), (second, b"second" * 1000, b"3")):
            assert (one.path / f"{LAB}.ipynb").read_bytes() == notebook
            assert (one.path / "data" / "a.csv").read_bytes() == data
            assert (one.path / "data" / "b.csv").is_file()
    assert len(states) > 4


def test_hand_ins_kept_by_an_earlier_version_count(course):
    path = write(
        b"{}", course.root / "received" / LAB / "ana" / f"{DUE.strftime(FILE_STAMP)}.ipynb"
    )
    write(b"", path.with_name(".hidden"))
    write(b"", path.with_name("notes.txt"))
    [one] = kept(course)
    assert one.at == DUE


RECEIPTS = {
    "best": "You handed in twice: the hand-in of 24 September 2026, 18:00, counts.",
    "last": "You handed in twice: the hand-in of",
}


@pytest.mark.parametrize("rule", RECEIPTS)
def test_the_receipt_says_which_hand_in_counts(course, rule):
    rules = RULES.model_copy(update={"hand_ins": HandInRule(rule)})
    lay(course, -1, json.dumps({str(number): blank for number, blank in enumerate(BLANK)}).encode())
    inbox = Inbox(course)
    newest = inbox.newest(rules, "ana", LAB)
    assert newest.blank == len(BLANK)
    more = again(rules, "ana", newest, DUE + timedelta(days=22))
    assert more.late
    assert more.said.startswith(
        f"You handed in {LAB} on 24 September 2026, 18:00 (UTC). A new hand-in"
    )
    assert inbox.newest(rules, "bo", LAB) is None
    path = inbox.arriving()
    path.write_bytes(b"new")
    receipt = inbox.take(rules, "ana", LAB, path)
    assert receipt.late
    assert receipt.said.startswith(RECEIPTS[rule])
    path = inbox.arriving()
    path.write_bytes(b"new")
    assert inbox.take(rules, "ana", LAB, path).said.startswith(
        "This notebook is the same as your hand-in"
    )


@pytest.mark.parametrize("year", ["0999", "0050", "1066"])
def test_an_old_time_does_not_bypass_the_limits(course, monkeypatch, year):
    monkeypatch.setattr(module, "MOST", 3)
    store, folder = HandIns(course), course.root / "received" / LAB / "ana"
    for number in range(6):
        write(f"{year}-12-2{number} 10:00 UTC".encode(), lay(course, None) / "timestamp.txt")
        store.keep(RULES, "ana", LAB)
        one = store.keep(RULES, "ana", LAB)
        assert one == kept(course)[-1]
        store.keep_other(RULES, "ana", LAB, one.at.replace(tzinfo=None), {"other.csv": b"1"})
    assert len(list(folder.iterdir())) == 3
