"""Words in a lab's text that mean something to a program."""

import re

# The stubs in a released lab raise an error with this text (see nbgrader_config.py).
STUB = "write your answer here"
# A question in words shows one of these texts until the learner answers: the first is this course's
# text, and the second is nbgrader's.
UNANSWERED = ("*Your answer goes here.*", "*Write your answer here.*")
# If an answer contains one of these texts, the learner has not begun it.
BLANK = (f'NotImplementedError("{STUB}")', *UNANSWERED)
# This text below an exercise's heading says that a class may leave the exercise out.
FURTHER = re.compile(r"^\*Further, ", re.MULTILINE)
# The header of a graded cell in a lab's text, with the exercise's name.
GRADED = re.compile(r'^# %%.*\btest="([^"]+)"', re.MULTILINE)
# Markers around what learners do not get: solutions, hidden tests, mark schemes.
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
BEGIN_SCHEME, END_SCHEME = "=== BEGIN MARK SCHEME ===", "=== END MARK SCHEME ==="
