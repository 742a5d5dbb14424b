"""Make a learner's text and outputs safe to show."""
