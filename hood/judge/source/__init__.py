"""What can be read in the code of an answer, and what of it the process has recorded."""
