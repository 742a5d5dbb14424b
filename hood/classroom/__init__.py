"""A class: what was handed in, what counts, and what people read of it.

    collecting    ways in: nbgrader's exchange, an LMS's archives; every hand-in is kept
    recording     the command `grade`: which hand-ins are graded, and the gradebook
    rules         `course.yml`: dates, lateness, groups, totals; what counts by them
    report        the class report; `export` writes grades.csv
    feedback      a learner's page
    marking       pages on which people mark answers in words
    service       verdicts while learners work, beside a JupyterHub
    backup        what a class's results need, as one file

`lesson_links` says where links of a lab lead outside of the course's folder. `look` is the style
of pages, `spreadsheet` writes tables, `tables` reads them.
"""
