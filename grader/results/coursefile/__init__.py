"""``course.yml``: the rules of one class, and what counts by them.

Verdicts and the points of a hand-in never depend on it; which of several hand-ins is recorded does.
``schema`` is what the file may say, ``reading`` reads it, ``counting`` works out what counts,
``standing`` which hand-ins may, ``marks`` feeds it from the gradebook, ``sentences`` says it in
words, ``roster`` and ``exports`` exchange it with learning platforms.
"""
