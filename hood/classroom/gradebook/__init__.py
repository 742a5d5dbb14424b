"""nbgrader's database and the graded files: what they say, without a class's rules.

``graded`` reads a lab's submissions with their marks and verdicts, ``marks`` says which are missing
and late, ``graded_hand_ins`` has what earlier hand-ins gave, ``regrade`` finds requests,
``exercises`` divides a graded notebook, ``pseudonyms`` hide names. ``book_age`` says whether the
database is older than the files, ``run_lock`` lets one run at a time change it, and
``service_jobs`` is the table of the service.
"""
