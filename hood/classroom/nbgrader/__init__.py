"""What nbgrader's own commands and pages show: ``nbgrader_config.py`` names what is here.

``guard`` corrects formgrader's lists and averages and bounds what it opens; ``export`` writes the
table of ``nbgrader export``.
"""
