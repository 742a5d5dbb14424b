"""What counts of a class's marks, by its rules: of a lab, of the term, and for platforms.

``counted_marks`` and ``term`` feed the rules from the gradebook, ``exports`` writes what counts for
learning platforms, ``rename`` gives a learner another id, and ``command`` is ``python -m hood
course``.
"""
