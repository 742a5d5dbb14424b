"""Reading what was graded: marks and verdicts, for the terminal and for the class report."""
