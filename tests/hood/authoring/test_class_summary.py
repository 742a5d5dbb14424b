"""The tables in a terminal."""

import io
import re

from rich.console import Console

from hood.authoring.class_summary import print_summary
from hood.classroom.gradebook.graded import read_class
from hood.grader.course import open_course
from tests.hood.classroom.report.made_up import LAB, POINTS, Made, make_course, verdict


def printed(tmp_path, learners, **stories):
    """The summary of these learners, 120 characters wide."""
    graded = read_class(open_course(make_course(tmp_path / "course", learners)), LAB)
    console = Console(file=io.StringIO(), width=120)
    print_summary(console, "A lab", graded, stories)
    return " ".join(console.file.getvalue().split())


def test_the_summary_has_points_misconceptions_and_sections_to_revisit(tmp_path):
    wrong = {"twice": verdict("twice", 0.0, misconceptions={"squared": "times itself."})}
    unread = Made("eve", scores=dict.fromkeys(POINTS))
    learners = [Made("ada", verdicts=wrong), Made("bob", "Bob"), unread]
    text = printed(tmp_path, learners, bob="did it all")
    assert "Bob Example 10 of 10" in text
    assert "did it all" in text
    assert "1 squared twice 98, “About twice”" in text


def test_an_exercise_is_counted_as_in_the_report(tmp_path):
    """A part that could not run costs no points, and one learner may have no verdict."""
    found = verdict("softmax", 3.0)
    withheld = {"name": "on a GPU", "points": 2.0, "earned": 0.0, "status": "not run"}
    judged = found["parts"][0] | {"points": 3.0, "status": "right"}
    found |= {"status": "right as far as run", "parts": [judged, withheld | {"problem": "no GPU"}]}
    learners = [
        Made("ada", notebook=False, scores={"softmax": 0.0}),
        Made("bob", verdicts={"softmax": found}),
        Made("eve", verdicts={"softmax": found}),
    ]
    text = printed(tmp_path, learners)
    [row] = re.findall(r"softmax [█░]+ (\d+%) (\d) (\d) (\d) ", text)
    assert row == ("55%", "2", "0", "1")  # 6 of 5 + 3 + 3 points


def test_markup_in_names_is_shown_as_text(tmp_path):
    assert "[bold]Ada[/bold] Example" in printed(tmp_path, [Made("ada", "[bold]Ada[/bold]")])


def test_nobody(tmp_path):
    assert "Learners" in printed(tmp_path, [])
