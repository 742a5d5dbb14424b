"""What was handed in, and the ways in.

``store`` keeps every hand-in; ``exchange`` is nbgrader's, ``zip_collect`` takes an LMS's archives,
whose file names ``lms`` reads, and whose times ``lms_times``.
"""
