"""Change nbgrader's own commands and pages. ``nbgrader_config.py`` loads these changes.

``guard`` corrects formgrader's lists and averages, and limits which files formgrader opens.
``export`` writes the table of ``nbgrader export``.
"""
