"""``python -m grader.nbgrader COMMAND``: nbgrader's own command line with a faster start.

It imports ``grader`` first, which blocks an import that takes about one second (see
``grader/__init__.py``), and collects no garbage while it imports. Nothing else differs. The demo
and the tests call nbgrader this way.
"""

from grader.inside.long_lived import long_lived

with long_lived():
    from nbgrader.apps.nbgraderapp import main

if __name__ == "__main__":
    main()
