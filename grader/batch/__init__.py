"""``python -m grader grade``: one pure function, notebook in, graded notebook out, over a class.

``intake`` reads the submissions, ``grading`` grades one ``job``, ``pool`` or ``cluster`` spread
the jobs over processes, ``files`` and ``writer`` record the outcome, and ``command`` ties them
together.
"""
