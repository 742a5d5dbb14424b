"""nbgrader's commands, and what of them is patched."""
