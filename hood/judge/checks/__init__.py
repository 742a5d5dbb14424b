"""The language in which graded exercises are described; grading loads it, no notebook does."""
