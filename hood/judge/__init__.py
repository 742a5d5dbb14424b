"""Exercises, their cases, verdicts, and the texts about verdicts.

The input is a check and an object that calls the learner's code; the output is a verdict. Other
people's code never runs in this process: `connection` calls that code in another process. A
person's own code is judged in that person's notebook.

    values        kinds of values: how each is sent, compared, drawn, and written in a call
    checks        the language in which a course writes exercises: cases, comparing, wrong answers
    catalogue     loads a phase's checks
    connection    the two ends of the socket between a judge and a learner's process
    verdicts      draws and runs the cases; `verdicts.judge` makes the verdict
    source        reads an answer's code, for exercises that forbid ready-made functions
    examples      finds small failing calls, and writes them as lines to paste
    report        writes a verdict in words; `card` draws it; `backquotes` turns its words into HTML
    verify        judges a person's own notebook; `history` saves the cells, `watched` limits calls
    solutions     makes the page of a worked solution
"""
