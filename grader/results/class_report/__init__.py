"""A page for the instructor about one graded lab, and the same as CSV."""
