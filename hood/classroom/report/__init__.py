"""Make the class report: a page for the instructor about a graded lab, and the data as CSV.

``tally`` computes the numbers of the class. ``page`` shows these numbers with its template, and
``sheets`` writes them into ``learners.csv`` and ``exercises.csv``. ``todo`` lists what to do next,
``alike`` finds similar answers, and ``attempts`` counts the service's verdicts.
"""
