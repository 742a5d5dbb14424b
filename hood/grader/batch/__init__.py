"""``python -m hood grade``: grade every submission of a lab in parallel."""
