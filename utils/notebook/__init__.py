"""The course's look in a notebook, and what its cells ask: figures, drills, expectations."""
