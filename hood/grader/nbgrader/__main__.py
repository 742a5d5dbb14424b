"""``python -m hood.grader.nbgrader COMMAND``: nbgrader's own command line with a faster start.

This program imports ``hood`` first, because ``hood/__init__.py`` avoids a slow module. It does not
collect garbage during imports, and prints a sentence if a file can't be written. Nothing else
differs.
"""

import sys

from hood.grader.inside.long_lived import long_lived

with long_lived():
    from nbgrader.apps.nbgraderapp import main

from hood.atomic_files import why_not_written

if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        if not (why := why_not_written(error)):
            raise
        sys.exit(why)
