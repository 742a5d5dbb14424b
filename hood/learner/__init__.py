"""A learner's copies of the notebooks, kept up to date.

`work` makes copies of lessons and labs and refreshes them; `bring_in` brings what is new into one
copy, and `cell_matching` finds which cell is which. `answers` looks for what gives answers away in
an install. `jupyter` has settings of a learner's JupyterLab.
"""
