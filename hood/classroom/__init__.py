"""Run a class: collect submissions, compute the points that count, and make pages and tables.

Each package imports only from the packages above it in this list:

    formats       reads and writes tables, and defines how pages look
    rules         applies `course.yml` (dates, lateness, groups, totals) to plain data
    gradebook     reads and writes nbgrader's database, and reads the graded files
    hand_ins      collects hand-ins from nbgrader's exchange and from LMSs, and keeps every hand-in
    results       runs `course`, computes the points that count, and writes tables for LMSs
    recording     runs `grade`, which chooses hand-ins, grades them, and records the results
    report        makes the class report
    feedback      makes each learner's feedback page
    marking       serves the pages on which people mark written answers
    nbgrader      changes nbgrader's own commands and pages
    service       gives verdicts while learners work, beside a JupyterHub or alone
    backup        saves a class's results in one file, and restores them

`lesson_links` changes a lab's links to lessons when the lab leaves the course's folder. `doctor`
prints what a machine lacks, and lists the files of a class that other accounts can read.
"""
