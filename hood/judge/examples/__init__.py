"""Failing calls that a learner can paste: found, made small, and written."""
