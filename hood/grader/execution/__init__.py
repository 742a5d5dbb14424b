"""Run a notebook's cells in order, in a sandbox, and judge the graded cells."""
