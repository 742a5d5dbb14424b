"""The page: each exercise with its verdict, and nothing that a browser would fetch."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from hood.classroom.feedback.page import NO_RESPONSE, About, render
from hood.grader.submission.notes import Note, NoteKind, record, unreadable
from hood.metadata import KEY
from hood.verdict import Cause, Example, PartResult, Status, Verdict
from tests.attacks.browser import dangers
from tests.hood.classroom.feedback_pages import words

SITE = "https://example.org/hood/"
EVIL = "<script>alert(1)</script>"
HEADING = "A tensor is a storage and a view"
SECTION = "#a-tensor-is-a-storage-and-a-view"


def cell(source, name, task=False, **ours):
    kind = {"grade": not task, "solution": False, "locked": True, "task": task, "points": 3}
    about = kind | {"schema_version": 3, "grade_id": name} | ours
    new = new_markdown_cell if task else new_code_cell
    return new(source, metadata={"nbgrader": about})


def page(*cells, about=None, **said):
    nb = new_notebook(cells=[new_markdown_cell("## 1 · Views of `x`"), *cells])
    nb.metadata[KEY] = {"title": "Lab 01"}
    record(nb, notes=[Note(NoteKind.MISSING, "The cell `x` was missing.", "x")])
    return render(nb, about or About("ana", "lab", 2.0, 6.0, **said))


def verdict(*parts, status=Status.PARTLY, **more):
    named = {"a name": "a sentence about it"}
    more = {"reads": HEADING, "lesson": "01", "explanations": named} | more
    return Verdict("views", 3.0, status, parts, **more)


PARTS = (
    PartResult("fresh", 1.0, 1.0, Status.RIGHT),
    PartResult(
        *("sliced", 1.0, 0.0, Status.WRONG, Cause.WRONG_RESULT),
        misconception="a name",
        example=Example("views(1)", "2", f"'{EVIL}'"),
    ),
    PartResult(
        *("turned", 0.5, 0.0, Status.WRONG, Cause.WRONG_RESULT),
        problem=f"raised {EVIL}",
        hint="perhaps the strides",
        against="what this machine has",
    ),
    PartResult("on a GPU", 0.5, 0.0, Status.NOT_RUN, problem="needs a GPU"),
)


def test_each_part_has_its_verdict_with_the_reason():
    shown = page(cell("test", "views", score=1.0), verdicts={"views": verdict(*PARTS)})
    said = words(shown)
    assert "Feedback for ana Lab 01 2 of 6 points" in said
    assert "Changes to your notebook before grading The cell x was missing." in said
    assert "1 · Views of x views 1 of 3 points right fresh (1 of 1)" in said
    assert "not yet sliced (0 of 1) “a name”: a sentence about it." in said
    assert f"to paste into your notebook: views(1) # expected 2, got '{EVIL}'" in said
    assert "(0 of 0.5) : raised" in said
    assert f"Compared with what this machine has. Raised {EVIL}. A hint Perhaps" in said
    assert "not run on a GPU (0.5 withheld) Needs a GPU." in said
    assert f"To read again: lesson 01, “{HEADING}”." in said
    assert [found for found in dangers(shown) if found not in ("<meta>", "<style>")] == []
    assert not re.search(r"url\(|@import|<link", shown)


def test_the_first_mistake_is_shown_in_full_and_the_others_unfold():
    _, later = page(cell("t", "views", score=1.0), verdicts={"views": verdict(*PARTS)}).split(
        '<details class="later">'
    )
    summary, rest = later.split("</summary>", 1)
    assert words(f"<main>{summary}") == f"turned (0 of 0.5) : raised {EVIL}"
    assert f"Raised {EVIL}. A hint" in words(f"<main>{rest}")


def test_a_page_on_an_unreadable_notebook_says_nothing_about_answers():
    nb = new_notebook(cells=[new_markdown_cell("## 1 · Views"), cell("t", "views")])
    record(nb, notes=[unreadable("The file is damaged.")])
    stub = verdict(status=Status.NOT_ATTEMPTED, problem="not attempted yet")
    shown = words(render(nb, About(verdicts={"views": stub})))
    assert "no mark, of 3 points" in shown
    assert "attempted" not in shown
    assert "To read again" not in shown


def test_sections_to_read_are_linked_if_the_course_has_a_site():
    shown = page(cell("t", "views", score=1.0), verdicts={"views": verdict(*PARTS)}, lessons=SITE)
    [address] = re.findall(r'<a href="(https:[^"]*)"', shown)
    assert address == f"{SITE}lessons/01_tensors.html{SECTION}"
    whole = verdict(PARTS[0], status=Status.RIGHT)
    assert "To read again" not in page(cell("t", "views", score=3.0), verdicts={"views": whole})


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (verdict(status=Status.NOT_ATTEMPTED, problem="not attempted yet"), "Not attempted yet."),
        (verdict(status=Status.NOT_RUN, problem="the kernel died"), "The kernel died."),
    ],
)
def test_a_verdict_without_parts_says_why(found, said):
    assert f"0 of 3 points {said}" in words(
        page(cell("t", "views", score=0.0), verdicts={"views": found})
    )


def test_an_exercise_without_an_answer_says_so_once():
    stub = verdict(status=Status.NOT_ATTEMPTED, problem="not attempted yet")
    graded = cell("t", "views", score=0.0)
    graded.metadata.nbgrader |= {"solution": True, "comment": NO_RESPONSE}
    said = words(page(graded, verdicts={"views": stub}))
    assert f"0 of 3 points Not attempted yet. To read: lesson 01, “{HEADING}”." in said
    assert "Remark" not in said
    task = cell("Why?", "why", task=True, score="not marked yet", comment=NO_RESPONSE)
    assert "Remark You gave no answer." in words(page(task))


def test_an_answer_in_words_stands_beside_its_mark_remark_and_rubric():
    answer = new_markdown_cell(f"**mine** {EVIL}", metadata={KEY: {"by": "learner"}})
    task = cell("Why?", "why", task=True, score=2.0, by_person=True, comment="*Nearly.*")
    said = words(page(task, answer, rubrics={"why": "- one point for *that*"}))
    shown = "2 of 3 points , marked by a person Remark Nearly. How it is marked one point for that"
    assert f"{shown} Your answer mine" in said
    assert "alert" not in said
    waiting = words(page(cell("Why?", "why", task=True, score="not marked yet"), answer))
    assert "not marked yet, of 3 points Your answer mine" in waiting


def test_code_and_output_are_folded_and_the_labs_own_code_is_not_repeated():
    printed = [new_output("stream", text="printed")]
    mine = new_code_cell("mine = 1", metadata={KEY: {"by": "learner"}}, outputs=printed)
    given = new_code_cell("given = 1", outputs=printed)
    shown = page(mine, given, cell("t", "views", score=1.0), verdicts={"views": verdict(*PARTS)})
    assert words(shown).count("printed") == 2
    assert "Your code mine = 1 What your cells showed printed printed The question" in words(shown)
    assert "given" not in shown
    assert not re.search(r"<details[^>]* open", shown)


def test_a_plain_test_is_shown_with_its_message():
    failed = new_output("error", ename="AssertionError", evalue="so", traceback=["so, really"])
    test = cell("assert f(1)", "plain", score=0.0)
    test.outputs = [failed]
    shown = page(test)
    assert "<details open><summary>What your cells showed" in shown
    assert "so, really The visible tests assert f" in words(shown)
