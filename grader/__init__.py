"""The course's build and grading tools. `python -m grader --help` lists the commands."""

import sys

# jsonschema, which nbformat imports, loads rfc3987_syntax if it is installed. That module compiles
# a grammar for about one second in every process. The notebook schema does not use it, so the
# import is blocked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class UserError(Exception):
    """An error that the user can fix. The command line prints its message without a traceback."""
