"""The engine: text becomes labs, answers become verdicts, a class gets its results.

`python -m hood --help` lists the commands. Five rooms stand in a row; a room imports from those
before it in this list, and from the modules beside them:

    judge       an exercise, its cases, a verdict and its words
    learner     a learner's notebook: verdicts in it, progress, copies that are kept up to date
    grader      strangers' notebooks in, verdicts out: sandboxes and the workers of a batch
    classroom   a class: which hand-ins count, rules, report, feedback, marking, the service
    authoring   text in, notebooks out: build, site, bundle, and the proof that checks are right

Beside them stands what all rooms speak of: `course` (what a course says of itself), `phase_paths`
(which files it has), `manifest` (what a result rests on), `addresses` (of its lessons), `lab_words`
(words in a lab that mean something to a program), `rubric` (of a question in words), `verdict`
(what is said of an answer), `palette` (its colours), `audience` (for whom a notebook runs),
`metadata` (where a notebook keeps the engine's own facts), `notebook_file` and `atomic_files`
(write one; write a file as a whole) and `untrusted` (read data of any shape). The door of each
room, its `__init__.py`, says what comes in, what goes out, and which module to open for what.
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
