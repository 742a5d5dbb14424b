"""What instructors run. `python -m grader --help` lists the commands."""

import sys

# jsonschema, which nbformat imports, would compile a grammar of international addresses for a
# second, in every process. No notebook's schema asks for one.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class UserError(Exception):
    """Something the caller can put right: shown as a message, never as a traceback."""
