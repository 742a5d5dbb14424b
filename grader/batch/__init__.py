"""``python -m grader grade``: grade every submission of a lab in parallel.

- ``intake`` reads labs and submissions and makes jobs.
- ``grading`` grades one ``job``, a notebook in and a graded notebook out.
- ``pool`` or ``cluster`` distributes the jobs over processes.
- ``files`` and ``writer`` record the results.
- ``command`` ties them together.
"""
