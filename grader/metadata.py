"""Where this project keeps what it writes into a notebook's own metadata, and into a cell's.

Under one key stand a lab's settings, which the header of its text holds (:mod:`grader.build.text`),
and the facts of a grading run (:mod:`grader.run_record`).
"""

KEY = "open_the_hood"
