"""Build the notebooks that people open from the texts in `phases/`.

    phases/NN_name/lesson.py -> notebooks/NN_name.ipynb          executed, outputs kept
    phases/NN_name/lab.py    -> source/NN_name/NN_name.ipynb     instructor's version
                             -> release/NN_name/NN_name.ipynb    learner's version, by nbgrader
    phases/start.py          -> notebooks/start.ipynb            executed like a lesson

`steps.build` goes through it: a text is parsed (`notebooks.text`) and checked, all problems at once
(`lint`, `stated`, `mentions`, `leaks`, `spelled_out`, and `answer_rules` for the answers beside its
checks); to refuse something new, yield a `Problem` there. The answers of an exercise that changed
are judged (`judged`). A cell's header becomes nbgrader's metadata (`notebooks.notebook`). A lesson
is executed (`execute`) where its text, the code that it imports, or its saved outputs changed, or
was executed with other versions (`digest`), and gets what JupyterLab folds (`notebooks.folds`). A
lab goes through nbgrader's generate_assignment (`notebooks.release`). Files are written whole, and
only when their bytes change.

The way back is `steps.bring_home`. `review` compares the committed notebooks with what the texts
build, and `bundle` packs the learner's archive.

`site` makes the static site of what is built. `proof` shows that checks are right: each against its
own wrong answers, against small changes of right ones, and with a sample class, which `demo`
grades and `class_summary` sums up. `sample_hub` runs a JupyterHub to try.
"""
