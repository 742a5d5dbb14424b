"""Build notebooks from the texts in `phases/`.

    phases/NN_name/lesson.py -> notebooks/NN_name.ipynb          executed, outputs kept
    phases/NN_name/lab.py    -> source/NN_name/NN_name.ipynb     instructor's version
                             -> release/NN_name/NN_name.ipynb    learner's version, by nbgrader
    phases/start.py          -> notebooks/start.ipynb            executed like a lesson

`steps.build` has the steps. `notebooks.text` parses a text. `lint`, `stated`, `mentions`, `leaks`
and `spelled_out` check it, and `answer_rules` checks the files of answers. All problems are
reported at once. To make the build refuse something new, yield a `Problem` in one of these modules.
If an exercise changed, its answers are judged (`judged`). A cell's header becomes nbgrader's
metadata (`notebooks.notebook`). `digest` finds out whether a lesson's text, the code that it
imports, its saved outputs or the versions of packages changed. If so, `execute` runs the lesson,
and `notebooks.folds` marks what JupyterLab folds. A lab goes through nbgrader's generate_assignment
(`notebooks.release`). A file is written only if its bytes change, and always as a whole.

`steps.bring_home` copies edits of notebooks back into the texts. `review` compares the committed
notebooks with a new build of the texts, and `bundle` packs the learner's archive.

`importing` makes a draft of a phase from a notebook of nbgrader or Otter Assign.

`site` makes the static site from the built notebooks. `proof` tests each check with its wrong
answers, with small changes of right answers, and with a sample class. `demo` grades the sample
class, and `class_summary` prints the results. `sample_hub` runs a sample JupyterHub. `reference`
writes the reference pages from the comments and docstrings beside each name.
"""
