"""The class report: a page for the instructor about one graded lab, and the same data as CSV.

``tally`` adds up the class; ``page`` and its template show it, ``sheets`` writes it as
``learners.csv`` and ``exercises.csv``. ``todo`` says what to do next, ``alike`` finds answers
that are alike, ``attempts`` counts what the service was asked.
"""
