"""The two ends of the connection between a judge and the process that runs a learner's code."""
