"""Read and apply ``course.yml``, the rules of one class, without opening a gradebook.

The verdicts on a hand-in and its raw points never depend on the rules. The rules decide which of
several hand-ins is recorded, and how many points count. ``schema`` defines the file's keys, and
``reading`` reads the file. ``counting`` computes the points that count in a lab, ``standing`` finds
the hand-ins that may count, and ``total`` computes the total of all labs. ``sentences`` and
``total_words`` explain the results in sentences, and ``for_learners`` makes the learners' copy of
the rules. ``roster`` reads the list of the class, and ``class_list`` says who belongs to it.
"""
