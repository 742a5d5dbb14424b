"""Compare the grader's speed with plain nbgrader's: `python -m benchmarks.grading`."""
