"""How fast a class is graded, beside plain nbgrader: `python -m benchmarks.grading`."""
