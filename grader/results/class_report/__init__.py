"""The class report: a page for the instructor about one graded lab, and the same data as CSV.

``tally`` adds up the class out of :mod:`grader.results.gradebook`; what is new on the page or in a
sheet is counted there first. Then ``page`` and ``templates/page.html.j2`` show it, and ``figures``
its bars; ``sheets`` writes it as a column of ``learners.csv`` or ``exercises.csv``. ``items``
judges exercises, ``todo`` says what to do next, ``names`` hides who is who.
"""
