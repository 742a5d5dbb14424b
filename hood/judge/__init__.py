"""An exercise, its cases, a verdict and its words.

In come a check and something that calls the learner's code; out goes a verdict. Nothing here runs a
stranger's code: it is called in another process by way of `connection`, or, where somebody judges
their own work, in this one.

    values        kinds of values: how each is sent, compared, drawn, and written in a call
    checks        the language in which a course writes exercises: cases, comparing, wrong answers
    catalogue     loads a phase's checks
    connection    the two ends of the socket between a judge and a learner's process
    verdicts      cases are drawn and played, and `verdicts.judge` makes the verdict
    source        reads an answer's code, for the rules of exercises that are solved by hand
    examples      finds small failing calls, and writes them as lines to paste
    report        words the verdict, and `card` draws it; `backquotes` shows such words on a page
    verify        judges a person's own notebook, by its `history`, and `watched` stops its calls
    solutions     makes the page of a worked solution
"""
