"""The engine: text becomes labs, answers become verdicts, a class gets its results.

`python -m hood --help` lists the commands. Five rooms stand one above the other; a room imports
from those below it, and from no other:

    learner     a learner's copies of the notebooks, kept up to date
    judge       an exercise, its cases, a verdict and its words
    grader      strangers' notebooks in, verdicts out: sandboxes and the workers of a batch
    classroom   a class: which hand-ins count, rules, report, feedback, marking, the service
    authoring   text in, notebooks out: build, site, bundle, and the proof that checks are right

Beside them stands what all rooms speak of: `verdict` (what is said of an answer), `metadata` (where
a notebook keeps the project's own facts), `phase_paths` (which files a course has), `untrusted`
(read data of any shape) and `atomic_files` (write a file as a whole). The door of each room, its
`__init__.py`, says what comes in, what goes out, and which module to open for what.
"""

import sys

# jsonschema, which nbformat imports, loads rfc3987_syntax if it is installed. That module compiles
# a grammar for about one second in every process. The notebook schema does not use it, so the
# import is blocked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class UserError(Exception):
    """An error that the user can fix. The command line prints its message without a traceback."""


def not_installed(what: str, error: ModuleNotFoundError) -> UserError:
    """Return the error that says what ``what`` needs, and how the lock installs it.

    No index is asked for this project by its name, which anybody may have taken there. Raises
    ``error`` where the package is there, and only a module of it is missing.
    """
    missing = (error.name or "").partition(".")[0]
    if not missing or missing in sys.modules:
        raise error
    files = "-r lock/packages.txt -r lock/extras.txt"
    install = f"{sys.executable} -m pip install --no-deps --require-hashes {files}"
    return UserError(
        f"{what} needs {missing}, which is not installed. In the project's folder, run: {install}"
    )
