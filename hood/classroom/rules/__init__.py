"""``course.yml``: the rules of one class. Nothing here opens a gradebook.

Verdicts and the points of a hand-in never depend on it; which of several hand-ins is recorded does.
``schema`` is what the file may say, ``reading`` reads it. ``counting`` works out what counts of a
lab, ``standing`` which hand-ins may count, and ``total`` what all labs make together; ``sentences``
and ``total_words`` say it in words, and ``for_learners`` what learners read of it. ``roster`` reads
the list of the class, and ``class_list`` says who belongs to it.
"""
