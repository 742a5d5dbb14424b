"""Make a learner's feedback page for a graded notebook, without scripts from the learner.

``grades`` reads the marks, ``feedback`` removes what learners must not read, ``learner_html`` makes
HTML from a learner's text and outputs, and ``page`` makes the page from these parts.
"""
