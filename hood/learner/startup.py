"""What a kernel of the course begins with, before a notebook's first cell has run.

After a kernel died, nothing of the course is imported: a cell that needs a name then ends with a
sentence that says what to run. IPython runs this file where `PYTHONSTARTUP` names it, as the
course's Jupyter servers do (`hood/learner/jupyter`). It leaves no name behind, and does nothing in
a plain Python or in a notebook that is not the course's.
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
