"""Run the command `grade`, which chooses hand-ins, grades them, and records the results."""
