"""Collect hand-ins and keep them.

``store`` keeps every hand-in. ``exchange`` receives hand-ins from nbgrader's exchange.
``zip_collect`` unpacks an LMS's archives; ``lms`` reads the file names of the LMS, and
``lms_times`` reads the times of hand-ins.
"""
