"""Read and write nbgrader's database and the graded files, without a class's rules.

``graded`` reads a lab's submissions with their marks and verdicts, ``marks`` finds missing marks
and late submissions, ``graded_hand_ins`` stores the results of all graded hand-ins, ``regrade``
finds requests for a regrade, ``exercises`` splits a graded notebook into exercises, and
``pseudonyms`` hides names. ``book_age`` finds out whether the database is older than the graded
files, ``run_lock`` makes sure that only one run at a time changes the database, and
``service_jobs`` defines the table of the service's jobs.
"""
