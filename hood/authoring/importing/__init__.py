"""Make a draft of a phase from an assignment of another grader (nbgrader or Otter Assign).

    NOTEBOOK.ipynb -> phases/NN_name/lab.py, checks/, answers/, solutions.md and TODO.md

`cells` reads the notebook as data, and does not run its code. `nbgrader` and `otter` each turn the
notebook's cells into an `Assignment` (`assignment`). Both use `solution_cell`, which puts this
project's markers around solutions. `tests_read` finds the tests that can become cases, and `names`
finds the names that cells share. `drafted` names an exercise and divides its points. `lab_text` and
`check_text` write the texts of the lab and the checks. `draft` writes the other files, and the list
of what a person must decide. To read another format, write a module like `nbgrader` and name this
module in `command`.
"""
