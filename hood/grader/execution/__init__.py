"""A notebook's cells are run in order, in a sandbox, and the graded ones are judged."""
