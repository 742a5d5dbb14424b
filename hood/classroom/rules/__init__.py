"""``course.yml``: the rules of one class, and what counts by them.

Verdicts and the points of a hand-in never depend on it; which of several hand-ins is recorded does.
``schema`` is what the file may say, ``reading`` reads it. ``counting`` works out what counts of a
lab, ``standing`` which hand-ins may count, and ``total`` what all labs make together; ``marks`` and
``term`` feed them from the gradebook, ``sentences`` and ``total_words`` say it in words.
``class_list`` says who belongs to the class, ``roster`` and ``exports`` exchange it with learning
platforms.
"""
