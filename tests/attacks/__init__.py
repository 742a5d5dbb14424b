"""What a stranger's notebook may try, and what must come of it.

Each module here that is named for a family holds its attacks: functions that make a hostile
submission out of a lazy learner's notebook, with a sentence on what it tries.
``python -m tests.attacks`` prints them all.
"""
