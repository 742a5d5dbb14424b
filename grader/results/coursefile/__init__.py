"""``course.yml``: the rules of one class, and what counts by them.

Verdicts and recorded points never depend on it. ``schema`` is what the file may say, ``reading``
reads it, ``counting`` works out what counts, ``marks`` feeds it from the gradebook, ``sentences``
says it in words, ``roster`` and ``exports`` exchange it with learning platforms.
"""
