"""If a new hand-in only adds a request for a regrade, the earlier time counts."""

import shutil
from datetime import datetime

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook

from hood.classroom.feedback.page import EARLIER, About, render
from hood.classroom.gradebook.exercises import added_by, is_answer
from hood.classroom.gradebook.graded import ReasonKind, read_class
from hood.classroom.gradebook.regrade import only_asks
from hood.classroom.recording.writer import Writer
from hood.grader.batch.grading import grade
from hood.grader.submission.rebuild import (
    LEARNERS,
    RECORDED,
    answer_cells,
    as_recorded,
    released_texts,
)
from hood.grader.submission.released import remember
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.recording.running import graded, run
from tests.hood.classroom.recording.small import HW, answered, enter, job_of, make_small, source
from tests.hood.tiny import write

FIRST, LATER, LATEST = (datetime(2026, 1, day, 10) for day in (2, 9, 12))
ASKS = "Regrade: my answer is right"


@pytest.fixture
def course(tmp_path):
    return make_small(tmp_path / "course")


def hand_in(course, when, *, answer="score 1", why="because", asks="", files=None, change=None):
    """Hand in a notebook at a time, with a request below the graded cell."""
    nb = answered(answer, why)
    if asks:
        nb.cells.insert(2, new_markdown_cell(asks))
    if change:
        change(nb)
    folder = course.root / "submitted" / "ann" / HW
    shutil.rmtree(folder, ignore_errors=True)
    path = write(nb, folder / f"{HW}.ipynb")
    path.with_name("timestamp.txt").write_text(f"{when} UTC")
    for name, data in (files or {}).items():
        write(data, folder / name)


def counts(course):
    """Return the time that counts."""
    with Gradebook(course.directory.db_url) as gradebook:
        return gradebook.find_submission(HW, "ann").timestamp


def test_if_only_a_request_is_new_the_earlier_time_counts_and_is_reported(course, here):
    hand_in(course, FIRST)
    run(course)
    assert counts(course) == FIRST
    hand_in(course, LATER, asks=ASKS)
    assert run(course)[0] == 0
    assert counts(course) == FIRST
    nb = graded(course.root, "ann", HW)
    assert EARLIER in words(render(nb, About()))
    [one] = read_class(course, HW)
    [reason] = [reason for reason in one.reasons() if reason.kind is ReasonKind.REGRADE]
    assert "nothing else is new, so the earlier time counts" in reason.text
    assert "recorded before, skipped   1" in run(course)[1]
    hand_in(course, LATEST, asks="Regrade: see above, please")  # once more
    run(course)
    assert counts(course) == FIRST
    hand_in(course, LATEST, asks=ASKS, answer="score 2")
    run(course)
    assert counts(course) == LATEST
    assert EARLIER not in words(render(graded(course.root, "ann", HW), About()))


def test_the_exchanges_own_file_beside_a_hand_in_is_no_change(course, here):
    hand_in(course, FIRST, files={"submission_secret.txt": b"1"})
    run(course)
    hand_in(course, LATER, asks=ASKS, files={"submission_secret.txt": b"2"})
    assert run(course)[0] == 0
    assert counts(course) == FIRST
    beside = course.folder("autograded", "ann", HW) / "submission_secret.txt"
    assert beside.read_bytes() == b"2"  # release_feedback needs it


def test_the_earlier_time_stays_when_a_changed_lab_is_graded_again(course, here):
    hand_in(course, FIRST)
    run(course)
    hand_in(course, LATER, asks=ASKS)
    run(course)
    nb = source()
    nb.cells[1].source = "test(1)"
    nb.cells.insert(1, new_code_cell("import math"))
    write(nb, course.root / "source" / HW / f"{HW}.ipynb")
    enter(course)
    assert run(course, "--regrade")[0] == 0
    assert counts(course) == FIRST


CHANGES = {
    "another answer": {"answer": "score 2"},
    "another answer in words": {"why": "because of something else"},
    "a cell of code": {"change": lambda nb: nb.cells.insert(0, new_code_cell("x = 1"))},
    "a text": {"change": lambda nb: nb.cells.append(new_markdown_cell("see also"))},
    "a file": {"files": {"data.csv": b"1"}},
    "a module": {"files": {"helper.py": b"x = 1"}},
    "no request": {"asks": ""},
    "a request in code": {"asks": "", "change": lambda nb: nb.cells.append(new_code_cell(ASKS))},
    "a missing answer": {"change": lambda nb: nb.cells.pop(0)},
}


@pytest.mark.parametrize("kind", CHANGES)
def test_any_other_change_makes_the_new_time_count(course, here, kind):
    hand_in(course, FIRST)
    run(course)
    hand_in(course, LATER, **{"asks": ASKS} | CHANGES[kind])
    run(course)
    assert counts(course) == LATER


@pytest.mark.parametrize("name", ["helper.py", "data.csv"])
def test_the_files_that_the_code_could_read_must_be_known(course, here, name):
    hand_in(course, FIRST, files={name: b"1"})
    run(course)
    hand_in(course, LATER, asks=ASKS)
    run(course)
    assert counts(course) == LATER


def test_a_move_of_a_cell_is_a_change(course, here):
    def with_cells(*texts):
        return lambda nb: nb.cells.extend(map(new_code_cell, texts))

    hand_in(course, FIRST, change=with_cells("x = 1", "x = 2"))
    run(course)
    hand_in(course, LATER, asks=ASKS, change=with_cells("x = 2", "x = 1"))
    run(course)
    assert counts(course) == LATER


def test_files_of_an_unrecorded_grade_prove_nothing(course, here):
    """The grader was killed after it replaced the files, and before it recorded the grade."""
    hand_in(course, FIRST)
    run(course)
    hand_in(course, LATER, answer="score 2")
    path = course.folder("autograded", "ann", HW) / f"{HW}.ipynb"
    path.unlink()
    path.write_bytes(grade(job_of(course, "ann")).notebooks[0].data)
    hand_in(course, LATEST, answer="score 2", asks=ASKS)
    run(course)
    assert counts(course) == LATEST


def test_an_unknown_earlier_time_and_a_later_one_change_nothing(course, here):
    hand_in(course, FIRST)
    (course.root / "submitted" / "ann" / HW / "timestamp.txt").unlink()
    run(course)
    hand_in(course, LATER, asks=ASKS)
    run(course)
    assert counts(course) == LATER


def test_below_a_question_without_an_answer_cell_a_request_is_an_answer(tmp_path):
    nb = as_recorded(source())
    about = {"grade": False, "solution": False, "locked": True, "task": True, "grade_id": "explain"}
    about |= {"points": 2, "schema_version": 3}
    nb.cells = [nb.cells[1], new_markdown_cell("Explain.", metadata={"nbgrader": about})]
    before = write(nb, tmp_path / "lab.ipynb")
    asks = new_markdown_cell(ASKS, metadata={"open_the_hood": {"by": "learner"}})
    below_code, below_task = nbformat.from_dict(nb), nbformat.from_dict(nb)
    below_code.cells = [nb.cells[0], asks, nb.cells[1]]
    below_task.cells = [*nb.cells, asks]
    found = [
        only_asks([(nbformat.writes(one).encode(), before)]) for one in (below_code, below_task, nb)
    ]
    assert found == [True, False, False]


def in_small_lab(change):
    """Return a changed source of the small lab, with a question in words before each cell."""
    nb = source()
    nb.cells.insert(0, new_markdown_cell("## 1\n\nSet the score.", id="question"))
    nb.cells.insert(2, new_code_cell("x = 1", id="try"))
    about = {"grade": False, "solution": False, "locked": True, "task": True, "grade_id": "explain"}
    about |= {"points": 2, "schema_version": 3}
    nb.cells.append(new_markdown_cell("Explain.", id="explain", metadata={"nbgrader": about}))
    nb.cells.append(new_markdown_cell("*Your answer.*", id="below"))
    change(nb)
    return nb


def nothing(nb):
    """Leave the lab as it is."""


def a_sentence(nb):
    nb.cells[0].source = "## 1\n\nSet the score, please."


def each_text(nb):
    nb.cells[0].source = "## One\n\nSet it."
    nb.cells[2].source = "y = 2"
    nb.cells.insert(3, new_code_cell("z = 3", id="another"))
    nb.cells[-2].source = "Explain it in other words."
    nb.cells[-1].source = "*Write here.*"


def copy_of(course):
    """Return the released lab, answered."""
    path = course.root / "source" / HW / f"{HW}.ipynb"
    nb = nbformat.read(path, as_version=4)
    for step in (*RECORDED, *LEARNERS):
        nb, _ = step(config=course.config).preprocess(nb, {})
    nb.cells[1].source = "score 1"
    return nb


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("changed", [a_sentence, each_text])
def test_a_changed_text_of_the_lab_is_not_the_learners_work(course, here, changed, remembered):
    def lab(change):
        write(in_small_lab(change), course.root / "source" / HW / f"{HW}.ipynb")

    def hand_in_copy(nb, when):
        path = write(nb, course.root / "submitted" / "ann" / HW / f"{HW}.ipynb")
        path.with_name("timestamp.txt").write_text(f"{when} UTC")

    shutil.rmtree(course.root / "source" / HW)
    (course.root / "gradebook.db").unlink()
    lab(nothing)
    enter(course)
    old = copy_of(course)
    hand_in_copy(old, FIRST)
    run(course)
    assert counts(course) == FIRST
    if not remembered:  # as in a class graded before texts were recorded
        shutil.rmtree(course.root / ".released")
    lab(changed)
    enter(course)
    asking = nbformat.from_dict(old)
    asking.cells.insert(4, new_markdown_cell(ASKS))
    hand_in_copy(asking, LATER)
    assert run(course, "--only-new")[0] == 0
    assert counts(course) == FIRST
    nb = graded(course.root, "ann", HW)
    own = [cell.source for cell in nb.cells if added_by(cell) == "learner"]
    assert own == [ASKS]
    texts = [c for c in in_small_lab(changed).cells if c.cell_type == "markdown"]
    questions = [
        c.source for c in texts if c.source != "Why?"
    ]  # from which the learner's stub comes
    shown = [c.source for c in nb.cells if c.cell_type == "markdown" and not is_answer(c)]
    assert shown == questions
    mine = nbformat.from_dict(asking)
    mine.cells[-1].source = "Since it is."
    hand_in_copy(mine, LATEST)
    run(course, "--only-new")
    assert counts(course) == LATEST
    nb = graded(course.root, "ann", HW)
    assert [cell.source for cell in answer_cells(nb, "explain")] == ["Since it is."]


@pytest.mark.parametrize("late", ["xyxxy", "x", ""], ids=["a message", "put back", "left out"])
@pytest.mark.parametrize("early", ["", "xy"], ids=["deleted before", "there before"])
def test_number_and_order_of_the_labs_own_cells_are_the_learners_work(course, here, early, late):
    """Code can read which cells ran, so the order of the lab's cells could encode a late answer."""

    def hand_in_with(cells, when, asks=()):
        nb = copy_of(course)
        own = {"x": "x = 1", "y": "y = 2"}
        rest = [cell for cell in nb.cells if cell.source not in own.values()]
        said = [new_code_cell(own[cell]) for cell in cells]
        nb.cells = [*rest[:1], *said, *rest[1:3], *map(new_markdown_cell, asks), *rest[3:]]
        path = write(nb, course.root / "submitted" / "ann" / HW / f"{HW}.ipynb")
        path.with_name("timestamp.txt").write_text(f"{when} UTC")

    shutil.rmtree(course.root / "source" / HW)
    (course.root / "gradebook.db").unlink()
    for change in (each_text, nothing):  # learners have two releases
        nb = in_small_lab(change)
        write(nb, course.root / "source" / HW / f"{HW}.ipynb")
        remember(course, HW, {HW: released_texts(nb, course.config)})
    enter(course)
    hand_in_with(early, FIRST)
    run(course)
    assert counts(course) == FIRST
    hand_in_with(late, LATER, asks=[ASKS])
    assert run(course)[0] == 0
    nb = graded(course.root, "ann", HW)
    assert [c.source for c in nb.cells if added_by(c) == "learner"] == [ASKS]
    assert counts(course) == (FIRST if early == late else LATER)


@pytest.mark.parametrize("when", ["before it is recorded", "after it is recorded"])
def test_a_run_that_is_killed_while_it_replaces_files_costs_no_time(
    course, here, monkeypatch, when
):
    """The files are as after SIGKILL: nothing is restored or removed."""
    hand_in(course, FIRST)
    run(course)
    hand_in(course, LATER, asks=ASKS)
    write_grade, killed = Writer._write, course.root.parent / "killed"

    def die(*args):
        if when == "after it is recorded":
            write_grade(*args)
        shutil.copytree(course.root, killed)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "_write", die)
        with pytest.raises(KeyboardInterrupt):
            run(course)
    shutil.rmtree(course.root)
    killed.rename(course.root)
    assert run(course)[0] == 0
    assert counts(course) == FIRST
