"""The old place of :mod:`hood.learner.service`; learners' copies still import it from here.

`python -m hood.learner.copies` updates the import in the cells of the course. A cell that
a learner added, and a submitted lab, always keep the old import.
"""

from hood.learner.service import feedback, fetch, labs, requests, submit

__all__ = ["feedback", "fetch", "labs", "requests", "submit"]
