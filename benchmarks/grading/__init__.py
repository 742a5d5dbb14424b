"""Compare the speed of grading with plain nbgrader: `python -m benchmarks.grading`."""
