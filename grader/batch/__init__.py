"""``python -m grader grade``: grade every submission of a lab in parallel."""
