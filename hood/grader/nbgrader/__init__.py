"""nbgrader's commands, and what of nbgrader is patched, for which version, and why (`patches`)."""
