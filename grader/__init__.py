"""What instructors run. `python -m grader --help` lists the commands."""


class UserError(Exception):
    """Something the caller can put right: shown as a message, never as a traceback."""
