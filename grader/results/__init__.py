"""Read graded labs, scores and verdicts, for the terminal and for the class report."""
