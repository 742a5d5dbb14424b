"""``python -m grader.nbgrader COMMAND``: nbgrader's own command line, started sooner.

All that differs is that ``grader`` is imported before it, which keeps a grammar that no notebook's
schema asks for from being compiled: see there. The demo calls nbgrader this way, and so do tests.
"""

from nbgrader.apps.nbgraderapp import main

if __name__ == "__main__":
    main()
