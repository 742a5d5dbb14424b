"""Proves the checks: what each accepts, rejects, names and misses, and a class that shows it."""
