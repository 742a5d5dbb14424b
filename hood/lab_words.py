"""Words in a lab's text that mean something to a program."""

import re

# What a stub raises where a lab is released (see nbgrader_config.py), and what stands where a
# question in words waits for its answer: the course's own words, and nbgrader's.
STUB = "write your answer here"
UNANSWERED = ("*Your answer goes here.*", "*Write your answer here.*")
# What stands in an answer that nobody has begun.
BLANK = (f'NotImplementedError("{STUB}")', *UNANSWERED)
# Below an exercise's heading: a class may leave it out.
FURTHER = re.compile(r"^\*Further, ", re.MULTILINE)
# The delimiters of what learners do not get: solutions, hidden tests, mark schemes.
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
BEGIN_SCHEME, END_SCHEME = "=== BEGIN MARK SCHEME ===", "=== END MARK SCHEME ==="
