"""Turn a phase's text into notebooks: the lesson, the instructor's lab and the learner's lab.

`text` reads the text, `notebook` makes a notebook of it, and `folds` marks what JupyterLab should
fold. `release` calls nbgrader to make the learner's version, and `regions` finds the lines of
a solution or a hidden test in a cell.
"""
