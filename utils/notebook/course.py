"""The old place of :mod:`hood.learner.contents`; learners' copies still import it from here.

`python -m hood.learner.copies` updates the import in the cells of the course. A cell that
a learner added, and a submitted lab, always keep the old import.
"""

from hood.learner.contents import PHASES, show_check_command, show_contents

__all__ = ["PHASES", "show_check_command", "show_contents"]
