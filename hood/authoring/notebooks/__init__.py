"""A phase's text becomes notebooks: the lesson, the instructor's lab and the learner's.

`text` reads the text, `notebook` makes a notebook of it (with `folds`, what a page of JupyterLab
hides), `release` has nbgrader make the learner's version, and `regions` knows which lines of a cell
are solution or hidden test.
"""
