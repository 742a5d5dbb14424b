"""``python -m grader.nbgrader COMMAND``: nbgrader's own command line with a faster start.

It imports ``grader`` first, which blocks an import that takes about one second (see
``grader/__init__.py``), and collects no garbage while it imports. A file that can't be written ends
it with a sentence. Nothing else differs. The demo and the tests call nbgrader this way.
"""

import sys

from grader.inside.long_lived import long_lived

with long_lived():
    from nbgrader.apps.nbgraderapp import main

from grader.whole_file import why_not_written

if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        if not (why := why_not_written(error)):
            raise
        sys.exit(why)
