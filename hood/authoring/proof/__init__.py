"""Test the checks: what each accepts, rejects, names and misses, also with a sample class."""
