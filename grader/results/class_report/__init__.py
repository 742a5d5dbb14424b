"""The class report: a page for the instructor about one graded lab, and the same data as CSV."""
