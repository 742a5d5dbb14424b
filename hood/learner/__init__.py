"""A learner's notebook: verdicts where the work is, their own progress, and copies kept up to date.

In come what a kernel has run and what a notebook was saved as; out go cards and pages in it.
Nothing here needs the checks but `local_judge`, so a class's archive and a sandbox have all of it.

    check         `check(...)` and `solution(...)`, which labs import; who judges, they choose:
                  `local_judge`, in a copy with the checks, or `service`, a class's
    service       `labs`, `fetch`, `submit`, `feedback`, `requests`: what a class's service answers
    what_now      what stands below a verdict
    contents      the start page: the phases, their notebooks, a class's dates and rules
    progress      how far a learner is: labs (`lab_file`), lessons (`reading`), and the `journal` of
                  what a notebook does not keep; `renamed` finds a copy that has another name
    copies        makes copies of lessons and labs and refreshes them; `bring_in` brings what is new
                  into one, and `cell_matching` finds which cell is which
    cell_clock    says that a long cell still runs
    one_line      ends a cell with a line where a traceback says less; `bounded_traceback` shortens
                  the others
    startup       what a kernel begins with; `jupyter` has settings of a learner's JupyterLab
    exposed_answers  looks for what gives answers away in an install
"""
