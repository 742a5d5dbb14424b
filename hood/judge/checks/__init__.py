"""The language in which graded exercises are described. It is for grading, not for notebooks."""
