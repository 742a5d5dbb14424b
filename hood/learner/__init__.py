"""A learner's notebook: verdicts beside the work, progress, and copies that are kept up to date.

The input is the cells that a kernel has run, and saved notebooks; the output is cards and pages in
a notebook. Only `local_judge` needs the checks. A class's archive and a sandbox have all other
modules.

    check         `check(...)` and `solution(...)`, which labs import. They choose the judge: a
                  class's `service` if there is one, else `local_judge` in a copy with the checks
    service       `labs`, `fetch`, `submit`, `feedback`, `requests`: requests to a class's service
    what_now      the lines below a verdict
    contents      the start page: the phases, their notebooks, a class's dates and rules
    progress      shows how much a learner has done. `lab_file` reads this from labs, and `reading`
                  from lessons. `journal` records events that a notebook does not record.
                  `renamed` finds a renamed copy
    launch        installs the packages of an archive's course, and opens JupyterLab
    copies        makes and refreshes copies of lessons and labs; `bring_in` adds new cells to
                  a copy, and `cell_matching` pairs old and new cells
    cell_clock    shows that a long cell is still running
    one_line      shows one line in place of a less useful traceback; `bounded_traceback`
                  shortens other tracebacks
    startup       a new kernel runs this first; `jupyter` has the settings of a learner's JupyterLab
    exposed_answers  looks for readable answers in a learner's install
"""
