"""Compute which points count in a lab and in the term under a class's rules, and export them.

``counted_marks`` and ``term`` apply the rules to the gradebook, ``exports`` writes tables for
learning platforms, ``rename`` gives a learner another id, and ``command`` is ``python -m hood
course``.
"""
