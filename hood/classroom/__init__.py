"""A class: what was handed in, what counts, and what people read of it.

Each room imports only from those above it in this list:

    formats       tables that come in and go out, and the look of pages
    rules         `course.yml`: dates, lateness, groups, totals; plain data in, plain data out
    gradebook     nbgrader's database and graded files: marks, requests for a regrade, pseudonyms
    hand_ins      every hand-in is kept; the ways in: nbgrader's exchange, an LMS's archives
    results       what counts by the rules; the command `course`, and tables for platforms
    recording     the command `grade`: which hand-ins are graded, and what is recorded
    report        the class report
    feedback      a learner's page
    marking       pages on which people mark answers in words
    nbgrader      what nbgrader's own commands and pages show of all this
    service       verdicts while learners work, beside a JupyterHub
    backup        what a class's results need, as one file

`lesson_links` says where links of a lab lead outside of the course's folder, and `doctor` what a
machine lacks and which files of a class others can read.
"""
