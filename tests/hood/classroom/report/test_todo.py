"""The page's to-do list for the instructor."""

import pytest

from hood.classroom.gradebook.graded import Results
from hood.classroom.gradebook.pseudonyms import LearnerNames
from hood.classroom.report.tally import Tally
from hood.classroom.report.todo import CLASS, LAB, MARKS, todos
from hood.grader.course import open_course
from hood.grader.outline import Outline
from tests.hood.classroom.report import made_up
from tests.hood.classroom.report.made_up import TASK, Made, make_course, verdict


@pytest.fixture
def told(tmp_path):
    """A function from learners to their to-do list: ``(group, do, why)``."""

    def tell(learners):
        read = Results(open_course(make_course(tmp_path / "course", learners)), made_up.LAB)
        tally = Tally(read.cells, Outline("A lab", made_up.TITLES), LearnerNames())
        for one in read.read():
            tally.add(one)
        return [(task.group, task.do, task.why) for task in todos(tally)]

    return tell


def right(count, **more):
    """Return learners whose answers are right and completely marked."""
    return [Made(f"ok{k}", manual={TASK: 4.0}, **more) for k in range(count)]


def test_without_problems_there_is_nothing_to_do(told):
    assert told(right(12)) == []


def test_a_common_mistake_sends_the_class_back_to_its_section(told):
    wrong = {"twice": verdict("twice", 0.0, misconceptions={"squared": "multiplied by itself."})}
    mistaken = [Made(f"m{k}", manual={TASK: 4.0}, verdicts=wrong) for k in range(5)]
    assert told(right(7) + mistaken) == [
        (
            CLASS,
            "Go through lesson 98, “About twice” once more",
            "5 of 12 had “squared” in `twice`: multiplied by itself.",
        )
    ]


def test_marks_of_two_versions_are_reported(told):
    newest = right(9, metadata={"key": "b-its own"})
    older = [Made(f"m{k}", manual={TASK: 4.0}, metadata={"key": "a-its own"}) for k in range(2)]
    nobody_knows = [Made("p", manual={TASK: 4.0})]  # graded by nbgrader itself
    [(group, do, why)] = told(older + newest + nobody_knows)
    assert (group, do) == (MARKS, "Grade all submissions with one version")
    assert why.startswith("2 submissions were graded with another version")


def test_a_rare_mistake_does_not_send_the_class_back(told):
    wrong = {"twice": verdict("twice", 0.0, misconceptions={"squared": "multiplied by itself."})}
    assert (
        told([*right(10), *(Made(f"m{k}", "", "", wrong, {}, {TASK: 1}) for k in range(2))]) == []
    )


def test_unexplained_answers_ask_for_a_new_misconception(told):
    odd = {"softmax": verdict("softmax", 0.0, problem="wrong shape")}
    found = told(right(9) + [Made(f"m{k}", manual={TASK: 4.0}, verdicts=odd) for k in range(4)])
    assert [(group, do) for group, do, _ in found] == [
        (LAB, "Read a few wrong answers to `softmax`, and add new misconceptions: `hood wrong`")
    ]
    assert found[0][2] == "4 of 4 wrong answers match no known misconception."


@pytest.mark.parametrize("tried", [9, 10])
def test_an_exercise_that_hardly_anyone_solved_is_listed(told, tried):
    wrong = {"softmax": verdict("softmax", 0.0, misconceptions={"a row": "added up columns."})}
    found = told([Made(f"m{k}", manual={TASK: 4.0}, verdicts=wrong) for k in range(tried)])
    look = "Hardly anyone solved it: is the question clear, and is its subject taught?"
    assert ((LAB, "Look at `softmax` again", look) in found) is (tried == 10)


def test_answers_in_words_wait_for_a_mark(told):
    [task] = told([Made("ada"), Made("bob")])
    assert task == (
        MARKS,
        "Mark the answers in words: `make teach`, then Marking",
        "Answers that wait: 2 to `why`.",
    )


def test_learners_come_first_and_a_few_are_named(told):
    note = {"kind": "settings", "message": "", "cell": "twice"}
    learners = right(5)
    learners[0].metadata = {"notes": [{"kind": "unreadable"}]}
    learners[1].metadata = {"notes": [note]}
    learners[2].scores = {"twice": None}
    learners[3].metadata = {"notes": [{"kind": "another"}]}
    learners[4].metadata = {"notes": [{"kind": "timestamp"}]}
    found = told(learners + right(0))
    assert [do for _, do, _ in found] == [
        "Grade these submissions again",
        "Ask for the unreadable files",
        "Find out whether the work is in a copy",
        "Find out when they were handed in",
        "Ask about edited tests or settings",
    ]
    assert found[1][2] == "One submission with a notebook that could not be read: Ada Example."
    assert found[2][2] == "One submission with copies beside the notebook: Ada Example."
    assert found[3][2] == "One submission with a time that can't be read: Ada Example."
