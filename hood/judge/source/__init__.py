"""Read the code of an answer, and the record of its calls in the learner's process."""
