"""A learner's feedback on a graded notebook: one page, which nothing of a learner's can act in.

``grades`` reads the marks, ``feedback`` takes out what learners must not read, ``learner_html``
makes HTML of what a learner wrote and showed, and ``page`` puts all of it together.
"""
