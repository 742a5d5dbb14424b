"""The old place of :mod:`hood.learner.progress`; learners' copies still import it from here.

`python -m hood.learner.copies` updates the import in the cells of the course. A cell that
a learner added, and a submitted lab, always keep the old import.
"""

from hood.learner.progress import progress, show_next, show_progress

__all__ = ["progress", "show_next", "show_progress"]
