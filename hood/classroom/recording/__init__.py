"""The command `grade`: it chooses hand-ins, has them graded, and records the results."""
