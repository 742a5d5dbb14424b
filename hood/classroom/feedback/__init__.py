"""A learner's feedback on a graded notebook: one page, which nothing of a learner's can act in.

``exercises`` finds the notebook's exercises, ``theirs`` makes HTML of what a learner wrote and
showed, and ``page`` puts both beside the marks.
"""
