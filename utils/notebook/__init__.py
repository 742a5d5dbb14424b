"""The course's look in a notebook, and the tools of its cells: figures, drills, expectations."""
