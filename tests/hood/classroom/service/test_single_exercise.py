"""One exercise as a separate lab, and a learner's cells as a submission to it."""

from datetime import date

import nbformat
import pytest

from hood.classroom.service.single_exercise import Labs, card_of, exercise_alone, handed_in, seed_of
from hood.grader.batch.intake import read_lab
from hood.grader.batch.job import as_file
from hood.grader.course import open_course
from hood.verdict import VERDICT_MIME, PartResult, Status, Verdict
from tests.hood.tiny import LAB, make_course, released, source_notebook, write


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = make_course(tmp_path_factory.mktemp("alone") / "course")
    write(source_notebook(), root / "source" / LAB / f"{LAB}.ipynb")
    return open_course(root)


@pytest.fixture(scope="module")
def lab(course):
    return read_lab(course, LAB)


def cells_of(lab):
    [data] = lab.notebooks.values()
    return [c.metadata.nbgrader.grade_id for c in nbformat.reads(data.decode(), 4).cells]


def sent(lab, exercise, cells):
    """The cells that a worker gets, as texts."""
    [(name, data)] = lab.notebooks.items()
    submission = handed_in(exercise_alone(lab, exercise).lab, data, cells)
    return [cell.source for cell in nbformat.reads(submission.notebooks[name].decode(), 4).cells]


def test_an_exercise_comes_with_the_answers_and_locked_cells_before_it(lab):
    alone = exercise_alone(lab, "row_sums")
    assert cells_of(alone.lab) == ["setup", "twice_solution", "row_sums_solution", "row_sums"]
    assert alone.asks == {"row_sums_solution"}
    assert (alone.lab.digest, alone.lab.manifest) == (lab.digest, lab.manifest)
    with pytest.raises(KeyError):
        exercise_alone(lab, "nothing")


def test_the_cells_that_ran_are_sent_and_not_the_labs(lab):
    nb = released(source_notebook())
    answers = ("twice_solution", "row_sums_solution")
    code = [cell for cell in nb.cells if cell.cell_type == "code" and cell.id not in answers]
    given = [(cell.id, cell.source) for cell in code]
    mine = [("twice_solution", "def twice(x): return helper(x)"), ("new", "helper = abs")]
    found = sent(lab, "row_sums", [*given, *mine, ("row_sums_solution", "row_sums = 1")])
    assert found == ["def twice(x): return helper(x)", "helper = abs", "row_sums = 1"]


def test_a_cell_above_the_first_answer_stays_above_it(lab):
    cells = [("mine", "import math"), ("twice_solution", "twice = math.fsum")]
    assert sent(lab, "twice", cells) == ["import math", "twice = math.fsum"]


def test_the_graded_cells_text_and_foreign_metadata_are_ignored(lab):
    cells = [("twice_solution", "twice = 1"), ("twice", "verify = print"), ("setup", "torch = 0")]
    assert sent(lab, "twice", cells) == ["twice = 1"]


def test_the_lab_is_read_again_when_it_has_changed(course):
    labs = Labs(course)
    before = labs.lab(LAB)
    assert labs.lab(LAB) is before
    assert labs.lab_of("twice") is before
    assert labs.lab_of("thrice") is None
    nb = source_notebook()
    nb.metadata.open_the_hood["cell_seconds"] = 11
    write(as_file(nb), course.root / "source" / LAB / f"{LAB}.ipynb")
    assert labs.lab(LAB).digest != before.digest


def test_cases_are_the_same_for_a_learner_an_exercise_and_a_day():
    key, day = b"k" * 32, date(2026, 3, 1)
    one = seed_of(key, "ana", "twice", day)
    assert one == seed_of(key, "ana", "twice", day)
    others = [
        seed_of(b"l" * 32, "ana", "twice", day),
        seed_of(key, "bo", "twice", day),
        seed_of(key, "ana", "row_sums", day),
        seed_of(key, "ana", "twice", date(2026, 3, 2)),
    ]
    assert len({one, *others}) == 5


def test_a_card_shows_what_the_class_shows_and_no_path_of_this_machine(course):
    problem = f"raised in {course.root}/utils/x.py <script>"
    part = PartResult("any", 2.0, 0.0, Status.WRONG, problem, misconception="squared")
    said = {"squared": "You squared it."}
    verdict = Verdict("twice", 2.0, Status.WRONG, (part,), lesson="99", explanations=said)
    shows = {"misconceptions": True, "examples": True}
    card = card_of(verdict, course.root, shows)
    assert "You squared it." in card["text/plain"]
    assert str(course.root) not in card["text/html"] + card["text/plain"]
    assert "<script>" not in card["text/html"]
    assert card[VERDICT_MIME] == {"status": "wrong", "earned": 0.0}  # and no seed
    hidden = card_of(verdict, course.root, {**shows, "misconceptions": False})
    assert "squared it" not in str(hidden)
