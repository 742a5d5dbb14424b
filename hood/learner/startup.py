"""A kernel of the course runs this before a notebook's first cell.

After a kernel died, the new kernel has imported nothing. With this file, a cell that needs a
missing name ends with a sentence that says what to run. IPython runs the file that `PYTHONSTARTUP`
names; the course's Jupyter servers set this variable (`hood/learner/jupyter`). The file defines no
name in the notebook. In plain Python, or in a notebook outside the course, it does nothing.
"""


def _begin() -> None:
    import sys
    from contextlib import suppress

    if "IPython" not in sys.modules:
        return
    with suppress(ImportError):  # a kernel of another environment
        from hood.learner.contents import own_notebook

        if own_notebook() is not None:
            from hood.judge import history  # noqa: F401
            from hood.learner import journal, one_line  # noqa: F401


_begin()
del _begin
