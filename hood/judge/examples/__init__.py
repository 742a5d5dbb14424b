"""Find small failing calls, and write them as lines that a learner can paste."""
